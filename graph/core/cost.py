"""Turns the tokens of model calls into money."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from graph.core.manifest import Manifest
from graph.core.prefix import lost_tokens
from graph.core.turn import EMBEDDED_MODEL
from graph.cost_view import CostView, Money, SavingsMoney
from graph.model_price import PRICED_TOKENS, ModelPrice, PriceList

_FREE = ModelPrice(Decimal(0), Decimal(0), Decimal(0))


class TokenUse(NamedTuple):
    """What the calls of one model took together.

    Attributes:
        model: Its name; "" for the server's default, which rows of earlier versions don't name.
        is_summary: Whether they made summaries; a summary counts as one call.
        estimated_count: How many of the calls the provider reported nothing of.
        input_tokens: Read anew.
        cached_tokens: Read from the provider's cache, beside those. What of a summary's input was cached isn't kept.
    """

    model: str
    is_summary: bool
    call_count: int
    estimated_count: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int


class SentCall(NamedTuple):
    """What an answered call was sent.

    Attributes:
        unsent_tokens: The whole history minus what was sent, by our estimate.
        is_cached: Whether the provider read any of it from its cache.
    """

    model: str
    manifest: Manifest
    unsent_tokens: int
    is_cached: bool


class Saved(NamedTuple):
    """What folding did to the answer calls of one model.

    Attributes:
        unsent_tokens: The whole history minus what was sent.
        lost_tokens: What was sent again behind a fold, and could have been cached.
        is_cached: Whether the provider read any of their input from its cache.
    """

    model: str
    unsent_tokens: int
    lost_tokens: int
    is_cached: bool


def saved_by_model(calls: Sequence[SentCall]) -> list[Saved]:
    """Returns what folding did to these calls, which are in order, by model."""
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
    """Returns what these calls cost.

    Args:
        uses: By model.
        prices: The prices.
        default_model: Whose price counts for calls that name no model, as an estimate.
    """
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
    """Returns what folding has saved; None if a model has no price."""
    unsent = lost = Decimal(0)
    for each in saved:
        price = _price_of(each.model or default_model, prices)
        if price is None:
            return None
        unsent += _times(each.unsent_tokens, price.cached if each.is_cached else price.input)
        lost += _times(each.lost_tokens, price.input - price.cached) if each.is_cached else 0
    cost = cost_of(folds, prices, default_model=default_model)
    return None if cost.unpriced_calls else SavingsMoney(prices.currency, unsent, cost.total.amount, lost)


def _price_of(model: str, prices: PriceList) -> ModelPrice | None:
    return prices.models.get(model, _FREE if model == EMBEDDED_MODEL else None)


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
