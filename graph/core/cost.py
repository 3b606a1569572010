"""Prices of models and the cost of tokens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Final, NamedTuple, NoReturn

from graph.core.manifest import Manifest
from graph.core.model_input import lost_tokens
from graph.core.turn import EMBEDDED_MODEL
from graph.value.view import EXAMPLE_MODEL, FORECAST_TURNS, CostView, Money, Savings, SavingsMoney

PRICED_TOKENS: Final = 1_000_000
CURRENCY_CHARS: Final = 8
_HIGHEST: Final = Decimal(1_000_000)
# Keeps sums exact: the digits of a price and of the tokens fit into a Decimal.
_DECIMALS: Final = 9
_SHAPE: Final = 'takes {"currency": "USD", "models": {"name": {"input": 2.5, "output": 10, "cached": 1.25}}}'


@dataclass(frozen=True)
class ModelPrice:
    """Prices of a million tokens; `cached` is for input from the provider's cache."""

    input: Decimal
    output: Decimal
    cached: Decimal


@dataclass(frozen=True)
class PriceList:
    currency: str
    models: Mapping[str, ModelPrice]


def read_prices(text: str) -> PriceList:
    """Parses `{"currency": "USD", "models": {"name": {"input": 2.5, "output": 10, "cached": 1.25}}}`.

    Prices are of a million tokens; without "cached" the input price applies.

    Raises:
        ValueError: Malformed; the message states the expected form and the defect.
    """
    try:
        read = json.loads(
            text, parse_float=Decimal, parse_int=Decimal, parse_constant=Decimal, object_pairs_hook=_object
        )
    except (ValueError, ArithmeticError, RecursionError):
        _refuse("this is no JSON, or names something twice")
    if not isinstance(read, dict) or read.keys() != {"currency", "models"}:
        _refuse("the whole is an object of currency and models")
    currency, models = read["currency"], read["models"]
    if not isinstance(currency, str) or not _is_currency(currency):
        _refuse(f"the currency is 1 to {CURRENCY_CHARS} characters without spaces")
    if not isinstance(models, dict) or not models:
        _refuse("the models are an object with one of them at least")
    return PriceList(currency, {name: _price(name, price) for name, price in models.items()})


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    read = dict(pairs)
    if len(read) < len(pairs):
        msg = "a name stands there twice"
        raise ValueError(msg)
    return read


def _is_currency(text: str) -> bool:
    return 0 < len(text) <= CURRENCY_CHARS and text.isprintable() and " " not in text


def _price(name: str, price: object) -> ModelPrice:
    if not isinstance(price, dict) or not {"input", "output"} <= price.keys() <= {"input", "output", "cached"}:
        _refuse(f"{name!r} has an input, an output and perhaps a cached price")
    read = {"cached": price["input"], **price}
    if not all(map(_is_amount, read.values())):
        _refuse(f"each price of {name!r} is a number from 0 to {_HIGHEST:,} of at most {_DECIMALS} decimals")
    return ModelPrice(**read)


def _is_amount(value: object) -> bool:
    if not isinstance(value, Decimal) or not value.is_finite() or not 0 <= value <= _HIGHEST:
        return False
    return value == round(value, _DECIMALS)


def _refuse(reason: str) -> NoReturn:
    msg = f"{_SHAPE}, prices per million tokens; {reason}"
    raise ValueError(msg) from None


_FREE = ModelPrice(Decimal(0), Decimal(0), Decimal(0))


class TokenUse(NamedTuple):
    """Total usage of a model's calls.

    Attributes:
        model: "" for the server's default, which rows of earlier versions don't name.
        is_summary: True for calls that made summaries; a summary counts as one call.
        estimated_count: Number of calls without usage reported by the provider.
        input_tokens: Uncached input.
        cached_tokens: Not included in `input_tokens`; not recorded for summaries.
    """

    model: str
    is_summary: bool
    call_count: int
    estimated_count: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int


