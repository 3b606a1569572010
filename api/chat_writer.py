"""Writes a turn as server-sent events: the text as chunks in OpenAI's shape, all else under names of our own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

from api.chunk_writer import DONE, ChunkWriter, CompletionHead, data_line, failure_line
from api.event_id import END, EventId
from api.refusal import problem_of_failure
from graph.value.client import CompletionEnd
from graph.value.event import AnswerRestarted, Event, TokenDelta, TurnFailed
from graph.value.view import LiveTurn, ToolStep, TurnView

KEEP_ALIVE: Final = b":\n\n"
RETRY: Final = b"retry: 2000\n"
_INNER_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


class ChatWriter:
    """Writes the events of one attempt. An event's id is its place in the attempt's log; the last one has two.

    Pieces of text that are written together are one chunk, whose id is that of the last piece.

    Args:
        head: What each chunk repeats.
        turn: The turn's number.
        attempt: The attempt's number.
        first_place: The place of the log's first event.
    """

    def __init__(self, head: CompletionHead, turn: int, attempt: int, first_place: int) -> None:
        self._chunks = ChunkWriter(head)
        self._turn = turn
        self._attempt = attempt
        self._before_first = first_place - 1

    def start(self, metadata: Mapping[str, str]) -> bytes:
        """Returns the first lines of a stream from a turn's beginning; they have no id."""
        return RETRY + data_line({"metadata": dict(metadata)}) + self._chunks.start()

    def events(self, events: Sequence[Event], after: int, progress: Callable[[int], LiveTurn]) -> Iterator[bytes]:
        """Yields the events that follow the first `after` ones; none of them ends the turn.

        Args:
            events: The events.
            after: How many stand before them.
            progress: Returns what the turn looked like behind that many of its events.
        """
        for is_text, run in groupby(enumerate(events, after + 1), key=lambda item: isinstance(item[1], TokenDelta)):
            items = list(run)
            if is_text:
                text = "".join(event.text for _, event in items if isinstance(event, TokenDelta))
                yield self._id(items[-1][0]) + self._chunks.text(text)
                continue
            for seq, event in items:
                # What is void can't be told from the pieces alone if some of them came in a snapshot.
                told = {"text": progress(seq).text} if isinstance(event, AnswerRestarted) else asdict(event)
                yield self._named(_name(event), told, seq)

    def snapshot(self, seen: LiveTurn | TurnView, seq: int) -> bytes:
        """Returns the whole turn as it is; replaces all that was sent of it."""
        told: dict[str, Any] = {"turn": seen.number, "attempt": seen.attempt, "steps": _steps(seen.steps)}
        if isinstance(seen, LiveTurn):
            told |= {"status": "running", "phase": seen.phase, "phase_turns": seen.phase_turns, "text": seen.text}
        else:
            told |= {"status": seen.status, "text": seen.answer_text}
        return self._named("snapshot", told, seq)

    def end(self, event: Event, end: CompletionEnd, seq: int | None) -> tuple[bytes, bytes]:
        """Returns the last event, with usage and figures, and what is behind it: the last chunk or the error, `[DONE]`.

        Args:
            event: How the turn ended.
            end: What is told of it.
            seq: The event's place; None if its log is gone.
        """
        told: dict[str, Any] = asdict(event)
        if isinstance(event, TurnFailed):
            problem = problem_of_failure(event.code, event.detail)
            told = {"turn": event.turn, "code": event.code, **problem.body()}
            behind = failure_line(problem) + DONE
        else:
            told["finish_reason"] = end.finish_reason
            behind = self._chunks.end(end, with_usage=False)
        told["usage"] = None if end.usage is None else end.usage._asdict()
        told["figures"] = {key: value for key, value in end.figures.items() if key != "matched"}
        last = _id_line(EventId(self._turn, self._attempt, END)) if seq is None else self._id(seq + 1)
        return self._named(_name(event), told, seq), last + behind

    def _named(self, name: str, told: Mapping[str, Any], seq: int | None) -> bytes:
        event_id = b"" if seq is None else self._id(seq)
        return event_id + f"event: {name}\n".encode() + data_line(told)

    def _id(self, seq: int) -> bytes:
        return _id_line(EventId(self._turn, self._attempt, self._before_first + seq))


def _id_line(event_id: EventId) -> bytes:
    return f"id: {event_id}\n".encode()


def _name(event: Event) -> str:
    """Returns the event's name on the wire: that of its class, in lower case."""
    return _INNER_CAPITAL.sub("_", type(event).__name__).lower()


def _steps(steps: Sequence[ToolStep]) -> list[dict[str, Any]]:
    return [asdict(step) for step in steps]
