"""The one door for page, HTTP routes and tests: what can be asked of Turnfold; knows nothing of how it's shown."""

from __future__ import annotations

import contextlib
import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool

from graph.builder import build_graph
from graph.context import ContextKeeper
from graph.core.casual import is_casual
from graph.core.message import check_text, title_of
from graph.core.plain import plain_text
from graph.core.token import estimate_tokens
from graph.core.turn import text_of
from graph.error import BusyError, InputError, NotFoundError
from graph.event import Event
from graph.keeper import AFTERMATH_SECONDS
from graph.model.factory import ChatModels, open_models
from graph.node.context import TurnContext
from graph.recovery import StateRecovery
from graph.settings import Settings
from graph.store.database import Lease
from graph.store.session import SessionRow
from graph.store.stores import Stores, open_stores
from graph.store.turn import TurnRow
from graph.strategy.registry import build_strategies
from graph.tool.registry import ToolContext, build_tools
from graph.view import TurnOptions
from graph.worker.fold_worker import FoldWorker
from graph.worker.limiter import TurnLimiter
from graph.worker.turn_log import TurnLog
from graph.worker.turn_runner import Job, TurnRunner

_SMALLEST_WINDOW_TOKENS: Final = 1_000


class ChatService(ContextKeeper):
    """Sends, retries and follows turns; what else can be asked of sessions comes from `ContextKeeper` and above it.

    All methods may be called from any thread. Get one by `open_service`.
    """

    def new_session_id(self) -> str:
        """Returns an id for a new session; nothing is stored until its first message."""
        return secrets.token_urlsafe(12)

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
            text: What the user wrote; what no database takes in it becomes U+FFFD.
            message_id: The caller's id for the message; made here if None.
            options: Changes to the session's settings, from this turn on.
            wait_seconds: How long to wait for a turn in progress before refusing.

        Returns:
            The turn's number.

        Raises:
            InputError: The text can't be taken; nothing was stored.
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a cap of the server is reached.
            StoreError: It couldn't be committed.
        """
        check_text(text, max_chars=self.settings.message_chars)
        text = plain_text(text)
        options = options or TurnOptions()
        self._changes(options)
        self._check_window(session_id, text, options)
        message = HumanMessage(text, id=message_id or f"user-{uuid.uuid4().hex}")
        if (number := self._number_of(session_id, message)) is not None:
            return number
        try:
            with self._place(session_id, wait_seconds, opening=text) as lease:
                return self._begin(lease, message, options)
        except BusyError:
            # Sent twice at once, the message itself may be what the session is busy with.
            if (number := self._number_of(session_id, message)) is not None:
                return number
            raise

    def _begin(self, lease: Lease, message: HumanMessage, options: TurnOptions) -> int:
        """Commits the message with its turn and the settings that change with it, and hands the turn to a worker."""
        session = self._own(lease.session_id)
        changes = self._changes_of(session, options)
        session = replace(session, **changes)
        self._recovery.reconcile(lease, session)
        turn, is_new = self._stores.turns.begin(
            lease,
            owner=self._owner,
            message=message,
            model=session.model,
            is_casual=is_casual(text_of(message), self._last_answer(lease.session_id)),
            settings=changes,
        )
        if not is_new:
            raise BusyError  # sent twice at once, and the other one was first
        self._launch(lease, turn, session, options, message)
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

    def follow(self, session_id: str, *, timeout_seconds: float | None = None) -> Iterator[Event]:
        """Yields the events of the session's newest turn in this process, from its first on, until its last.

        Raises:
            NotFoundError: There is no such session, or no turn of it ran in this process.
        """
        self._own(session_id)
        log = self._runner.log(session_id)
        if log is None:
            raise NotFoundError(session_id)
        return log.follow(timeout_seconds=timeout_seconds)

    def _check_window(self, session_id: str, text: str, options: TurnOptions) -> None:
        """Refuses a message that no fold could make fit, before anything is stored.

        Raises:
            InputError: `over_window`.
        """
        tokens = estimate_tokens(text)
        if tokens < _SMALLEST_WINDOW_TOKENS:
            return
        name = options.model or ""
        with contextlib.suppress(NotFoundError):
            name = name or self._own(session_id).model
        window = self._models.window_tokens(name or self._models.default_name)
        if tokens >= window:
            raise InputError("over_window", f"≈{tokens} > {window}")

    def _number_of(self, session_id: str, message: HumanMessage) -> int | None:
        """Returns the turn of a message that is in the archive already, None if it isn't."""
        with contextlib.suppress(NotFoundError):
            return self._stores.archive.get(session_id, str(message.id)).turn
        return None

    def _again(self, session_id: str, statuses: set[str], options: TurnOptions) -> int:
        """Starts a new attempt of the last turn if it ended in one of these ways."""
        self._changes(options)
        self._own(session_id)
        with self._place(session_id, 0.0) as lease:
            session = self._own(session_id)
            self._recovery.reconcile(lease, session)
            last = self._stores.turns.last(session_id)
            if last is None or last.status not in statuses:
                raise InputError("not_last", f"{last.number if last else 0}")
            changes = self._changes_of(session, options)
            session = replace(session, **changes)
            turn = self._stores.turns.begin_attempt(lease, last.number, model=session.model, settings=changes)
            self._recovery.rebuild(session)
            self._launch(lease, turn, session, options, None)
        return turn.number

    @contextmanager
    def _place(self, session_id: str, wait_seconds: float, *, opening: str | None = None) -> Iterator[Lease]:
        """Takes a place and the session's lease; gives both back if the block fails, else the launched turn does.

        Args:
            session_id: The session.
            wait_seconds: How long to wait for a turn in progress; past the chores after one it always waits.
            opening: The first message of a session that isn't there yet: it's made, and goes again if that is refused.

        Raises:
            ServerBusyError: All places are taken.
            TurnRateError: Too many turns began within the last minute.
            BusyError: A turn is in progress.
        """
        if wait_seconds == 0 and self._is_busy(session_id):
            raise BusyError
        with ExitStack() as undo:
            self._runner.limiter.begin()
            undo.callback(self._runner.limiter.end)
            if opening is not None:
                rate = self.settings.compression_rate
                title = title_of(opening)
                self._stores.sessions.create(session_id, self._owner, title=title, compression_rate=rate, strategy="")
            lease = self._stores.leases.acquire(session_id, wait_seconds=max(wait_seconds, AFTERMATH_SECONDS))
            undo.callback(self._stores.leases.release, lease)
            if opening is not None:
                undo.callback(self._stores.sessions.discard_empty, lease)
            yield lease
            undo.pop_all()

    def _launch(
        self, lease: Lease, turn: TurnRow, session: SessionRow, options: TurnOptions, message: HumanMessage | None
    ) -> None:
        log = TurnLog(session.session_id, turn.number, turn.attempt)
        context = TurnContext(
            lease=lease,
            owner=self._owner,
            turn=turn.number,
            attempt=turn.attempt,
            model=session.model,
            strategy=self._strategies.of(session.strategy),
            stop=log.stop,
            time_zone=options.time_zone,
            history_tokens=turn.history_tokens,
        )
        self._runner.submit(log, Job(context, turn, message, session.compression_rate))

    def _last_answer(self, session_id: str) -> str:
        """Returns what the assistant said last, "" at the beginning."""
        last = self._stores.turns.last(session_id)
        if last is None:
            return ""
        said = self._stores.archive.live_turns(session_id, last.number, last.number)
        return text_of(said[-1].message) if said else ""


