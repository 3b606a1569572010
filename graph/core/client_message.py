"""Turns the messages of a program's request into those of LangChain."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from graph.client import ClientMessage
from graph.core.image import content_of
from graph.core.text import plain_text, plain_value
from graph.event import ClientCall


def to_messages(messages: Iterable[ClientMessage]) -> list[AnyMessage]:
    """Returns the messages as a model is sent them, without ids; arguments that can't be read stay as they came."""
    return [_to_message(message) for message in messages]


def _to_message(message: ClientMessage) -> AnyMessage:
    text = plain_text(message.text)
    match message.role:
        case "user":
            return HumanMessage(content_of(text, [plain_text(url) for url in message.images]))
        case "assistant":
            valid, invalid = _split_calls(message.calls)
            return AIMessage(text, tool_calls=valid, invalid_tool_calls=invalid)
        case "tool":
            return ToolMessage(text, tool_call_id=plain_text(message.call_id))


def _split_calls(calls: Iterable[ClientCall]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    valid: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for call in calls:
        call_id, name, arguments = plain_text(call.id), plain_text(call.name), plain_text(call.arguments)
        if (parsed := _parse(arguments)) is None:
            invalid.append(invalid_tool_call(name=name, args=arguments, id=call_id))
        else:
            valid.append(tool_call(name=name, args=parsed, id=call_id))
    return valid, invalid


def _parse(arguments: str) -> dict[str, Any] | None:
    try:
        value = plain_value(json.loads(arguments or "{}"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
