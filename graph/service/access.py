"""What the parts of the service share: stores, models and workers, and the one place where an owner is checked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from graph.core.schedule import round_rate
from graph.error import BusyError, InputError
from graph.model.factory import ChatModels
from graph.recovery import StateRecovery
from graph.settings import Settings
from graph.store.database import Lease
from graph.store.session import SessionRow
from graph.store.stores import Stores
from graph.strategy.strategies import Strategies
from graph.view import LiveTurn, TurnOptions
from graph.worker.fold_worker import FoldWorker
from graph.worker.turn_runner import TurnRunner

# A turn that has said its last word still prunes and frees its session.
AFTERMATH_SECONDS: Final = 5.0


@dataclass(frozen=True)
class SessionAccess:
    """Gives the parts of a service what they work with, for the sessions of one owner.

    Attributes:
        compacting: Ends the compactions by hand that this server makes now, by session.
    """

    settings: Settings
    stores: Stores
    models: ChatModels
    runner: TurnRunner
    recovery: StateRecovery
    fold_worker: FoldWorker
    strategies: Strategies
    compacting: dict[str, threading.Event] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """Whose sessions these are."""
        return self.settings.turnfold_owner

    def own(self, session_id: str) -> SessionRow:
        """Returns the session; whatever takes a session's id asks here first, so that each owner sees his own alone.

        Raises:
            NotFoundError: There is none by that id, or it's another owner's, which looks the same.
        """
        return self.stores.sessions.get(session_id, self.owner)

    def is_busy(self, session_id: str) -> bool:
        """Whether a turn of the session runs anywhere, or this server compacts it by hand."""
        return session_id in self.compacting or self.live_turn(session_id) is not None

    def live_turn(self, session_id: str) -> LiveTurn | None:
        """Returns how the session's running turn looks now, wherever it runs; None when nothing runs."""
        if (log := self.runner.running(session_id)) is not None:
            return log.view()
        last = self.stores.turns.last(session_id)
        if last is None or last.status != "running" or not self.stores.leases.holder_is_alive(session_id):
            return None
        text = last.partial_text
        return LiveTurn(
            last.number,
            last.attempt,
            "answering" if text else "waiting",
            (),
            text,
            (),
            last.stop_requested,
            is_here=False,
        )

    @contextmanager
    def between_turns(self, session_id: str) -> Iterator[Lease]:
        """Holds the lease of a session at rest; the next turn rebuilds its state if the tables have changed.

        Raises:
            BusyError: A turn is in progress.
        """
        if self.is_busy(session_id):
            raise BusyError
        lease = self.stores.leases.acquire(session_id, wait_seconds=AFTERMATH_SECONDS)
        try:
            self.recovery.reconcile(lease, self.own(session_id))
            yield lease
        finally:
            self.stores.leases.release(lease)

    def chosen(self, options: TurnOptions) -> dict[str, Any]:
        """Returns the settings that the options give a value.

        Raises:
            InputError: A value can't be taken.
        """
        changes: dict[str, Any] = {}
        if options.compression_rate is not None:
            changes["compression_rate"] = round_rate(options.compression_rate)
        if options.strategy is not None:
            if options.strategy not in self.strategies.by_name:
                raise InputError("bad_strategy", ", ".join(self.strategies.by_name))
            changes["strategy"] = options.strategy
        if options.model is not None:
            changes["model"] = options.model
        return changes

    def changes_of(self, session: SessionRow, options: TurnOptions) -> dict[str, Any]:
        """Returns what the options change of a session's settings.

        Raises:
            InputError: A value can't be taken.
        """
        given = self.chosen(options)
        return {name: value for name, value in given.items() if self._is_choice(session, name, value)}

    def _is_choice(self, session: SessionRow, name: str, value: object) -> bool:
        """Whether a setting's value changes something; a session that chose nothing goes on following the server's."""
        held = getattr(session, name)
        if name == "strategy":
            held = held or self.strategies.default.name
        elif name == "model":
            held = held or self.models.default_name
        return bool(value != held)
