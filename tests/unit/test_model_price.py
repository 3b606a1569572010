from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.error import SettingsError
from graph.model_price import ModelPrice, read_prices
from graph.settings import load_settings

AMOUNTS = st.decimals(min_value=0, max_value=1_000_000, places=9, allow_nan=False, allow_infinity=False)


def listed(models: object, currency: object = "USD") -> str:
    return json.dumps({"currency": currency, "models": models})


@given(name=st.text(), amounts=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS))
def test_a_price_is_read_to_its_last_decimal(name: str, amounts: tuple[Decimal, Decimal, Decimal]) -> None:
    fields = ", ".join(
        f'"{field}": {amount:f}' for field, amount in zip(("input", "output", "cached"), amounts, strict=True)
    )
    text = f'{{"currency": "₩", "models": {{{json.dumps(name)}: {{{fields}}}}}}}'
    prices = read_prices(text)
    assert prices.currency == "₩"
    assert prices.models == {name: ModelPrice(*amounts)}


def test_cached_tokens_cost_what_others_do_unless_their_price_is_said() -> None:
    prices = read_prices(listed({"m": {"input": 2.5, "output": 10}}))
    assert prices.models["m"] == ModelPrice(Decimal("2.5"), Decimal(10), Decimal("2.5"))


GOOD = {"input": 1, "output": 2}
BAD = {
    "no JSON": "gpt=1",
    "a list": "[]",
    "prices alone": json.dumps({"m": GOOD}),
    "no currency": json.dumps({"models": {"m": GOOD}}),
    "something else": json.dumps({"currency": "USD", "models": {"m": GOOD}, "date": 1}),
    "an empty currency": listed({"m": GOOD}, ""),
    "a blank currency": listed({"m": GOOD}, "U S"),
    "a long currency": listed({"m": GOOD}, "Goldmünzen"),
    "a currency that breaks the line": listed({"m": GOOD}, "US\n"),
    "a number for a currency": listed({"m": GOOD}, 1),
    "no models": listed({}),
    "a list of models": listed(["m"]),
    "a price alone": listed({"m": 1}),
    "no output": listed({"m": {"input": 1}}),
    "another price": listed({"m": {**GOOD, "images": 1}}),
    "less than nothing": listed({"m": {"input": -0.1, "output": 2}}),
    "text": listed({"m": {"input": "1", "output": 2}}),
    "a truth": listed({"m": {"input": True, "output": 2}}),
    "null": listed({"m": {**GOOD, "cached": None}}),
    "infinity": listed({"m": {"input": float("inf"), "output": 2}}),
    "no number": listed({"m": {"input": float("nan"), "output": 2}}),
    "too much": listed({"m": {"input": 1_000_001, "output": 2}}),
    "far too much": '{"currency": "USD", "models": {"m": {"input": 1e999999999, "output": 1}}}',
    "more than any Decimal": '{"currency": "USD", "models": {"m": {"input": 1e9999999999999999999, "output": 1}}}',
    "too fine": listed({"m": {"input": 1e-10, "output": 2}}),
    "a model twice": '{"currency": "USD", "models": {"m": {"input": 1, "output": 1}, "m": {"input": 2, "output": 2}}}',
    "nested too deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_is_no_list_of_prices_is_refused_at_the_start_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODEL_PRICES", text)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert caught.value.detail.startswith('MODEL_PRICES: takes {"currency": "USD", "models": {"name": {"input": 2.5')
    assert str(caught.value).count("MODEL_PRICES") == 1
    assert "\n" not in str(caught.value)


def test_the_example_of_the_file_that_is_copied_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    example = (Path(__file__).parents[2] / ".env.example").read_text()
    (tmp_path / ".env").write_text("\n".join(line[2:] for line in example.splitlines() if "MODEL_PRICES" in line))
    monkeypatch.chdir(tmp_path)
    prices = load_settings().model_prices
    assert prices is not None
    assert prices.models["gpt-4o-mini"].cached == Decimal("0.075")


def test_without_prices_there_are_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODEL_PRICES", "")
    assert load_settings().model_prices is None
