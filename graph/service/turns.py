"""Sends, retries, stops and follows turns; each turn runs in a worker thread."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from langchain_core.messages import HumanMessage

from graph.core.casual import is_casual
from graph.core.text import check_text, plain_text, title_of
from graph.core.token import estimate_tokens
from graph.core.turn import text_of
from graph.error import BusyError, InputError, NotFoundError
from graph.event import Event
from graph.service.access import AFTERMATH_SECONDS, SessionAccess
from graph.service.turn_job import job_of
from graph.service.turn_stream import TurnStream, open_stream
from graph.service.turn_views import read_transcript
from graph.store.database import Lease
from graph.store.session import SessionRow
from graph.store.turn import TurnRow
from graph.view import LiveTurn, Transcript, TurnOptions

_SMALLEST_WINDOW_TOKENS = 1_000


class Turns:
    """The turns of one owner's sessions.

    Every method but `send` raises `NotFoundError` if this owner has no such session.
    """

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores
        self._owner = access.owner
        self._runner = access.runner
        self._settings = access.settings

    def send(
        self,
        session_id: str,
        text: str,
        *,
        message_id: str | None = None,
        options: TurnOptions | None = None,
        wait_seconds: float = 0.0,
    ) -> int:
        """Commits the user's message and starts its turn in a worker.

        Sending the same `message_id` again changes nothing and returns the same number. A refused message stores
        nothing.

        Args:
            session_id: The session; created if it doesn't exist.
            text: The message; NUL and lone surrogates become U+FFFD.
            message_id: The caller's id for the message; generated if None.
            options: Changes to the session's settings, from this turn on.
            wait_seconds: How long to wait for a turn in progress before refusing.

        Returns:
            The turn's number.

        Raises:
            InputError: The text or an option is invalid.
            NotFoundError: The session belongs to another owner.
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
            StoreError: The message couldn't be committed.
        """
        options = options or TurnOptions()
        message = self._accept(session_id, text, message_id, options)
        if (number := self._number_of(session_id, message)) is not None:
            return number
        try:
            with self._place(session_id, wait_seconds, opening=text_of(message)) as lease:
                turn, session = self._begin(lease, message, options)
                self._runner.submit(
                    job_of(self._access, lease, turn, session, options, said=message, messages=[message])
                )
                return turn.number
        except BusyError:
            # If the message was sent twice at once, the session may be busy with this very message.
            if (number := self._number_of(session_id, message)) is not None:
                return number
            raise

    def _accept(self, session_id: str, text: str, message_id: str | None, options: TurnOptions) -> HumanMessage:
        """Validates text and options, and returns the message to store."""
        check_text(text, max_chars=self._settings.message_chars)
        text = plain_text(text)
        self._access.chosen(options)
        self._check_window(session_id, text, options)
        return HumanMessage(text, id=message_id or f"user-{uuid.uuid4().hex}")

    def _begin(self, lease: Lease, message: HumanMessage, options: TurnOptions) -> tuple[TurnRow, SessionRow]:
        """Commits the message with its turn and the settings that change with it."""
        session = self._access.own(lease.session_id)
        changes = self._access.changes_of(session, options)
        session = replace(session, **changes)
        self._access.recovery.reconcile(lease, session)
        turn, is_new = self._stores.turns.begin(
            lease,
            owner=self._owner,
            message=message,
            model=session.model,
            is_casual=is_casual(text_of(message), self._last_answer(lease.session_id)),
            settings=changes,
            client=options.client_name,
        )
        if not is_new:
            raise BusyError  # the same message was sent twice at once, and the other call committed it
        return turn, session

    def retry(self, session_id: str, *, options: TurnOptions | None = None) -> int:
        """Runs a failed or stopped last turn again and returns its number.

        Raises:
            InputError: `not_last`: the last turn neither failed nor was stopped; or an option is invalid.
            BusyError: A turn is in progress.
        """
        return self._again(session_id, {"failed", "stopped"}, options or TurnOptions())

    def regenerate(self, session_id: str, *, options: TurnOptions | None = None) -> int:
        """Answers the last turn again and returns its number; the old answer stays in the archive only.

        Raises:
            InputError: `not_last`: the last turn isn't finished; or an option is invalid.
            BusyError: A turn is in progress.
        """
        return self._again(session_id, {"finished"}, options or TurnOptions())

    def follow(self, session_id: str, *, timeout_seconds: float | None = None) -> Iterator[Event]:
        """Yields all events of the newest turn that this process ran for the session; see `graph.event`.

        The iteration ends early after `timeout_seconds` without a new event.

        Raises:
            NotFoundError: This process ran no turn of the session.
        """
        self._access.own(session_id)
        log = self._runner.log(session_id)
        if log is None:
            raise NotFoundError(session_id)
        return log.follow(timeout_seconds=timeout_seconds)

    def stop(self, session_id: str) -> None:
        """Asks the running turn or compaction to end; the partial answer is kept. Does nothing if none runs."""
        self._access.own(session_id)
        if (log := self._runner.running(session_id)) is not None:
            log.stop.set()
        if (compaction := self._access.compacting.get(session_id)) is not None:
            compaction.set()
        last = self._stores.turns.last(session_id)
        if last is not None and last.status == "running":
            self._stores.turns.request_stop(session_id, last.number)

    def live(self, session_id: str, *, seen: LiveTurn | None = None, wait_seconds: float = 0.0) -> LiveTurn | None:
        """Returns the progress of the running turn, in whichever process it runs; None if none runs.

        Args:
            session_id: The session.
            seen: What the caller knows already.
            wait_seconds: How long to wait for something else than `seen`.
        """
        self._access.own(session_id)
        if wait_seconds and (log := self._runner.running(session_id)) is not None:
            log.wait_for_news(seen, wait_seconds)
        elif wait_seconds and seen is not None:
            time.sleep(wait_seconds)  # another process runs it, and writes down its text twice a second
        return self._access.live_turn(session_id)

    def stream(self, session_id: str, turn: int | None = None) -> TurnStream | None:
        """Returns a turn for a program to follow, the newest one if `turn` is None; None if there is none yet."""
        return open_stream(self._access, session_id, turn)

    def transcript(self, session_id: str, *, last: int = 30, before: int | None = None) -> Transcript:
        """Returns the newest `last` turns, or the newest before this number, each in its last attempt."""
        return read_transcript(self._access, session_id, last=last, before=before)

    def _check_window(self, session_id: str, text: str, options: TurnOptions) -> None:
        """Refuses a message that alone fills the context window, as no fold could make it fit."""
        tokens = estimate_tokens(text)
        if tokens < _SMALLEST_WINDOW_TOKENS:
            return
        name = options.model or ""
        with contextlib.suppress(NotFoundError):
            name = name or self._access.own(session_id).model
        window = self._access.models.window_tokens(name or self._access.models.default_name)
        if tokens >= window:
            raise InputError("over_window", f"≈{tokens} > {window}")

    def _number_of(self, session_id: str, message: HumanMessage) -> int | None:
        """Returns the turn of a message that is already archived, else None."""
        with contextlib.suppress(NotFoundError):
            return self._stores.archive.get(session_id, str(message.id)).turn
        return None

    def _again(self, session_id: str, statuses: set[str], options: TurnOptions) -> int:
        """Starts a new attempt of the last turn if its status is one of these."""
        self._access.chosen(options)
        self._access.own(session_id)
        with self._place(session_id, 0.0) as lease:
            session = self._access.own(session_id)
            self._access.recovery.reconcile(lease, session)
            last = self._stores.turns.last(session_id)
            if last is None or last.status not in statuses:
                raise InputError("not_last", f"{last.number if last else 0}")
            changes = self._access.changes_of(session, options)
            session = replace(session, **changes)
            turn = self._stores.turns.begin_attempt(
                lease,
                last.number,
                model=session.model,
                settings=changes,
                client=options.client_name,
            )
            self._access.recovery.rebuild(session)
            said = self._stores.archive.live_turns(session_id, turn.number, turn.number)[0].message
            self._runner.submit(job_of(self._access, lease, turn, session, options, said=said, messages=()))
        return turn.number

    @contextmanager
    def _place(self, session_id: str, wait_seconds: float, *, opening: str | None = None) -> Iterator[Lease]:
        """Reserves a slot of the server and acquires the lease. On error both are released; else the worker does it.

        Args:
            session_id: The session.
            wait_seconds: How long to wait for a turn in progress; 5 s for the clean-up after one are always allowed.
            opening: A message that may be the session's first: the session is created if need be, titled after it,
                and deleted on error if it is still empty.

        Raises:
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
        """
        if wait_seconds == 0 and self._access.is_busy(session_id):
            raise BusyError
        with ExitStack() as undo:
            self._runner.limiter.begin()
            undo.callback(self._runner.limiter.end)
            if opening is not None:
                rate = self._settings.compression_rate
                title = title_of(opening)
                self._stores.sessions.create(session_id, self._owner, title=title, compression_rate=rate, strategy="")
            lease = self._stores.leases.acquire(session_id, wait_seconds=max(wait_seconds, AFTERMATH_SECONDS))
            undo.callback(self._stores.leases.release, lease)
            if opening is not None:
                undo.callback(self._stores.sessions.discard_empty, lease)
            yield lease
            undo.pop_all()

    def _last_answer(self, session_id: str) -> str:
        """Returns the text of the assistant's last message, "" if there is none."""
        last = self._stores.turns.last(session_id)
        if last is None:
            return ""
        said = self._stores.archive.live_turns(session_id, last.number, last.number)
        return text_of(said[-1].message) if said else ""
