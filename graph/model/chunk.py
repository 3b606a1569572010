"""Puts the chunks of one streamed answer together, strictly."""

from __future__ import annotations

import json
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, InvalidToolCall, ToolCall, ToolCallChunk
from langchain_core.messages.tool import invalid_tool_call, tool_call

from graph.core.text import plain_text, plain_value
from graph.core.turn import text_of
from graph.error import BadResponseError, CutStreamError, EmptyAnswerError, RefusedError


@dataclass(frozen=True)
class Usage:
    """The tokens that the provider reported for a call; `cached_tokens` of the input came from its prefix cache."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int


@dataclass(frozen=True)
class Answer:
    """A whole answer; `usage` is None if the provider reported none."""

    message: AIMessage
    usage: Usage | None


@dataclass
class _Call:
    """A tool call as far as it has come; its arguments are the raw text of all fragments."""

    id: str | None
    name: str
    arguments: str


class AnswerBuilder:
    """Collects chunks and makes the answer of them, or tells why they are none.

    LangChain's own merge is not used: it repairs half arguments of a cut stream, and such a call would then run.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._calls: list[_Call] = []
        self._call_at: dict[int, _Call] = {}
        self._finish_reason: str | None = None
        self._model_name: str | None = None
        self._usage: Usage | None = None
        self._is_refused = False
        self._has_chunk = False
        self._has_choice = False

    @property
    def has_chunk(self) -> bool:
        """Whether anything has come."""
        return self._has_chunk

    def add(self, chunk: BaseMessage) -> str:
        """Takes the next chunk and returns its text ("" if it has none). Reasoning blocks are no text."""
        if not isinstance(chunk, AIMessage):
            msg = f"the stream brought a {chunk.type} message"
            raise BadResponseError(msg)
        text = plain_text(text_of(chunk))
        self._pieces.append(text)
        self._has_chunk = True
        if isinstance(chunk, AIMessageChunk):
            for fragment in chunk.tool_call_chunks:
                self._add_fragment(fragment)
        else:
            # A model that can't stream gives its whole message at once: nothing of it can be cut off.
            self._finish_reason = "stop"
            self._calls += [_Call(call["id"], call["name"], json.dumps(call["args"])) for call in chunk.tool_calls]
        metadata = chunk.response_metadata
        self._finish_reason = metadata.get("finish_reason") or self._finish_reason
        self._model_name = metadata.get("model_name") or self._model_name
        self._is_refused = self._is_refused or bool(chunk.additional_kwargs.get("refusal"))
        self._has_choice = self._has_choice or bool(text or self._calls or self._finish_reason or metadata)
        if chunk.usage_metadata is not None:
            # The last report counts: some servers send a running total with every chunk.
            details = chunk.usage_metadata.get("input_token_details", {})
            self._usage = Usage(
                chunk.usage_metadata["input_tokens"],
                chunk.usage_metadata["output_tokens"],
                details.get("cache_read") or 0,
            )
        return text

    def _add_fragment(self, fragment: ToolCallChunk) -> None:
        index, name, arguments = fragment["index"], fragment["name"] or "", fragment["args"] or ""
        known = self._calls[-1] if index is None and self._calls else self._call_at.get(index or 0)
        if known is None or _is_next_call(known, fragment):
            known = _Call(fragment["id"] or None, name, "")
            self._calls.append(known)
            self._call_at[index or 0] = known
        elif not known.name:
            known.name = name
        known.id = known.id or fragment["id"] or None
        known.arguments += arguments

    def build(self) -> Answer:
        """Returns the answer, after the stream has ended.

        Raises:
            CutStreamError: It ended without a finish reason, or at the length limit inside a tool call.
            RefusedError: The model or its filter refused.
            EmptyAnswerError: There is neither text nor a tool call.
            BadResponseError: Chunks came but none had a choice in it.
        """
        text = "".join(self._pieces)
        if self._is_refused or self._finish_reason in ("content_filter", "refusal"):
            raise RefusedError
        if self._has_chunk and not self._has_choice:
            raise BadResponseError
        if self._finish_reason is None or (self._finish_reason == "length" and self._calls):
            raise CutStreamError(self._finish_reason or "")
        if not text.strip() and not self._calls:
            raise EmptyAnswerError
        valid, invalid = _split_calls(self._calls)
        metadata = {"model_name": self._model_name, "finish_reason": self._finish_reason}
        message = AIMessage(
            content=text,
            id=f"ai-{token_urlsafe(9)}",
            tool_calls=valid,
            invalid_tool_calls=invalid,
            response_metadata={name: value for name, value in metadata.items() if value is not None},
        )
        if self._usage is not None:
            message.usage_metadata = {
                "input_tokens": self._usage.input_tokens,
                "output_tokens": self._usage.output_tokens,
                "total_tokens": self._usage.input_tokens + self._usage.output_tokens,
                "input_token_details": {"cache_read": self._usage.cached_tokens},
            }
        return Answer(message, self._usage)


def _is_next_call(known: _Call, fragment: ToolCallChunk) -> bool:
    """Whether the fragment begins another call under an index already used, as some servers number all calls 0."""
    if not fragment["name"] or not known.name:
        return False
    if fragment["id"] and known.id:
        return fragment["id"] != known.id
    return bool(fragment["args"]) and _parse(known.arguments) is not None and known.arguments != ""


def _parse(arguments: str) -> dict[str, Any] | None:
    """Returns the arguments as a dict, or None if they aren't exactly one JSON object. None at all count as {}."""
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(name: str) -> None:
    msg = f"{name} is no JSON"
    raise ValueError(msg)


def _split_calls(calls: list[_Call]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """Returns the calls that parse strictly and those that don't; ids are made unique, a missing one made up."""
    valid: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    seen: set[str] = set()
    for call in calls:
        name, given_id = plain_text(call.name), plain_text(call.id or "")
        call_id = given_id if given_id and given_id not in seen else f"call-{uuid4().hex}"
        seen.add(call_id)
        arguments = _parse(call.arguments)
        if name and arguments is not None:
            valid.append(tool_call(name=name, args=plain_value(arguments), id=call_id))
        else:
            reason = "the arguments are no JSON object" if name else "the call names no tool"
            raw = plain_text(call.arguments)
            invalid.append(invalid_tool_call(name=name or None, args=raw, id=call_id, error=reason))
    return valid, invalid
