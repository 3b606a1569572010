"""Reads what a program is told of a whole response: how it ended, what it cost, and what the memory did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage

from graph.client import ClientUsage, CompletionEnd, FinishReason, Matched
from graph.core.turn import is_cut
from graph.model_error import RefusedError
from graph.record import ArchivedMessage
from graph.service.access import SessionAccess
from graph.service.folds import Folds
from graph.store.call import CallCost
from graph.store.turn import TurnRow


@dataclass(frozen=True)
class ResponsePlace:
    """Where a response stands: a turn has one, and one more each time that its program answered calls.

    Attributes:
        ordinal: Its number within the attempt, from 1.
        begun_at: When its request came, in UTC.
        next_begun_at: When the request behind it came, None if none did.
    """

    session_id: str
    turn: int
    attempt: int
    ordinal: int
    begun_at: datetime
    next_begun_at: datetime | None = None

    def has(self, made_at: datetime) -> bool:
        """Whether what was made then in this attempt belongs to the response."""
        is_begun = self.ordinal == 1 or made_at >= self.begun_at
        return is_begun and (self.next_begun_at is None or made_at < self.next_begun_at)


def answers_of(access: SessionAccess, place: ResponsePlace) -> list[AIMessage]:
    """Returns the assistant's messages of a response, in order."""
    said = access.stores.archive.live_turns(place.session_id, place.turn, place.turn)
    return [entry.message for entry in said if _is_answer_of(place, entry)]


def _is_answer_of(place: ResponsePlace, entry: ArchivedMessage) -> bool:
    return isinstance(entry.message, AIMessage) and entry.attempt == place.attempt and place.has(entry.created_at)


def read_end(access: SessionAccess, folds: Folds, place: ResponsePlace, matched: Matched) -> CompletionEnd:
    """Returns how a response ended, its usage and its figures.

    Raises:
        NotFoundError: Its session was deleted meanwhile.
    """
    costs = [
        cost
        for cost in access.stores.calls.costs(place.session_id, place.turn, place.attempt)
        if place.has(cost.created_at)
    ]
    row = access.stores.turns.get(place.session_id, place.turn)
    reason = _finish_reason(row, answers_of(access, place))
    return CompletionEnd(reason, usage_of(costs), _figures(folds, place, matched, costs))


def _finish_reason(row: TurnRow, answers: Sequence[AIMessage]) -> FinishReason:
    last = answers[-1] if answers else None
    if last is not None and last.tool_calls:
        return "tool_calls"
    if row.error_code == RefusedError.code:
        return "content_filter"
    return "length" if last is not None and is_cut(last) else "stop"


def usage_of(costs: Sequence[CallCost]) -> ClientUsage | None:
    """Returns the sum of what was reported; None if there was no call, or one of them wasn't reported."""
    inputs = [cost.usage_input_tokens for cost in costs if cost.usage_input_tokens is not None]
    outputs = [cost.usage_output_tokens for cost in costs if cost.usage_output_tokens is not None]
    if not costs or len(inputs) < len(costs) or len(outputs) < len(costs):
        return None
    cached = [cost.usage_cached_tokens for cost in costs if cost.usage_cached_tokens is not None]
    return ClientUsage(sum(inputs), sum(outputs), sum(cached) if cached else None)


def _figures(folds: Folds, place: ResponsePlace, matched: Matched, costs: Sequence[CallCost]) -> Mapping[str, Any]:
    """Returns what the memory did, as `docs/api.md` lists it; sent and full tokens are our estimates."""
    statistics = folds.statistics(place.session_id)
    answers = [cost for cost in costs if cost.kind == "answer"]
    return {
        "session": place.session_id,
        "turn": place.turn,
        "matched": matched,
        "records": statistics.record_count,
        "folded_turns": statistics.folded_turn_count,
        "sent_tokens_estimate": sum(cost.sent_tokens for cost in answers),
        "full_tokens_estimate": sum(cost.full_tokens for cost in answers),
        "fold_tokens": statistics.fold_tokens,
    }
