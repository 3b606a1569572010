"""Derives answers, tool calls and the final event of a turn from its archived messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from graph.core.turn import MARK, closed_mark, text_of
from graph.recognise.client_turns import waiting_calls
from graph.store.turn import TurnRow
from graph.tool.recall import opened_turns
from graph.value.event import ActionRequired, Event, TurnFailed, TurnFinished, TurnStopped
from graph.value.view import StepStatus, ToolStep


def answers_in(said: Iterable[AnyMessage]) -> list[str]:
    """Returns the assistant's texts, without the fixed sentences that replace a missing answer."""
    return [
        text_of(message).strip()
        for message in said
        if isinstance(message, AIMessage)
        and text_of(message).strip()
        and ((mark := closed_mark(message)) is None or mark.get("is_partial"))
    ]


def steps_in(said: Sequence[AnyMessage]) -> Iterable[ToolStep]:
    """Returns the tool calls in order; those without a result are running."""
    results = {message.tool_call_id: message for message in said if isinstance(message, ToolMessage)}
    for message in said:
        for call in message.tool_calls if isinstance(message, AIMessage) else []:
            arguments = json.dumps(call["args"], ensure_ascii=False)
            result = results.get(str(call["id"]))
            if result is None:
                yield ToolStep(str(call["id"]), call["name"], arguments, "", "running", None)
                continue
            seconds = result.additional_kwargs.get(MARK, {}).get("seconds")
            status: StepStatus = "error" if result.status == "error" else "done"
            turns = opened_turns(call["name"], text_of(result))
            yield ToolStep(str(call["id"]), call["name"], arguments, text_of(result), status, seconds, turns)


def last_event(row: TurnRow, said: Sequence[AnyMessage]) -> Event:
    """Returns the last event of a turn that has ended or waits for its program.

    Args:
        row: The turn.
        said: Messages of the last attempt, in order.
    """
    if row.status == "failed":
        return TurnFailed(row.number, row.error_code, row.error_detail)
    if row.status == "stopped":
        return TurnStopped(row.number, row.partial_text)
    # A waiting answer may be followed by results of server tools.
    last = next(message for message in reversed(said) if isinstance(message, AIMessage))
    if row.status == "finished":
        return TurnFinished(row.number, str(last.id), text_of(last))
    return ActionRequired(row.number, str(last.id), text_of(last), waiting_calls(said))
