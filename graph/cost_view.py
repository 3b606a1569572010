"""The frozen values that tell what model calls cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Money:
    """An amount in the currency of the price list.

    Attributes:
        is_estimate: Whether any of its tokens were counted by us, or weren't known to be cached.
    """

    amount: Decimal
    is_estimate: bool


@dataclass(frozen=True)
class CostView:
    """What the model calls of one session, or of all of an owner's, cost.

    Attributes:
        currency: Of the amounts, as it is shown.
        total: All calls of models that have a price, those of summaries too.
        summaries: Those of summaries, discarded and failed ones too.
        unpriced_calls: Calls of models without a price, which are in neither amount; a summary counts as one call.
    """

    currency: str
    total: Money
    summaries: Money
    unpriced_calls: int


@dataclass(frozen=True)
class SavingsMoney:
    """What folding has saved in a session since its last reset, in money; all of it is an estimate.

    Attributes:
        currency: Of the amounts, as it is shown.
        unsent: What the tokens that weren't sent would have cost: where the provider reads from its cache, the cached
            price, as nearly all of them would have been read there.
        folds: What the summaries cost.
        lost: What was paid more for tokens that could no longer be read from the cache.
    """

    currency: str
    unsent: Decimal
    folds: Decimal
    lost: Decimal

    @property
    def net(self) -> Decimal:
        """What is left of what wasn't paid; negative if folding has cost more."""
        return self.unsent - self.folds - self.lost
