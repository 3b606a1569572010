"""Sends, retries, stops and follows turns; each turn runs in a worker thread."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from langchain_core.messages import HumanMessage

from graph.client import ClientMessage
from graph.core.image import data_urls
from graph.core.recognise import Decision
from graph.core.text import plain_text
from graph.core.turn import text_of
from graph.error import BusyError, NotFoundError
from graph.event import Event
from graph.service.accepted import accepted
from graph.service.access import AFTERMATH_SECONDS, SessionAccess
from graph.service.attempt import run_again
from graph.service.beginning import begin_turn
from graph.service.branch import ask_in_branch
from graph.service.imported import check_history, import_history
from graph.service.reservation import check_unchanged, opening_of, reserved
from graph.service.resumption import resume
from graph.service.turn_job import job_of
from graph.service.turn_stream import TurnStream, open_stream
from graph.service.turn_views import read_transcript
from graph.view import BegunTurn, LiveTurn, Rating, Transcript, TurnOptions


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
        images: Sequence[str] = (),
        wait_seconds: float = 0.0,
        decision: Decision | None = None,
    ) -> int:
        """Commits the user's message and starts its turn in a worker.

        Sending the same `message_id` again changes nothing and returns the same number. A refused message stores
        nothing.

        Args:
            session_id: The session; created if it doesn't exist.
            text: The message; NUL and lone surrogates become U+FFFD, in the ids too.
            message_id: The caller's id for the message; generated if None.
            options: Changes to the session's settings, from this turn on.
            images: URLs of images that go with the text, which may be empty then: `data:` URLs, kept with the session,
                or addresses that the provider fetches, not we.
            wait_seconds: How long to wait for a turn in progress before refusing.
            decision: How a program's request was recognised; None for the page.

        Returns:
            The turn's number.

        Raises:
            InputError: The text or an option is invalid.
            NotFoundError: The session belongs to another owner, or the owner was withdrawn.
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
            StoreError: The message couldn't be committed.
        """
        options = options or TurnOptions()
        session_id = plain_text(session_id)
        anchor = decision.anchor if decision else None
        message = accepted(self._access, session_id, text, message_id, options, images)
        if message_id is not None and (number := self._number_of(session_id, message)) is not None:
            return number
        imported = decision.imported if decision else ()
        check_history(imported)
        if decision is not None:
            self._stop_first(session_id, decision)
        try:
            opening = opening_of(text_of(message), options, decision)
            with reserved(self._access, session_id, wait_seconds, opening=opening) as lease:
                check_unchanged(self._access, session_id, decision)
                with self._stores.database.writing() if imported else contextlib.nullcontext():
                    if imported:
                        # Behind a turn that is left open, it would stay open for good: only the last one is closed.
                        self._access.recovery.reconcile(lease, self._access.own(session_id))
                        import_history(self._access, lease, imported, client=options.client_name, model="")
                    turn, session = begin_turn(self._access, lease, message, options, anchor, data_urls(images))
                job = job_of(self._access, lease, turn, session, options, messages=[message], anchor=anchor)
                self._runner.submit(job)
                return turn.number
        except BusyError:
            # If the message was sent twice at once, the session may be busy with this very message.
            if (number := self._number_of(session_id, message)) is not None:
                return number
            raise

    def _stop_first(self, session_id: str, decision: Decision) -> None:
        """Ends a turn to which its program no longer listens."""
        if decision.stop_first:
            self.stop(session_id)
            if (log := self._runner.running(session_id)) is not None:
                log.wait_for_end(AFTERMATH_SECONDS)

    def retry(self, session_id: str, *, options: TurnOptions | None = None) -> int:
        """Runs a failed or stopped last turn again, or one that waits for a program, and returns its number.

        Raises:
            InputError: `not_last`: the last turn is none of these; or an option is invalid.
            BusyError: A turn is in progress.
        """
        return run_again(self._access, session_id, {"failed", "stopped"}, options or TurnOptions())

    def regenerate(self, session_id: str, *, turn: int | None = None, options: TurnOptions | None = None) -> BegunTurn:
        """Answers a turn again: the last one in its place, an earlier one in a branch of the session.

        The old answer of the last turn stays in the archive only; with an earlier turn the session stays as it is.

        Args:
            session_id: The session.
            turn: The turn; None for the last one.
            options: See `send`.

        Raises:
            NotFoundError: There is no such turn.
            InputError: `not_last`: the last turn is neither finished nor waits for a program; or an option is
                invalid.
            BusyError: The last turn is the one and in progress, or a limit of the server is reached.
        """
        options = options or TurnOptions()
        if turn not in {None, self._access.own(session_id).turn_count}:
            return ask_in_branch(self._access, self.send, session_id, turn, options)
        return BegunTurn(session_id, run_again(self._access, session_id, {"finished"}, options, turn=turn))

    def edit(self, session_id: str, turn: int, text: str, *, options: TurnOptions | None = None) -> str:
        """Asks something else in place of a turn's question, in a branch of the session, and returns the branch's id.

        The branch has the turns before that one, and the question's images; this session stays as it is.

        Args:
            session_id: The session; a turn of it may be running.
            turn: The turn.
            text: The message in place of the turn's.
            options: See `send`.

        Raises:
            NotFoundError: There is no such turn.
            InputError: The text or an option is invalid.
            BusyError: A limit of the server is reached.
        """
        return ask_in_branch(self._access, self.send, session_id, turn, options or TurnOptions(), text=text).session_id

    def rate(self, session_id: str, turn: int, rating: Rating, *, attempt: int | None = None) -> None:
        """Keeps how good the user finds a turn's answer; the next attempt of the turn has no rating again.

        Args:
            session_id: The session.
            turn: The turn.
            rating: The rating.
            attempt: The attempt whose answer the user read; if it isn't the last one any more, nothing is kept. None
                for the last one.

        Raises:
            NotFoundError: There is no such turn, or it has no answer yet.
        """
        self._access.own(session_id)
        self._stores.turns.rate(session_id, turn, rating, attempt=attempt)

    def answer_anew(self, session_id: str, *, options: TurnOptions, decision: Decision) -> int:
        """Answers the last turn again for a program that sent its question again, however the turn ended.

        Raises:
            InputError: An option is invalid.
            BusyError: A turn is in progress.
        """
        return run_again(self._access, session_id, {"finished", "failed", "stopped"}, options, decision)

    def resume(
        self,
        session_id: str,
        answers: Sequence[ClientMessage],
        *,
        options: TurnOptions | None = None,
        decision: Decision | None = None,
    ) -> int:
        """Goes on with the turn that waits for a program, in the same attempt, and returns its number.

        The same answers once more go on with a turn whose server died meanwhile.

        Args:
            session_id: The session.
            answers: The program's answers to all calls of `ActionRequired`, in any order. Its copy of the assistant's
                message may be among them, and is compared.
            options: See `send`.
            decision: See `send`.

        Raises:
            InputError: `unanswered_call` or `unknown_call`, with their ids, the latter also for a turn that was closed
                meanwhile; `too_long`; or an option is invalid.
            BusyError: See `send`.
        """
        return resume(self._access, session_id, answers, options or TurnOptions(), decision)

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
        """Asks the running turn or compaction to end; the partial answer is kept. Does nothing if none runs.

        A turn that waits for a program is closed.
        """
        self._access.own(session_id)
        if (log := self._runner.running(session_id)) is not None:
            log.stop.set()
        if (compaction := self._access.compacting.get(session_id)) is not None:
            compaction.set()
        last = self._stores.turns.last(session_id)
        if last is not None and last.status == "running":
            self._stores.turns.request_stop(session_id, last.number)
        elif last is not None and last.is_open:
            with contextlib.suppress(BusyError), self._access.between_turns(session_id, keeps_waiting=False):
                pass  # to hold the lease closes it

    def live(self, session_id: str, *, seen: LiveTurn | None = None, wait_seconds: float = 0.0) -> LiveTurn | None:
        """Returns the progress of the running turn, in whichever process it runs; None if none runs.

        Args:
            session_id: The session.
            seen: What the caller knows already.
            wait_seconds: How long to wait for something else than `seen`.
        """
        self._access.own(session_id)
        log = self._access.followed(session_id, seen) if wait_seconds else None
        if log is not None:
            log.wait_for_news(seen, wait_seconds)
            if not log.is_over:
                return log.view()
        return self._access.live_turn(session_id)

    def stream(self, session_id: str, turn: int | None = None) -> TurnStream | None:
        """Returns a turn for a program to follow, the newest one if `turn` is None; None if there is none yet."""
        return open_stream(self._access, session_id, turn)

    def transcript(self, session_id: str, *, last: int = 30, before: int | None = None) -> Transcript:
        """Returns the newest `last` turns, or the newest before this number, each in its last attempt."""
        return read_transcript(self._access, session_id, last=last, before=before)

    def _number_of(self, session_id: str, message: HumanMessage) -> int | None:
        """Returns the turn of a message that is already archived, else None.

        Raises:
            NotFoundError: It is archived, in a session of another owner.
        """
        try:
            number = self._stores.archive.get(session_id, str(message.id)).turn
        except NotFoundError:
            return None
        self._access.own(session_id)
        return number
