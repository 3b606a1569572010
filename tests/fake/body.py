"""Reads what a provider was sent: the summaries, turns and tools in the body of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from graph.core.text import estimate_tokens
from tests.fake.openai_reply import Body

HEADING: Final = re.compile(r"^\[(?:이전 대화 요약|Earlier conversation, summarised)\]$", re.MULTILINE)
_LABEL: Final = re.compile(r"^\[(?:Turns )?(\d+)-(\d+)턴?\] ", re.MULTILINE)
_NUMBER: Final = re.compile(r"질문 (\d+)번")


def summaries(body: Body) -> list[tuple[int, int]]:
    """The turns that each summary in the system prompt covers: (first, last)."""
    _, *rest = HEADING.split(system_prompt(body), maxsplit=1)
    return [(int(first), int(last)) for first, last in _LABEL.findall("".join(rest))]


def raw_turns(body: Body) -> list[int]:
    """The numbers that the user messages name (see `question`), in order."""
    found = (_NUMBER.search(content_of(message)) for message in body["messages"] if message["role"] == "user")
    return [int(match.group(1)) for match in found if match]


def shape(body: Body) -> list[object]:
    """The seed's table in its own terms: `[(1, 3), 4, 5]` is `[Summary(1-3), Turn4, Turn5]`."""
    return [*summaries(body), *raw_turns(body)]


def system_prompt(body: Body) -> str:
    first = body["messages"][0]
    assert first["role"] == "system"
    return content_of(first)


def roles(body: Body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def tool_names(body: Body) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", ())]


def content_of(message: Body) -> str:
    content: Any = message.get("content") or ""
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def tokens_of(body: Body) -> int:
    """Our estimate for all that the body sends: each message, each tool call, and the tools beside them."""
    total = estimate_tokens(json.dumps(body["tools"], ensure_ascii=False)) if body.get("tools") else 0
    for message in body["messages"]:
        total += estimate_tokens(content_of(message))
        for call in message.get("tool_calls", ()):
            total += estimate_tokens(call["function"]["name"] + call["function"]["arguments"])
    return total


def faults(messages: Sequence[Body]) -> list[str]:
    """What no provider should ever be sent: orphan tool calls or results, blank answers, two questions running.

    Nor a conversation that doesn't begin with the user, or in which the user says nothing at all.
    """
    found, waiting = [], set[str]()
    said = [message["role"] for message in messages if message["role"] != "system"]
    if "user" not in said:
        found.append("no user message at all")
    elif said[0] != "user":
        found.append("the first message isn't the user's")
    for before, message in zip([{"role": ""}, *messages], messages, strict=False):
        role = message["role"]
        if role != "tool" and waiting:
            found.append(f"calls without results: {sorted(waiting)}")
            waiting = set()
        if role == "user" and before["role"] == "user":
            found.append("two user messages running")
        if role == "assistant":
            waiting = {call["id"] for call in message.get("tool_calls", ())}
            if not waiting and not content_of(message).strip():
                found.append("blank answer")
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                found.append(f"result without a call: {message['tool_call_id']}")
            waiting.discard(message["tool_call_id"])
    return found + ([f"calls without results: {sorted(waiting)}"] if waiting else [])
