"""Prices of models as they are set, and what a chat costs and saves by them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.core.cost import (
    ModelPrice,
    PriceList,
    Saved,
    SentCall,
    TokenUse,
    cost_of,
    read_prices,
    saved_by_model,
    savings_of,
)
from graph.server.settings import load_settings
from graph.value.error import SettingsError

BIG = ModelPrice(Decimal("2.5"), Decimal(10), Decimal("1.25"))
SMALL = ModelPrice(Decimal("0.1"), Decimal("0.4"), Decimal("0.1"))
PRICES = PriceList("USD", {"big": BIG, "small": SMALL})

COUNTS = st.integers(min_value=0, max_value=10**11)
USES = st.builds(
    TokenUse,
    st.sampled_from(["big", "small", "other", ""]),
    st.booleans(),
    st.integers(min_value=1, max_value=10**6),
    st.integers(min_value=0, max_value=3),
    COUNTS,
    COUNTS,
    COUNTS,
)
AMOUNTS = st.decimals(min_value=0, max_value=1_000_000, places=9)
LISTS = st.builds(
    PriceList,
    st.just("USD"),
    st.dictionaries(st.sampled_from(["big", "small"]), st.builds(ModelPrice, AMOUNTS, AMOUNTS, AMOUNTS)),
)


@given(sessions=st.lists(st.lists(USES, max_size=5), max_size=5), prices=LISTS)
def test_costs_of_sessions_add_up(sessions: Sequence[Sequence[TokenUse]], prices: PriceList) -> None:
    each = [cost_of(uses, prices, default_model="big") for uses in sessions]
    of_all = cost_of([use for uses in sessions for use in uses], prices, default_model="big")
    assert of_all.total.amount == sum(cost.total.amount for cost in each)
    assert of_all.summaries.amount == sum(cost.summaries.amount for cost in each)
    assert of_all.unpriced_calls == sum(cost.unpriced_calls for cost in each)
    assert of_all.total.is_estimate == any(cost.total.is_estimate for cost in each)


@given(uses=st.lists(USES, max_size=8), prices=LISTS)
def test_every_call_is_in_the_amount_or_unpriced(uses: list[TokenUse], prices: PriceList) -> None:
    cost = cost_of(uses, prices, default_model="small")
    priced = [use for use in uses if (use.model or "small") in prices.models]
    assert cost.unpriced_calls == sum(use.call_count for use in uses) - sum(use.call_count for use in priced)
    assert cost_of(priced, prices, default_model="small") == replace(cost, unpriced_calls=0)
    assert 0 <= cost.summaries.amount <= cost.total.amount


def use(model: str = "big", *, is_summary: bool = False, estimated: int = 0) -> TokenUse:
    return TokenUse(model, is_summary, 2, estimated, 1_000, 500, 100)


def test_each_kind_of_token_has_its_price_and_what_was_not_reported_is_an_estimate() -> None:
    total = cost_of([use()], PRICES, default_model="").total
    assert (total.amount, total.is_estimate) == (Decimal("0.004125"), False)
    assert cost_of([use(estimated=1)], PRICES, default_model="").total.is_estimate
    # Summaries are an estimate where a cache would have made them cheaper.
    assert cost_of([use("big", is_summary=True)], PRICES, default_model="").summaries.is_estimate
    assert not cost_of([use("small", is_summary=True)], PRICES, default_model="").summaries.is_estimate


def test_calls_that_name_no_model_count_as_the_default_one_and_the_embedded_model_costs_nothing() -> None:
    cost = cost_of([use("")], PRICES, default_model="big")
    assert (cost.total.amount, cost.total.is_estimate) == (Decimal("0.004125"), True)
    assert cost_of([use("")], PRICES, default_model="").unpriced_calls == 2
    cost = cost_of([use("offline-mini", estimated=2)], PRICES, default_model="")
    assert (cost.total.amount, cost.total.is_estimate, cost.unpriced_calls) == (Decimal(0), False, 0)


SYSTEM = ("system", "chat", 1, 10)


def sent(model: str, *messages: str, unsent: int = 5, is_cached: bool = True) -> SentCall:
    return SentCall(model, (SYSTEM, *(("message", each, 1, 100) for each in messages)), unsent, is_cached)


def test_what_folding_did_is_told_for_each_model() -> None:
    calls = [sent("big", "a", "b"), sent("big", "b"), sent("small", "b", "c", is_cached=False), sent("small", "c")]
    assert saved_by_model(calls) == [Saved("big", 10, 100, is_cached=True), Saved("small", 10, 100, is_cached=True)]


def test_savings_are_what_a_chat_that_is_never_folded_would_have_paid_more() -> None:
    # 1,000 tokens from the cache, 100 that a fold had read anew, a summary of 300 tokens.
    folds = [use("small", is_summary=True)._replace(input_tokens=200, cached_tokens=0, output_tokens=100)]
    money = savings_of([Saved("big", 1_000, 100, is_cached=True)], folds, PRICES, default_model="")
    assert money is not None
    assert (money.unsent, money.lost, money.folds) == (Decimal("0.00125"), Decimal("0.000125"), Decimal("0.00006"))
    assert money.net == Decimal("0.001065")


def test_where_nothing_is_cached_no_cache_is_lost_and_without_all_prices_no_savings_are_told() -> None:
    saved = Saved("big", 1_000, 100, is_cached=False)
    money = savings_of([saved], [], PRICES, default_model="")
    assert money is not None
    assert (money.unsent, money.lost, money.net) == (Decimal("0.0025"), Decimal(0), Decimal("0.0025"))
    assert savings_of([Saved("other", 1, 0, is_cached=False)], [], PRICES, default_model="") is None
    assert savings_of([], [use("other", is_summary=True)], PRICES, default_model="") is None


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


def test_bad_prices_are_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, text in BAD.items():
        monkeypatch.setenv("MODEL_PRICES", text)
        with pytest.raises(SettingsError) as caught:
            load_settings()
        told = str(caught.value)
        assert caught.value.detail.startswith('MODEL_PRICES: takes {"currency": "USD", "models": {"name": {"input"'), (
            kind
        )
        assert (told.count("MODEL_PRICES"), told.count("\n")) == (1, 0), kind
    monkeypatch.setenv("MODEL_PRICES", "")
    assert load_settings().model_prices is None


def test_the_example_of_the_file_that_is_copied_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    example = (Path(__file__).parents[2] / ".env.example").read_text()
    (tmp_path / ".env").write_text("\n".join(line[2:] for line in example.splitlines() if "MODEL_PRICES" in line))
    monkeypatch.chdir(tmp_path)
    prices = load_settings().model_prices
    assert prices is not None
    assert prices.models["gpt-4o-mini"].cached == Decimal("0.075")
