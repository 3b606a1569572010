"""Sums up what folding has saved in a session, and what it cost."""

from __future__ import annotations

from graph.core.cost import Saved, saved_by_model, savings_of
from graph.cost_view import SavingsMoney
from graph.input_view import Savings
from graph.service.access import SessionAccess


def read_savings(access: SessionAccess, session_id: str) -> Savings:
    """Returns what a session's folds have saved since its last reset.

    Raises:
        NotFoundError: There is no such session.
        DatabaseError: The list of what was sent can't be read.
    """
    access.own(session_id)
    sums = access.stores.records.sums(session_id)
    saved = saved_by_model(access.stores.calls.sent(session_id))
    return Savings(
        unsent_tokens=sum(each.unsent_tokens for each in saved),
        fold_tokens=sums.input_tokens + sums.output_tokens,
        is_fold_usage=not sums.estimated_count,
        lost_tokens=sum(each.lost_tokens for each in saved),
        money=_money(access, session_id, saved),
    )


def _money(access: SessionAccess, session_id: str, saved: list[Saved]) -> SavingsMoney | None:
    prices = access.settings.model_prices
    if prices is None:
        return None
    folds = access.stores.token_uses.of_folds(session_id)
    return savings_of(saved, folds, prices, default_model=access.models.default_name)
