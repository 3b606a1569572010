"""The one door for page, HTTP routes and tests: what can be asked of Turnfold; knows nothing of how it's shown."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from langchain_core.messages import HumanMessage

from graph.builder import build_graph
from graph.core.casual import is_casual
from graph.core.message import check_text, title_of
from graph.core.schedule import round_rate
from graph.core.strategy.registry import Strategies, build_strategies
from graph.core.token import measure
from graph.core.turn import text_of
from graph.error import BusyError, InputError, NotFoundError
from graph.event import Event
from graph.fold import Folder
from graph.live import LiveLog
from graph.model.factory import ChatModels, open_models
from graph.node.context import TurnContext
from graph.reader import SessionReader
from graph.runner import Job, TurnRunner
from graph.settings import Settings
from graph.settle import Settler
from graph.store.lease import Hold
from graph.store.opening import Stores, open_stores
from graph.store.session import SessionRow
from graph.store.turn import TurnRow
from graph.tool.registry import build_tools
from graph.view import SessionView, TurnOptions

_AFTERMATH_SECONDS: Final = 5.0


class ChatService(SessionReader):
    """Sends, retries and stops turns, and keeps sessions; what can be read of them comes from `SessionReader`.

    All methods may be called from any thread. Get one by `open_service`.
    """

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        models: ChatModels,
        runner: TurnRunner,
        settler: Settler,
        folder: Folder,
        strategies: Strategies,
    ) -> None:
        super().__init__(settings, stores, models, runner, strategies)
        self._settler = settler
        self._folder = folder

    def new_session_id(self) -> str:
        """Returns an id for a new session; nothing is stored until its first message."""
        return uuid.uuid4().hex

    def send(
        self,
        session_id: str,
        text: str,
        *,
        message_id: str | None = None,
        options: TurnOptions | None = None,
        wait_seconds: float = 0.0,
    ) -> int:
        """Commits a message of the user and starts its turn in a worker.

        Sending the same `message_id` again changes nothing and returns the number it had.

        Args:
            session_id: The session; it's made if it isn't there.
            text: What the user wrote.
            message_id: The caller's id for the message; made here if None.
            options: Changes to the session's settings, from this turn on.
            wait_seconds: How long to wait for a turn in progress before refusing.

        Returns:
            The turn's number.

        Raises:
            InputError: The text can't be taken; nothing was stored.
            BusyError: A turn is in progress.
            StoreError: It couldn't be committed.
        """
        check_text(text, max_chars=self.settings.message_chars)
        options = options or TurnOptions()
        message = HumanMessage(text, id=message_id or f"user-{uuid.uuid4().hex}")
        self._stores.sessions.create(
            session_id,
            self._owner,
            title=title_of(text),
            compression_rate=self.settings.compression_rate,
            strategy="",
        )
        with contextlib.suppress(NotFoundError):
            return self._stores.archive.get(session_id, str(message.id)).turn
        session = self._configured(session_id, options)
        hold = self._take(session_id, wait_seconds)
        with self._released_on_error(hold):
            self._settler.settle(hold, owner=self._owner, language=options.language)
            chars, tokens = measure(message)
            turn, is_new = self._stores.turns.begin(
                hold,
                owner=self._owner,
                message=message,
                chars=chars,
                tokens=tokens,
                model=session.model,
                is_casual=is_casual(text, self._last_answer(session_id)),
            )
            if is_new:
                self._launch(hold, turn, session, options, message)
            else:
                self._stores.leases.release(hold)
        return turn.number

    def retry(self, session_id: str, *, options: TurnOptions | None = None) -> int:
        """Runs a failed or stopped last turn again, under its number.

        Raises:
            InputError: The last turn isn't one that failed or was stopped.
            BusyError: A turn is in progress.
        """
        return self._again(session_id, {"failed", "stopped"}, options or TurnOptions())

    def regenerate(self, session_id: str, *, options: TurnOptions | None = None) -> int:
        """Answers the last turn once more; the new attempt counts, the old one stays in the archive.

        Raises:
            InputError: There is no finished last turn.
            BusyError: A turn is in progress.
        """
        return self._again(session_id, {"finished"}, options or TurnOptions())

    def stop(self, session_id: str) -> None:
        """Asks the running turn to end, keeping what it has said; does nothing if none runs."""
        if (log := self._runner.running(session_id)) is not None:
            log.stop.set()
        last = self._stores.turns.last(session_id)
        if last is not None and last.status == "running":
            self._stores.turns.request_stop(session_id, last.number)

    def follow(self, session_id: str, *, timeout_seconds: float | None = None) -> Iterator[Event]:
        """Yields the events of the session's newest turn in this process, from its first on, until its last.

        Raises:
            NotFoundError: No turn of the session ran in this process.
        """
        log = self._runner.log(session_id)
        if log is None:
            raise NotFoundError(session_id)
        return log.follow(timeout_seconds=timeout_seconds)

    def configure(
        self,
        session_id: str,
        *,
        compression_rate: float | None = None,
        strategy: str | None = None,
        model: str | None = None,
    ) -> SessionView:
        """Changes a session's settings, from the next fold and the next turn on.

        Raises:
            InputError: A value can't be taken.
            NotFoundError: There is no such session.
        """
        options = TurnOptions(compression_rate=compression_rate, strategy=strategy, model=model)
        session = self._configured(session_id, options)
        if self._runner.running(session_id) is None:
            # What was prepared at another rate no longer fits: begin anew now, so that the next turn needn't wait.
            self._folder.prepare_due(session_id, owner=self._owner, strategy=self._strategies.of(session.strategy))
        return self.session(session_id)

    def rename(self, session_id: str, title: str) -> None:
        """Gives a session another title.

        Raises:
            InputError: The title is blank.
            NotFoundError: There is no such session.
        """
        check_text(title, max_chars=self.settings.message_chars)
        self._stores.sessions.rename(session_id, self._owner, title_of(title))

    def delete(self, session_id: str) -> None:
        """Deletes a session with all that belongs to it, after ending its running turn.

        Raises:
            NotFoundError: There is no such session.
            BusyError: Its turn could not be ended in time.
        """
        self._stores.sessions.get(session_id, self._owner)
        self.stop(session_id)
        hold = self._stores.leases.acquire(session_id, wait_seconds=_AFTERMATH_SECONDS)
        try:
            self._stores.checkpointer.delete_thread(session_id)
            self._stores.sessions.delete(session_id, self._owner)
        finally:
            self._stores.leases.release(hold)

    def rebuild(self, session_id: str) -> None:
        """Makes a session's graph state anew from the archive and the record table.

        Raises:
            NotFoundError: There is no such session.
            BusyError: A turn is in progress.
        """
        self._stores.sessions.get(session_id, self._owner)
        hold = self._stores.leases.acquire(session_id)
        try:
            self._settler.rebuild(session_id, owner=self._owner)
        finally:
            self._stores.leases.release(hold)

    def _again(self, session_id: str, statuses: set[str], options: TurnOptions) -> int:
        """Starts a new attempt of the last turn if it ended in one of these ways."""
        session = self._configured(session_id, options)
        hold = self._take(session_id, 0.0)
        with self._released_on_error(hold):
            self._settler.settle(hold, owner=self._owner, language=options.language)
            last = self._stores.turns.last(session_id)
            if last is None or last.status not in statuses:
                raise InputError("not_last", f"{last.number if last else 0}")
            turn = self._stores.turns.begin_attempt(hold, last.number, model=session.model)
            self._launch(hold, turn, session, options, None)
        return turn.number

    def _configured(self, session_id: str, options: TurnOptions) -> SessionRow:
        """Writes the settings that the options change and returns the session as it then is."""
        changes: dict[str, Any] = {}
        if options.compression_rate is not None:
            changes["compression_rate"] = round_rate(options.compression_rate)
        if options.strategy is not None:
            if options.strategy not in self._strategies.by_name:
                raise InputError("bad_strategy", ", ".join(self._strategies.by_name))
            changes["strategy"] = options.strategy
        if options.model is not None:
            changes["model"] = options.model
        session = self._stores.sessions.get(session_id, self._owner)
        if not session.strategy and changes.get("strategy") == self._strategies.default.name:
            # Choosing what holds anyway is no choice: the session goes on following the server's default.
            del changes["strategy"]
        if all(getattr(session, name) == value for name, value in changes.items()):
            return session
        self._stores.sessions.update(session_id, self._owner, **changes)
        return self._stores.sessions.get(session_id, self._owner)

    def _take(self, session_id: str, wait_seconds: float) -> Hold:
        """Takes the session's lease; while a turn runs only if told to wait, else past the chores after one.

        Raises:
            BusyError: A turn is in progress.
        """
        if wait_seconds == 0 and self.live(session_id) is not None:
            raise BusyError
        return self._stores.leases.acquire(session_id, wait_seconds=max(wait_seconds, _AFTERMATH_SECONDS))

    @contextmanager
    def _released_on_error(self, hold: Hold) -> Iterator[None]:
        """Frees the session if its turn couldn't be started; a started one is freed by its worker."""
        try:
            yield
        except BaseException:
            self._stores.leases.release(hold)
            raise

    def _launch(
        self, hold: Hold, turn: TurnRow, session: SessionRow, options: TurnOptions, message: HumanMessage | None
    ) -> None:
        log = LiveLog(session.session_id, turn.number, turn.attempt)
        context = TurnContext(
            hold=hold,
            owner=self._owner,
            turn=turn.number,
            attempt=turn.attempt,
            model=session.model,
            strategy=self._strategies.of(session.strategy),
            stop=log.stop,
            time_zone=options.time_zone,
            language=options.language,
            history_tokens=turn.history_tokens,
        )
        self._runner.submit(log, Job(context, turn, message, session.compression_rate, options.language))

    def _last_answer(self, session_id: str) -> str:
        """Returns what the assistant said last, "" at the beginning."""
        last = self._stores.turns.last(session_id)
        if last is None:
            return ""
        said = self._stores.archive.live_turns(session_id, last.number, last.number)
        return text_of(said[-1].message) if said else ""


