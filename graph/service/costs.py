"""Tells what model calls cost, by the prices of the settings."""

from __future__ import annotations

from collections.abc import Callable

from graph.core.cost import TokenUse, cost_of
from graph.cost_view import CostView
from graph.service.access import SessionAccess


class Costs:
    """What one owner's sessions cost; nothing is told without `MODEL_PRICES`."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    def of_session(self, session_id: str) -> CostView | None:
        """Returns what all calls of a session cost, those of earlier attempts and discarded summaries too.

        A fork costs what it adds: what it was copied from counts in its origin.

        Raises:
            NotFoundError: This owner has no such session.
        """
        self._access.own(session_id)
        return self._view(lambda: self._access.stores.token_uses.of_session(session_id))

    def of_all(self) -> CostView | None:
        """Returns the same for all sessions that the owner has."""
        self._access.check_admitted()
        return self._view(lambda: self._access.stores.token_uses.of_owner(self._access.owner))

    def _view(self, read: Callable[[], list[TokenUse]]) -> CostView | None:
        prices = self._access.settings.model_prices
        return None if prices is None else cost_of(read(), prices, default_model=self._access.models.default_name)
