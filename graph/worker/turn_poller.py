"""Follows turns of other processes: one thread polls all of them and extends their local logs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from graph.core.turn import INTERRUPTED, closed_mark, ending_of, is_archived, text_of, unanswered_calls
from graph.recognise.client_turns import is_imported
from graph.store.fingerprint import FingerprintStore
from graph.store.stores import ChatStores
from graph.store.turn import TurnKey, TurnProgress, TurnRow
from graph.value.error import NotFoundError, StoreError
from graph.value.event import (
    AnswerRestarted,
    ThoughtDelta,
    TokenDelta,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnStarted,
)
from graph.value.record import ArchivedMessage
from graph.value.view import ToolStep
from graph.worker.turn_log import TurnLog, answers_in, last_event, steps_in


class DistantTurn:
    """An attempt of a turn run by another process, reconstructed from its rows.

    Text arrives every half second, tool calls once their answer is archived, and folds not at all. The log is over once
    the turn has ended, or another attempt has started. `begin` messages come before the log's start.
    """

    def __init__(self, row: TurnRow, messages: Sequence[AnyMessage], *, begin: int = 0, thoughts: str = "") -> None:
        before = messages[:begin]
        answers, steps = "\n\n".join(answers_in(before)), tuple(steps_in(before))
        self.log = TurnLog(row.number, row.attempt, text=answers, steps=steps, is_copy=True)
        self._taken = begin
        self._saying = ""
        self._thoughts = self._thoughts_before = ""
        self.log.append(TurnStarted(row.session_id, row.number, row.attempt))
        self.take(row, messages, thoughts)

    def take(self, row: TurnRow, messages: Sequence[AnyMessage], thoughts: str = "") -> None:
        if row.attempt != self.log.attempt_key[1]:
            self.fail(INTERRUPTED)
        if self.log.is_over:
            return
        if row.stop_requested:
            self.log.stop.set()
        waiting = set(unanswered_calls(messages)) if row.is_waiting else set()
        steps = {step.call_id: step for step in steps_in(messages) if step.call_id not in waiting}
        if row.status == "running":
            self._think(thoughts)
        for message in messages[self._taken :]:
            self._add(message, steps)
        self._taken = max(self._taken, len(messages))
        if row.status != "running":
            self.log.append(last_event(row, messages))
        elif not is_archived(row.partial_text, messages):
            self._say(row.partial_text)

    def abandon(self, row: TurnRow, messages: Sequence[AnyMessage]) -> None:
        """Ends the log of a turn whose process died, with the state shown until the next message closes the turn."""
        status, code = ending_of(messages, stop_requested=row.stop_requested)
        self.take(replace(row, status=status, error_code=code), messages)

    def fail(self, code: str) -> None:
        if not self.log.is_over:
            self.log.append(TurnFailed(self.log.attempt_key[0], code, ""))

    def _add(self, message: AnyMessage, steps: dict[str, ToolStep]) -> None:
        if isinstance(message, ToolMessage):
            step = steps[message.tool_call_id]
            is_error, seconds = step.status in {"error", "declined"}, step.seconds or 0.0
            self.log.append(
                ToolFinished(step.call_id, step.name, step.result, is_error, seconds, step.turns, step.images)
            )
        elif isinstance(message, AIMessage):
            mark = closed_mark(message)
            if mark is None or mark.get("is_partial"):
                self._say(text_of(message))
            for started in filter(None, (steps.get(str(call["id"])) for call in message.tool_calls)):
                self.log.append(
                    ToolStarted(started.call_id, started.name, started.arguments, started.server, started.title)
                )
            if message.tool_calls:
                self._saying, self._thoughts_before = "", self._thoughts

    def _think(self, thoughts: str) -> None:
        """Appends new thoughts; those with another beginning are those of a restarted answer."""
        if not thoughts.startswith(self._thoughts):
            self._thoughts = self._thoughts_before
            self._restart()
        if thoughts.startswith(self._thoughts) and thoughts != self._thoughts:
            self.log.append(ThoughtDelta(thoughts[len(self._thoughts) :]))
            self._thoughts = thoughts

    def _say(self, text: str) -> None:
        """Appends new text of the newest answer; a text with another beginning is a restarted answer."""
        if not text.startswith(self._saying):
            if text.strip() == self._saying.strip():
                return
            self._restart()
        if text != self._saying:
            self.log.append(TokenDelta(text[len(self._saying) :]))
            self._saying = text

    def _restart(self) -> None:
        """Declares the newest answer void, but not its thoughts."""
        self.log.append(AnswerRestarted(is_sorted=bool(self._thoughts)))
        self._saying = ""
        if thought := self._thoughts.removeprefix(self._thoughts_before):
            self.log.append(ThoughtDelta(thought))


_LOG = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.25
_POLLS_PER_LOOK: Final = 4  # each look detects killed processes
_POLLS_BEHIND_STALL: Final = 16  # by then live processes have renewed their leases
_STALL_SECONDS: Final = 2.0
_KEPT_SECONDS: Final = 5.0


@dataclass(eq=False)
class _Followed:
    turn_key: TurnKey
    distant: DistantTurn
    read: TurnProgress
    messages: list[AnyMessage]
    asked_at: float = field(default_factory=time.monotonic)

    @property
    def is_wanted(self) -> bool:
        return self.distant.log.is_watched or time.monotonic() - self.asked_at < _KEPT_SECONDS


class TurnPoller:
    """The logs of turns run elsewhere, updated while they are watched or requested again.

    One statement every 250 ms reads all of them; without any, nothing is read.
    """

    def __init__(self, stores: ChatStores, fingerprints: FingerprintStore) -> None:
        self._stores = stores
        self._fingerprints = fingerprints
        self._followed: dict[tuple[TurnKey, int], _Followed] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def follow(self, session_id: str, number: int, attempt: int) -> TurnLog:
        """Returns the log of an attempt run by another process; over if the attempt has ended.

        Raises `NotFoundError` if there is no such turn.
        """
        turn_key = TurnKey(session_id, number)
        with self._changed:
            followed = self._followed.get((turn_key, attempt))
            if followed is not None:
                followed.asked_at = time.monotonic()  # here, or it could be dropped just before
        if followed is None:
            followed = self._opened(turn_key)
            if followed.distant.log.attempt_key[1] != attempt:
                followed.distant.fail(INTERRUPTED)
            if followed.distant.log.is_over:
                return followed.distant.log
            with self._changed:
                followed = self._followed.setdefault((turn_key, attempt), followed)
                self._start()
        return followed.distant.log

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _opened(self, turn_key: TurnKey) -> _Followed:
        read = self._stores.turns.progress([turn_key]).get(turn_key)
        if read is None:
            raise NotFoundError(turn_key.session_id)
        archived = self._archived(read.turn)
        resumed = self._fingerprints.of_attempt(*turn_key, read.turn.attempt)[1:]
        begin = _answer_behind(archived, resumed[-1].first_position if resumed else 0)
        messages = [entry.message for entry in archived]
        return _Followed(
            turn_key, DistantTurn(read.turn, messages, begin=begin, thoughts=read.thoughts), read, messages
        )

    def _start(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, name="turn-poll", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        polls = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._followed or self._is_closed)
                self._changed.wait_for(lambda: self._is_closed, _POLL_SECONDS)
                if self._is_closed:
                    return
                self._followed = {
                    key: one for key, one in self._followed.items() if one.is_wanted and not one.distant.log.is_over
                }
                followed = list(self._followed.values())
            polls, began = polls + 1, time.monotonic()
            try:
                self._poll(followed)
                if polls >= _POLLS_PER_LOOK:
                    polls = 0
                    self._end_abandoned(followed, began)
            except StoreError as error:
                polls = _POLLS_PER_LOOK - _POLLS_BEHIND_STALL
                _LOG.warning("turns of other processes could not be read: %s", error.code)
            except Exception:  # noqa: BLE001  # the edge of a thread; the next poll makes up for it
                _LOG.exception("turns of other processes could not be read")
            if _has_stalled(began):
                polls = _POLLS_PER_LOOK - _POLLS_BEHIND_STALL

    def _poll(self, followed: list[_Followed]) -> None:
        found = self._stores.turns.progress({one.turn_key for one in followed}) if followed else {}
        for one in followed:
            now = found.get(one.turn_key)
            if now is None:
                one.distant.fail(NotFoundError.code)
            elif now != one.read:
                if now.position != one.read.position:  # otherwise only the text grew, which `progress` includes
                    one.messages = [entry.message for entry in self._archived(now.turn)]
                one.distant.take(now.turn, one.messages, now.thoughts)
                one.read = now

    def _end_abandoned(self, followed: list[_Followed], began: float) -> None:
        """Ends the logs of turns whose process died; a turn that ends normally is stored before its lease is released.

        If the database was down since `began`, leases may have expired that their holders are about to renew.
        """
        alive = self._stores.leases.alive({one.turn_key.session_id for one in followed}) if followed else frozenset()
        if _has_stalled(began):
            return
        gone = [one for one in followed if one.turn_key.session_id not in alive]
        self._poll(gone)
        for one in gone:
            one.distant.abandon(one.read.turn, one.messages)

    def _archived(self, row: TurnRow) -> list[ArchivedMessage]:
        return self._stores.archive.live_turns(row.session_id, row.number, row.number)


def _has_stalled(began: float) -> bool:
    """True if a read took so long that the database may have been down."""
    return time.monotonic() - began > _STALL_SECONDS


def _answer_behind(archived: Sequence[ArchivedMessage], position: int) -> int:
    """Returns the index of the first answer of ours from this position on, after what the program brought."""
    answers = (
        at
        for at, entry in enumerate(archived)
        if entry.position >= position and isinstance(entry.message, AIMessage) and not is_imported(entry.message)
    )
    return next(answers, len(archived))
