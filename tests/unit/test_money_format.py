from __future__ import annotations

from decimal import Decimal

import pytest

from component.format import format_money


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [
        ("0", "USD", "0 USD"),
        ("0.00005", "USD", "<0.0001 USD"),
        ("-0.00005", "USD", ">−0.0001 USD"),
        ("0.0001", "USD", "0.0001 USD"),
        ("0.99996", "USD", "1.0000 USD"),
        ("1", "USD", "1.00 USD"),
        ("-12.345", "KRW", "−12.34 KRW"),
        ("1234567.5", "원", "1,234,567.50 원"),
        ("2.5", "$", r"\$2.50"),
        ("-2.5", "₩", "−₩2.50"),
        ("999999999999999999", "USD", "999,999,999,999,999,999.00 USD"),
    ],
)
def test_an_amount_is_rounded_to_what_can_be_read(amount: str, currency: str, shown: str) -> None:
    assert format_money(Decimal(amount), currency, is_estimate=False) == shown
    assert format_money(Decimal(amount), currency, is_estimate=True).startswith("≈")
