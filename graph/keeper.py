"""What can be done to a session beside talking in it: settings, name, stop, delete; starts no turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from graph.core.message import check_text, title_of
from graph.core.plain import plain_text
from graph.core.schedule import round_rate
from graph.error import InputError
from graph.model.factory import ChatModels
from graph.reader import SessionReader
from graph.recovery import StateRecovery
from graph.settings import Settings
from graph.store.session import SessionRow
from graph.store.stores import Stores
from graph.strategy.registry import Strategies
from graph.view import SessionView, TurnOptions
from graph.worker.fold_worker import FoldWorker
from graph.worker.turn_runner import TurnRunner

AFTERMATH_SECONDS: Final = 5.0


class SessionKeeper(SessionReader):
    """Keeps the sessions of one owner; what can be read of them comes from `SessionReader`."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        models: ChatModels,
        runner: TurnRunner,
        recovery: StateRecovery,
        fold_worker: FoldWorker,
        strategies: Strategies,
    ) -> None:
        super().__init__(settings, stores, models, runner, recovery, strategies)
        self._fold_worker = fold_worker

    def stop(self, session_id: str) -> None:
        """Asks the running turn or compaction to end, keeping what was said; does nothing if none runs.

        Raises:
            NotFoundError: There is no such session.
        """
        self._own(session_id)
        if (log := self._runner.running(session_id)) is not None:
            log.stop.set()
        if (compaction := self._compacting.get(session_id)) is not None:
            compaction.set()
        last = self._stores.turns.last(session_id)
        if last is not None and last.status == "running":
            self._stores.turns.request_stop(session_id, last.number)

    def configure(
        self,
        session_id: str,
        *,
        compression_rate: float | None = None,
        strategy: str | None = None,
        model: str | None = None,
    ) -> SessionView:
        """Changes a session's settings, from the next fold and the next turn on.

        Folds that are due begin anew by them; if no model can be reached for that, the settings are kept all the same.

        Raises:
            InputError: A value can't be taken.
            NotFoundError: There is no such session.
        """
        options = TurnOptions(compression_rate=compression_rate, strategy=strategy, model=model)
        session = self._configured(session_id, options)
        # What was prepared at another rate no longer fits: begin anew now, so that the next turn needn't wait.
        self._fold_worker.prepare_due(session_id, owner=self._owner, strategy=self._strategies.of(session.strategy))
        return self.session(session_id)

    def rename(self, session_id: str, title: str) -> None:
        """Gives a session another title.

        Raises:
            InputError: The title is blank.
            NotFoundError: There is no such session.
        """
        check_text(title, max_chars=self.settings.message_chars)
        title = plain_text(title)
        self._stores.sessions.rename(session_id, self._owner, title_of(title))

    def delete(self, session_id: str) -> None:
        """Deletes a session with all that belongs to it, after ending its running turn.

        Raises:
            NotFoundError: There is no such session.
            BusyError: Its turn could not be ended in time.
        """
        self.stop(session_id)
        lease = self._stores.leases.acquire(session_id, wait_seconds=AFTERMATH_SECONDS)
        try:
            self._stores.checkpointer.delete_thread(session_id)
            self._stores.sessions.delete(session_id, self._owner)
            self._fold_worker.forget(session_id)
            self._runner.forget(session_id)
        finally:
            self._stores.leases.release(lease)

    def rebuild(self, session_id: str) -> None:
        """Makes a session's graph state anew from the archive and the record table.

        Raises:
            NotFoundError: There is no such session.
            BusyError: A turn is in progress.
        """
        session = self._own(session_id)
        lease = self._stores.leases.acquire(session_id)
        try:
            self._recovery.rebuild(session)
        finally:
            self._stores.leases.release(lease)

    def _configured(self, session_id: str, options: TurnOptions) -> SessionRow:
        """Writes the settings that the options change and returns the session as it then is."""
        session = self._own(session_id)
        changes = self._changes_of(session, options)
        if changes:
            self._stores.sessions.update(session_id, self._owner, **changes)
        return replace(session, **changes)

    def _changes_of(self, session: SessionRow, options: TurnOptions) -> dict[str, Any]:
        """Returns what the options change of a session's settings.

        Raises:
            InputError: A value can't be taken.
        """
        given = self._changes(options)
        return {name: value for name, value in given.items() if self._is_choice(session, name, value)}

    def _is_choice(self, session: SessionRow, name: str, value: object) -> bool:
        """Whether a setting's value changes something; a session that chose nothing goes on following the server's."""
        held = getattr(session, name)
        if name == "strategy":
            held = held or self._strategies.default.name
        elif name == "model":
            held = held or self.default_model()
        return bool(value != held)

    def _changes(self, options: TurnOptions) -> dict[str, Any]:
        """Returns the settings that the options give a value.

        Raises:
            InputError: A value can't be taken.
        """
        changes: dict[str, Any] = {}
        if options.compression_rate is not None:
            changes["compression_rate"] = round_rate(options.compression_rate)
        if options.strategy is not None:
            if options.strategy not in self._strategies.by_name:
                raise InputError("bad_strategy", ", ".join(self._strategies.by_name))
            changes["strategy"] = options.strategy
        if options.model is not None:
            changes["model"] = options.model
        return changes
