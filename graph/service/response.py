"""A response to a program: the turn or side request behind it, its usage and its end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage

from graph.core.turn import is_cut, text_of, unanswered_calls
from graph.recognise.client_turns import waiting_calls
from graph.service.access import SessionAccess
from graph.store.call import CallCost
from graph.store.stores import ChatStores
from graph.store.turn import TurnRow
from graph.value.client import ClientUsage, CompletionEnd, FinishReason, Matched
from graph.value.error import RefusedError
from graph.value.event import ActionRequired, Event, TokenDelta, TurnFinished
from graph.worker.turn_log import TurnLog

_ID_CHARS = 24


@dataclass(eq=False)
class Response:
    """A `graph.value.client.Completion` over the events of one log.

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


NO_END: Final = 2**62  # behind every position and every call
ALL: Final = range(1, NO_END)


@dataclass(frozen=True)
class ResponsePlace:
    """Where a response stands: a turn has one, and one more each time that its program answered calls.

    Attributes:
        ordinal: Its number within the attempt, from 1.
        asked: What its request asked for, as a hash.
        begun_at: When its request came, in UTC.
        positions: The archive positions of what was said in it.
        calls: The numbers of its model calls within the attempt.
    """

    session_id: str
    turn: int
    attempt: int
    ordinal: int
    asked: bytes
    begun_at: datetime
    positions: range = ALL
    calls: range = ALL


def said_in(stores: ChatStores, place: ResponsePlace) -> list[AnyMessage]:
    """Returns the messages of a response in order: answers, and the results of tools that were run for it."""
    said = stores.archive.live_turns(place.session_id, place.turn, place.turn)
    made = [entry.message for entry in said if entry.attempt == place.attempt and entry.position in place.positions]
    first = next((index for index, message in enumerate(made) if isinstance(message, AIMessage)), len(made))
    return made[first:]


def read_end(access: SessionAccess, place: ResponsePlace, matched: Matched) -> CompletionEnd:
    """Returns how a response ended, its usage and its figures.

    Raises:
        NotFoundError: Its session was deleted meanwhile.
    """
    access.own(place.session_id)
    costs = [
        cost
        for cost in access.stores.calls.costs(place.session_id, place.turn, place.attempt)
        if cost.ordinal in place.calls
    ]
    row = access.stores.turns.get(place.session_id, place.turn)
    reason = _finish_reason(row, said_in(access.stores, place))
    return CompletionEnd(reason, usage_of(costs), _figures(access.stores, place, matched, costs))


def _finish_reason(row: TurnRow, said: Sequence[AnyMessage]) -> FinishReason:
    if unanswered_calls(said):
        return "tool_calls"
    if row.error_code == RefusedError.code:
        return "content_filter"
    return "length" if said and is_cut(said[-1]) else "stop"


def usage_of(costs: Sequence[CallCost]) -> ClientUsage | None:
    """Returns the sum of what was reported; None if there was no call, or one of them wasn't reported."""
    inputs = [cost.usage_input_tokens for cost in costs if cost.usage_input_tokens is not None]
    outputs = [cost.usage_output_tokens for cost in costs if cost.usage_output_tokens is not None]
    if not costs or len(inputs) < len(costs) or len(outputs) < len(costs):
        return None
    cached = [cost.usage_cached_tokens for cost in costs if cost.usage_cached_tokens is not None]
    return ClientUsage(sum(inputs), sum(outputs), sum(cached) if cached else None)


def _figures(
    stores: ChatStores, place: ResponsePlace, matched: Matched, costs: Sequence[CallCost]
) -> Mapping[str, Any]:
    """Returns what the memory did, as `docs/api.md` lists it; sent and full tokens are our estimates."""
    sums = stores.records.sums(place.session_id)
    client_changes, lost_tokens = stores.blocks.losses(place.session_id, "client")
    answers = [cost for cost in costs if cost.kind == "answer"]
    return {
        "session": place.session_id,
        "turn": place.turn,
        "matched": matched,
        "records": sums.record_count,
        "folded_turns": sums.folded_turn_count,
        "sent_tokens_estimate": sum(cost.sent_tokens for cost in answers),
        "full_tokens_estimate": sum(cost.full_tokens for cost in answers),
        "fold_tokens": sums.input_tokens + sums.output_tokens,
        "system_changes": client_changes,
        "lost_tokens_estimate": lost_tokens,
    }
