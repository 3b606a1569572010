"""Matches a client's tool results with the calls that an open turn waits for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from graph.core.text import plain_text, plain_value
from graph.core.turn import unanswered_calls
from graph.value.client import ClientMessage
from graph.value.error import InputError
from graph.value.event import ClientCall

_NAMED: Final = 5
_ID_CHARS: Final = 64


def waiting_calls(open_turn: Sequence[AnyMessage]) -> tuple[ClientCall, ...]:
    """Returns the calls of the newest answer without a result, in order; () if the turn waits for none."""
    waiting = set(unanswered_calls(open_turn))
    return tuple(
        ClientCall(str(call["id"]), call["name"], json.dumps(call["args"], ensure_ascii=False))
        for call in newest_calls(open_turn)
        if call["id"] in waiting
    )


def results_of(open_turn: Sequence[AnyMessage], sent: Sequence[ClientMessage], *, message_id: str) -> list[ToolMessage]:
    """Returns the results of the waiting calls, in the order of the calls; empty if all have results already.

    Calls are compared by id and parsed arguments, as libraries re-serialise JSON.

    Args:
        open_turn: The messages of the turn so far, the user's first.
        sent: The client's results, in any order; its copy of the assistant's message may be among them.
        message_id: The prefix of the results' ids.

    Raises:
        InputError: `unknown_call` (a result for no call of the newest answer, or a changed call) or `unanswered_call`
            (a call without a result); the detail names their ids.
    """
    calls = {str(call["id"]): call["args"] for call in newest_calls(open_turn)}
    known = {message.tool_call_id: message.content for message in open_turn if isinstance(message, ToolMessage)}
    given = {plain_text(each.call_id): plain_text(each.text) for each in sent if each.role == "tool"}
    copies = [call for each in sent for call in each.calls]
    changed = [call.id for call in copies if not _is_same(call, calls)]
    unknown = [name for name, text in given.items() if name not in calls or known.get(name, text) != text]
    if changed or unknown or not given:
        raise InputError("unknown_call", _named([*changed, *unknown]))
    waiting = [name for name in calls if name not in known]
    if missing := [name for name in waiting if name not in given]:
        raise InputError("unanswered_call", _named(missing))
    # Without the tool's name: a client's `recall` isn't the server's.
    return [
        ToolMessage(given[name], tool_call_id=name, id=f"{message_id}-{index}") for index, name in enumerate(waiting)
    ]


def newest_calls(open_turn: Sequence[AnyMessage]) -> list[ToolCall]:
    return next((message.tool_calls for message in reversed(open_turn) if isinstance(message, AIMessage)), [])


def _is_same(copy: ClientCall, calls: dict[str, Any]) -> bool:
    name = plain_text(copy.id)
    try:
        return name in calls and bool(plain_value(json.loads(copy.arguments or "{}")) == calls[name])
    except (ValueError, RecursionError):
        return False


def _named(ids: Sequence[str]) -> str:
    return ", ".join(plain_text(each)[:_ID_CHARS] for each in ids[:_NAMED])