@contextmanager
def open_service(
    settings: Settings,
    *,
    clock: Callable[[], datetime] | None = None,
    models: Callable[[Settings], AbstractContextManager[ChatModels]] = open_models,
    tools: Callable[[ToolContext], list[BaseTool]] = build_tools,
    stores: Callable[[Settings, Callable[[], datetime]], AbstractContextManager[Stores]] = open_stores,
) -> Iterator[ChatService]:
    """Opens everything that a server needs and closes it in order; running turns end as stopped.

    Args:
        settings: See `graph.settings`.
        clock: The time now, UTC; the computer's own if None.
        models: Opens the models that answer and summarise.
        tools: Makes the tools of one turn.
        stores: Opens the stores, given the clock.

    Raises:
        DatabaseError: The database can't be used; the subclass says why.
    """
    now = clock or (lambda: datetime.now(UTC))
    with stores(settings, now) as chat_stores, models(settings) as chat_models, ExitStack() as stack:
        fold_worker = FoldWorker(
            stores=chat_stores,
            summariser=lambda model: chat_models.summariser(chat_models.summary_name(model)),
            clock=now,
            deadline_seconds=settings.fold_deadline_seconds,
            input_tokens=chat_models.input_tokens,
        )
        stack.callback(fold_worker.close)
        graph = build_graph(
            models=chat_models, fold_worker=fold_worker, tools=tools, stores=chat_stores, clock=now, settings=settings
        )
        strategies = build_strategies(
            settings.limits, default_name=settings.context_strategy, is_enabled=settings.app_context_enabled
        )
        recovery = StateRecovery(graph, chat_stores, strategies)
        limiter = TurnLimiter(concurrent_turns=settings.concurrent_turns, turns_per_minute=settings.turns_per_minute)
        runner = TurnRunner(
            graph=graph,
            stores=chat_stores,
            recovery=recovery,
            fold_worker=fold_worker,
            limiter=limiter,
            max_workers=settings.concurrent_turns,
        )
        stack.callback(runner.close)
        yield ChatService(settings, chat_stores, chat_models, runner, recovery, fold_worker, strategies)
