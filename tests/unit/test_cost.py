from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.core.cost import Saved, SentCall, TokenUse, cost_of, saved_by_model, savings_of
from graph.model_price import ModelPrice, PriceList

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
def test_what_sessions_cost_adds_up_to_what_all_of_them_cost(
    sessions: Sequence[Sequence[TokenUse]], prices: PriceList
) -> None:
    each = [cost_of(uses, prices, default_model="big") for uses in sessions]
    of_all = cost_of([use for uses in sessions for use in uses], prices, default_model="big")
    assert of_all.total.amount == sum(cost.total.amount for cost in each)
    assert of_all.summaries.amount == sum(cost.summaries.amount for cost in each)
    assert of_all.unpriced_calls == sum(cost.unpriced_calls for cost in each)
    assert of_all.total.is_estimate == any(cost.total.is_estimate for cost in each)


@given(uses=st.lists(USES, max_size=8), prices=LISTS)
def test_every_call_is_in_the_amount_or_among_those_without_a_price(uses: list[TokenUse], prices: PriceList) -> None:
    cost = cost_of(uses, prices, default_model="small")
    priced = [use for use in uses if (use.model or "small") in prices.models]
    assert cost.unpriced_calls == sum(use.call_count for use in uses) - sum(use.call_count for use in priced)
    assert cost_of(priced, prices, default_model="small") == replace(cost, unpriced_calls=0)
    assert 0 <= cost.summaries.amount <= cost.total.amount


def use(model: str = "big", *, is_summary: bool = False, estimated: int = 0) -> TokenUse:
    return TokenUse(model, is_summary, 2, estimated, 1_000, 500, 100)


def test_each_kind_of_token_has_its_price() -> None:
    assert cost_of([use()], PRICES, default_model="").total.amount == Decimal("0.004125")


def test_what_was_not_reported_is_an_estimate() -> None:
    assert not cost_of([use()], PRICES, default_model="").total.is_estimate
    assert cost_of([use(estimated=1)], PRICES, default_model="").total.is_estimate


def test_summaries_are_an_estimate_where_a_cache_would_have_made_them_cheaper() -> None:
    assert cost_of([use("big", is_summary=True)], PRICES, default_model="").summaries.is_estimate
    assert not cost_of([use("small", is_summary=True)], PRICES, default_model="").summaries.is_estimate


def test_calls_that_name_no_model_count_as_the_default_one_and_as_an_estimate() -> None:
    cost = cost_of([use("")], PRICES, default_model="big")
    assert (cost.total.amount, cost.total.is_estimate) == (Decimal("0.004125"), True)
    assert cost_of([use("")], PRICES, default_model="").unpriced_calls == 2


def test_the_embedded_model_costs_nothing() -> None:
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


def test_where_nothing_is_cached_no_cache_is_lost() -> None:
    money = savings_of([Saved("big", 1_000, 100, is_cached=False)], [], PRICES, default_model="")
    assert money is not None
    assert (money.unsent, money.lost, money.net) == (Decimal("0.0025"), Decimal(0), Decimal("0.0025"))


@pytest.mark.parametrize(
    ("saved", "folds"),
    [([Saved("other", 1, 0, is_cached=False)], []), ([], [use("other", is_summary=True)])],
    ids=["answers", "summaries"],
)
def test_without_a_price_of_all_models_no_savings_are_told(saved: list[Saved], folds: list[TokenUse]) -> None:
    assert savings_of(saved, folds, PRICES, default_model="") is None