class SentCall(NamedTuple):
    """Input of an answered call; `unsent_tokens` is the whole history, `full_tokens`, minus the input, estimated."""

    model: str
    manifest: Manifest
    unsent_tokens: int
    is_cached: bool
    turn: int = 0
    full_tokens: int = 0


class Saved(NamedTuple):
    """Effect of folding on the answer calls of a model.

    Attributes:
        unsent_tokens: The whole history minus the input.
        lost_tokens: Tokens sent again after a fold that could have been cached.
    """

    model: str
    unsent_tokens: int
    lost_tokens: int
    is_cached: bool


def saved_by_model(calls: Sequence[SentCall]) -> list[Saved]:
    lost = dict.fromkeys((call.model for call in calls), 0)
    for before, call in pairwise(calls):
        if before.model == call.model:  # another model has a cache of its own
            lost[call.model] += lost_tokens(before.manifest, call.manifest)
    return [
        Saved(
            model,
            sum(call.unsent_tokens for call in calls if call.model == model),
            tokens,
            any(call.is_cached for call in calls if call.model == model),
        )
        for model, tokens in lost.items()
    ]


def cost_of(uses: Sequence[TokenUse], prices: PriceList, *, default_model: str) -> CostView:
    """Returns the cost of calls; those that name no model are estimated at the default model's price."""
    priced = [(use, price) for use in uses if (price := _price_of(use.model or default_model, prices)) is not None]
    unpriced = [use for use in uses if _price_of(use.model or default_model, prices) is None]
    return CostView(
        prices.currency,
        _sum(priced),
        _sum((use, price) for use, price in priced if use.is_summary),
        sum(use.call_count for use in unpriced),
    )


def savings_of(
    saved: Sequence[Saved], folds: Sequence[TokenUse], prices: PriceList, *, default_model: str
) -> SavingsMoney | None:
    """Returns the savings by folding; None if a model has no price."""
    unsent = lost = Decimal(0)
    for each in saved:
        price = _price_of(each.model or default_model, prices)
        if price is None:
            return None
        unsent += _times(each.unsent_tokens, price.cached if each.is_cached else price.input)
        lost += _times(each.lost_tokens, price.input - price.cached) if each.is_cached else 0
    cost = cost_of(folds, prices, default_model=default_model)
    return None if cost.unpriced_calls else SavingsMoney(prices.currency, unsent, cost.total.amount, lost)


# What providers usually ask, in input tokens at full price.
CACHED_PRICE: Final = 0.1
_OUTPUT_PRICE: Final = 4


def net_tokens(saved: Sequence[Saved], *, input_tokens: int, output_tokens: int) -> int:
    """Returns what folding saved, less what the folds read and wrote, in input tokens at full price.

    Where the provider has a cache it would have held nearly all that wasn't sent: that counts a tenth, and what was
    sent again uncached nine tenths. Output counts four times.
    """
    unsent = _weighted_tokens(saved)
    lost = sum(each.lost_tokens * (1 - CACHED_PRICE) for each in saved if each.is_cached)
    return round(unsent - lost) - input_tokens - _OUTPUT_PRICE * output_tokens


def _weighted_tokens(saved: Iterable[Saved]) -> float:
    return sum(each.unsent_tokens * (CACHED_PRICE if each.is_cached else 1) for each in saved)


class FoldCounts(NamedTuple):
    """The folds of a session since the last reset, merges aside; finished ones that the next turn will use included.

    Attributes:
        made_count: Folds that were used, each with all its versions counted once.
        active_count: Summaries that stand, `removed_tokens` shorter than their sources in all.
        new_tokens: The part of `removed_tokens` that no input has been without yet.
        turn_count: Folded turns; the last of them is `last_turn`.
        broken_off_count: Paid calls for folds that were stopped or no longer needed.
    """

    made_count: int
    active_count: int
    removed_tokens: int
    new_tokens: int
    turn_count: int
    last_turn: int
    broken_off_count: int


