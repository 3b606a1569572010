"""A response to a program: the turn or aside that makes it, seen as OpenAI's clients see a completion."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage

from graph.client import CompletionEnd, Matched
from graph.core.client_call import waiting_calls
from graph.core.turn import text_of
from graph.event import ActionRequired, Event, TokenDelta, TurnFinished
from graph.worker.turn_log import TurnLog

_ID_CHARS = 24


@dataclass(eq=False)
class Response:
    """A `graph.client.Completion` over the events of one log.

    Attributes:
        log: Its events; those of a stored response are all there.
        tell_end: Returns what `end` tells.
        tell_stop: Tells the turn to end, in whichever process it runs.
    """

    id: str
    created: int
    session_id: str
    turn: int
    matched: Matched
    log: TurnLog
    tell_end: Callable[[], CompletionEnd]
    tell_stop: Callable[[], None]

    def watch(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Passes on all events so far, then each new one; returns what ends that."""
        return self.log.watch(on_event)

    def stop(self) -> None:
        """Ends the turn if it still runs; what was said is kept."""
        self.log.stop.set()
        if not self.log.is_over:
            self.tell_stop()

    def end(self) -> CompletionEnd:
        """Returns what is told of the whole response."""
        return self.tell_end()


def response_id(*parts: object) -> str:
    """Returns the id of the response that these parts make one: the same parts, the same id."""
    text = "\0".join(str(part) for part in parts)
    return f"chatcmpl-{hashlib.sha256(text.encode()).hexdigest()[:_ID_CHARS]}"


def stored_log(turn: int, attempt: int, said: Sequence[AnyMessage]) -> TurnLog:
    """Returns the log of a response that was given before: all of its text at once, then its last event.

    Args:
        turn: Its turn.
        attempt: The turn's attempt.
        said: Its messages, at least one answer; a call without a result is the program's to answer.
    """
    log = TurnLog(turn, attempt)
    answers = [message for message in said if isinstance(message, AIMessage)]
    sent = ""
    for text in map(text_of, answers):
        sent += f"\n\n{text}" if text and sent.strip() else text
    if sent:
        log.append(TokenDelta(sent))
    last, calls = answers[-1], waiting_calls(said)
    text = text_of(last)
    log.append(ActionRequired(turn, str(last.id), text, calls) if calls else TurnFinished(turn, str(last.id), text))
    return log
