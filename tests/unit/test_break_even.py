"""The forecast of the turn from which folding has saved more than it cost."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from hypothesis import assume, given
from hypothesis import strategies as st

from graph.core.cost import FoldCounts, ModelPrice, PriceList, SentCall, break_even, pace_of
from graph.value.view import FORECAST_TURNS, Savings, SavingsMoney

PRICES = PriceList("USD", {"big": ModelPrice(Decimal("2.5"), Decimal(10), Decimal("1.25"))})
SYSTEM = ("system", "chat", 1, 10)
LOSS = Savings(0, 0, is_fold_usage=True, lost_tokens=0, net_tokens=-3_000)
BLOCK = 3


def net_by_turn(turn_tokens: int, summary_tokens: int, fold_tokens: int, last: int) -> list[int]:
    """The net of a chat of equal turns after each of them and the fold behind it, first before all."""
    nets, net, folds = [0], 0, 0
    for turn in range(1, last + 1):
        net += folds * (BLOCK * turn_tokens - summary_tokens)
        if turn % BLOCK == 0:
            net, folds = net - fold_tokens, folds + 1
        nets.append(net)
    return nets


def calls_of(turn_tokens: int, summary_tokens: int, turns: int, *, is_cached: bool) -> list[SentCall]:
    unsent = [(turn - 1) // BLOCK * (BLOCK * turn_tokens - summary_tokens) for turn in range(1, turns + 1)]
    return [SentCall("big", (SYSTEM,), each, is_cached, turn) for turn, each in enumerate(unsent, 1)]


def counts_of(turn_tokens: int, summary_tokens: int, turns: int) -> FoldCounts:
    """As after the last of these turns: a fold that is made behind it isn't sent yet."""
    folds, removed = turns // BLOCK, BLOCK * turn_tokens - summary_tokens
    return FoldCounts(folds, folds, folds * removed, removed * (turns % BLOCK == 0), BLOCK * folds, BLOCK * folds, 0)


@given(
    turn_tokens=st.integers(50, 900),
    share=st.floats(0.1, 0.6),
    fold_tokens=st.integers(200, 9_000),
    asked_after=st.integers(3, 40),
)
def test_in_a_chat_of_equal_turns_the_forecast_is_the_turn_from_which_it_pays(
    turn_tokens: int, share: float, fold_tokens: int, asked_after: int
) -> None:
    summary_tokens, last = int(BLOCK * turn_tokens * share), asked_after + FORECAST_TURNS
    nets = net_by_turn(turn_tokens, summary_tokens, fold_tokens, last)
    assume(nets[asked_after] < 0)
    savings = replace(LOSS, net_tokens=nets[asked_after])
    calls = calls_of(turn_tokens, summary_tokens, asked_after, is_cached=False)
    folds = counts_of(turn_tokens, summary_tokens, asked_after)
    pace = pace_of(calls, folds, savings, None, turn=asked_after, default_model="")
    assert pace is not None
    unpaid = max(turn for turn, net in enumerate(nets) if net < 0)
    assert break_even(pace) == (unpaid + 1 if unpaid < last else None)


def test_where_the_endpoint_has_a_cache_folding_pays_later_or_never_and_money_has_prices_of_its_own() -> None:
    calls, folds = calls_of(300, 270, 7, is_cached=True), counts_of(300, 270, 7)

    def turn_of(prices: PriceList | None, savings: Savings, *, is_cached: bool = True) -> int | None:
        asked = [call._replace(is_cached=is_cached) for call in calls]
        pace = pace_of(asked, folds, savings, prices, turn=7, default_model="big")
        return break_even(pace) if pace else None

    unsent = sum(call.unsent_tokens for call in calls)
    uncached = turn_of(None, replace(LOSS, net_tokens=unsent - 2 * 1_800), is_cached=False)
    cached = turn_of(None, replace(LOSS, net_tokens=unsent // 10 - 2 * 1_800))
    assert uncached is not None
    assert cached is not None
    assert 7 < uncached < cached
    assert turn_of(None, replace(LOSS, net_tokens=-100_000)) is None

    # The cached price of "big" is half the input's: later than without a cache, sooner than at a tenth.
    unsent_price, fold_price = Decimal("1.25") * unsent / 1_000_000, Decimal("2.5") * 3_600 / 1_000_000
    money = SavingsMoney("USD", unsent_price, fold_price, Decimal(0))
    priced = turn_of(PRICES, replace(LOSS, net_tokens=-1, money=money))
    assert priced is not None
    assert uncached < priced < cached


def test_there_is_no_forecast_without_a_fold_that_was_made_and_what_was_thrown_away_puts_it_off() -> None:
    calls, folds = calls_of(300, 270, 7, is_cached=False), counts_of(300, 270, 7)
    none_made = FoldCounts(0, 0, 0, 0, 0, 0, 2)
    assert pace_of(calls, none_made, LOSS, None, turn=7, default_model="") is None
    assert pace_of([], folds, LOSS, None, turn=7, default_model="") is None
    pace = pace_of(calls, folds, LOSS, None, turn=7, default_model="")
    wasted = pace_of(calls, folds, replace(LOSS, net_tokens=-6_000), None, turn=7, default_model="")
    assert pace is not None
    assert wasted is not None
    assert wasted.fold_cost == pace.fold_cost + 1_500
    now, then = break_even(pace), break_even(wasted)
    assert now is not None
    assert then is not None
    assert now < then