@dataclass(frozen=True)
class FoldPace:
    """What folding costs and saves in a session; all amounts are input tokens at full price, or all are money.

    Attributes:
        turn: The last complete turn.
        net: What folding saved so far, less what it cost.
        turn_saving: What the next turn saves by the folds that there are.
        fold_cost: What a fold costs, with the lost cache and all that was thrown away.
        fold_saving: How much more each turn saves after one more fold.
        fold_turns: Turns of a fold.
        raw_turns: Complete turns that no fold covers.
    """

    turn: int
    net: float
    turn_saving: float
    fold_cost: float
    fold_saving: float
    fold_turns: int
    raw_turns: int


def break_even(pace: FoldPace) -> int | None:
    """Returns the turn from which on folding has saved more than it cost; None if not within `FORECAST_TURNS`.

    Each turn adds `turn_saving` to the net. Behind every `fold_turns` turns a fold takes `fold_cost` from it and adds
    `fold_saving` to `turn_saving`.
    """
    net, saving, raw_turns, unpaid = pace.net, pace.turn_saving, pace.raw_turns, pace.turn
    last = pace.turn + FORECAST_TURNS
    for turn in range(pace.turn + 1, last + 1):
        net += saving
        raw_turns += 1
        if raw_turns >= pace.fold_turns:
            net, saving, raw_turns = net - pace.fold_cost, saving + pace.fold_saving, 0
        if net < 0:
            unpaid = turn
    return unpaid + 1 if unpaid < last else None


def pace_of(
    calls: Sequence[SentCall],
    folds: FoldCounts,
    savings: Savings,
    prices: PriceList | None,
    *,
    turn: int,
    default_model: str,
) -> FoldPace | None:
    """Returns the pace of a session, in money if `savings` has it; None before the first call or fold.

    What isn't sent counts as in `net_tokens` and `savings_of`: at the cached price where the newest model has a cache.
    The newest call shows what a turn saves, and the summaries that stand what one more adds, both times the calls of a
    turn. The cost of all folds so far is divided among those that were made.
    """
    if not calls or not folds.made_count or not folds.active_count:
        return None
    saved = saved_by_model(calls)
    newest = next(each for each in saved if each.model == calls[-1].model)
    price = _price_of(newest.model or default_model, prices) if prices else None
    money = savings.money
    if money is None or not money.folds or price is None:
        net, unsent = float(savings.net_tokens), _weighted_tokens(saved)
        token = CACHED_PRICE if newest.is_cached else 1.0
    else:
        net, unsent = float(money.net), float(money.unsent)
        token = float(_times(1, price.cached if newest.is_cached else price.input))
    token *= len(calls) / len({call.turn for call in calls})
    return FoldPace(
        turn=turn,
        net=net,
        turn_saving=token * (calls[-1].unsent_tokens + folds.new_tokens),
        fold_cost=(unsent - net) / folds.made_count,
        fold_saving=token * folds.removed_tokens / folds.active_count,
        fold_turns=max(1, round(folds.turn_count / folds.made_count)),
        raw_turns=max(0, turn - folds.last_turn),
    )


def _price_of(model: str, prices: PriceList) -> ModelPrice | None:
    return prices.models.get(model, _FREE if model in {EMBEDDED_MODEL, EXAMPLE_MODEL} else None)


def _sum(priced: Iterable[tuple[TokenUse, ModelPrice]]) -> Money:
    amount, is_estimate = Decimal(0), False
    for use, price in priced:
        amount += _times(use.input_tokens, price.input)
        amount += _times(use.cached_tokens, price.cached)
        amount += _times(use.output_tokens, price.output)
        may_be_less = use.is_summary and price.cached != price.input
        is_estimate |= price != _FREE and (use.estimated_count > 0 or not use.model or may_be_less)
    return Money(amount, is_estimate)


def _times(tokens: int, price: Decimal) -> Decimal:
    return tokens * price / PRICED_TOKENS