@contextmanager
def open_service(settings: Settings, *, clock: Callable[[], datetime] | None = None) -> Iterator[ChatService]:
    """Opens everything that a server needs and closes it in order; running turns end as stopped.

    Args:
        settings: See `graph.settings`.
        clock: The time now, UTC; the computer's own if None.

    Raises:
        DatabaseError: The database can't be used; the subclass says why.
    """
    now = clock or (lambda: datetime.now(UTC))
    with open_stores(settings, now) as stores, open_models(settings) as models, ExitStack() as stack:
        folder = Folder(
            stores=stores,
            summariser=lambda model: models.summariser(models.summary_name(model)),
            clock=now,
            deadline_seconds=settings.fold_deadline_seconds,
        )
        stack.callback(folder.close)
        graph = build_graph(
            models=models, summariser=folder, tools=build_tools, stores=stores, clock=now, settings=settings
        )
        settler = Settler(graph, stores)
        runner = TurnRunner(
            graph=graph, stores=stores, settler=settler, folder=folder, max_workers=settings.concurrent_turns
        )
        stack.callback(runner.close)
        strategies = build_strategies(
            settings.limits, default_name=settings.context_strategy, is_enabled=settings.app_context_enabled
        )
        yield ChatService(settings, stores, models, runner, settler, folder, strategies)
