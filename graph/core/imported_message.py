"""Reduces an imported message to the fields that the transcript shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call

from graph.core.attached import content_of, urls_of
from graph.core.turn import MARK, closed_mark, words_of
from prompt.system.framing import CLOSED_ANSWER

_METADATA: Final = ("model_name", "finish_reason")


def shown_message(message: AnyMessage) -> AnyMessage:
    """Returns the message with the fields that this program writes; unknown fields could be sent without being shown.

    Raises:
        LookupError: The message isn't built as this program builds messages; or TypeError, ValueError.
    """
    mark = _mark_of(message)
    kwargs: dict[str, Any] = {} if mark is None else {MARK: mark}
    match message:
        case HumanMessage():
            return HumanMessage(content_of(words_of(message), urls_of(message)), id=message.id)
        case AIMessage():
            known = {name: message.response_metadata[name] for name in _METADATA if name in message.response_metadata}
            return AIMessage(
                words_of(message),
                id=message.id,
                tool_calls=[_plain_call(call) for call in message.tool_calls],
                response_metadata=known,
                usage_metadata=message.usage_metadata,
                additional_kwargs=kwargs,
            )
        case ToolMessage():
            return ToolMessage(
                words_of(message),
                id=message.id,
                tool_call_id=message.tool_call_id,
                name=message.name,
                status=message.status,
                additional_kwargs=kwargs,
            )
    raise TypeError(message.type)


def _plain_call(call: ToolCall) -> ToolCall:
    return tool_call(name=call["name"], args=call["args"], id=call["id"])


def _mark_of(message: AnyMessage) -> Mapping[str, Any] | None:
    """Returns the program's mark; a closed turn's answer other than a fixed sentence is marked partial, so shown."""
    mark = message.additional_kwargs.get(MARK)
    if mark is None or not isinstance(mark, dict):
        return None
    is_fixed = words_of(message) in CLOSED_ANSWER.values()
    return mark if closed_mark(message) is None or is_fixed else {**mark, "is_partial": True}
