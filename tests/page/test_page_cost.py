from __future__ import annotations

from decimal import Decimal

import pytest
from streamlit.testing.v1 import AppTest

from component.format import format_money
from graph.cost_view import CostView, Money, SavingsMoney
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import open_page, store_session, told


def cost(amount: str, *, summaries: str = "0", is_estimate: bool = False, unpriced: int = 0) -> CostView:
    total, part = (Money(Decimal(each), is_estimate) for each in (amount, summaries))
    return CostView("USD", total, part, unpriced)


def statistics(page: AppTest, service: ScriptedService, turns: int = 7) -> str:
    page.session_state["tabs_rail"] = "통계"
    return told(open_page(page, store_session(service, turns)))


def test_without_prices_there_is_nothing_of_money(page: AppTest, service: ScriptedService) -> None:
    said = statistics(page, service)
    assert "비용" not in said
    assert "USD" not in said
    assert "캐시 가격" not in said


def test_amounts_of_this_chat_and_of_all_are_told(page: AppTest, service: ScriptedService) -> None:
    service.cost = cost("0.0123", summaries="0.004")
    said = statistics(page, service)
    assert "💰 비용" in said
    assert "이 대화: **0.0123 USD**\n" in f"{said}\n"
    assert "그중 요약: 0.0040 USD" in said
    assert "모든 대화: **0.0123 USD**" in said
    assert "가격이 없는" not in said
    assert "≈는 추정치입니다." not in said


def test_estimates_are_marked_and_explained(page: AppTest, service: ScriptedService) -> None:
    service.cost = cost("0.0123", is_estimate=True)
    said = statistics(page, service)
    assert "이 대화: **≈0.0123 USD**" in said
    assert "≈는 추정치입니다." in said
    assert "그중 요약" not in said


def test_calls_without_a_price_are_told_beside_the_amount(page: AppTest, service: ScriptedService) -> None:
    service.cost = cost("0", unpriced=3)
    assert "이 대화: **0 USD** + 가격이 없는 호출 3번" in statistics(page, service)


def test_a_chat_without_summaries_has_its_cost_too(page: AppTest, service: ScriptedService) -> None:
    service.cost = cost("0.5")
    said = statistics(page, service, turns=1)
    assert "아직 요약이 없습니다." in said
    assert "이 대화: **0.5000 USD**" in said


def test_each_line_of_the_savings_has_its_money(page: AppTest, service: ScriptedService) -> None:
    service.saved_money = SavingsMoney("USD", Decimal("0.01"), Decimal("0.012"), Decimal("0.001"))
    said = statistics(page, service)
    assert " · ≈0.0100 USD" in said
    assert "요약하며 잃은 캐시: ≈60 · ≈0.0010 USD" in said
    assert "토큰** · ≈−0.0030 USD" in said
    assert "보내지 않은 토큰은 캐시 가격으로" in said


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
