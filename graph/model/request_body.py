"""Makes the body of a request without sending it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import convert_to_openai_messages

from graph.offline.chat_model import OfflineChat


def request_body(
    chat: BaseChatModel,
    name: str,
    messages: Sequence[AnyMessage],
    tools: Sequence[Mapping[str, Any]],
    *,
    tool_choice: str | None,
) -> dict[str, Any]:
    """Returns what a call of this model sends; of one without an endpoint, what it is handed, in the same shape."""
    if not isinstance(chat, OfflineChat):
        from graph.model.endpoint import EndpointChat  # noqa: PLC0415  # slow to import, see there

        if isinstance(chat, EndpointChat):
            return chat.request_body(messages, tools, tool_choice=tool_choice)
    body: dict[str, Any] = {"model": name, "messages": convert_to_openai_messages(list(messages))}
    chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
    return {**body, "tools": list(tools), **chosen} if tools else body
