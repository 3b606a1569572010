"""Builds an answer from the chunks of a stream, with strict validation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, InvalidToolCall, ToolCall, ToolCallChunk
from langchain_core.messages.tool import invalid_tool_call, tool_call

from graph.core.text import plain_text, plain_value
from graph.core.thinking import Split, ThinkingSplitter, thought_blocks, thought_in
from graph.core.turn import RETURNED, text_of
from graph.value.error import BadResponseError, CutStreamError, EmptyAnswerError, RefusedError, ThoughtLimitError

_FILTERED: Final = "content_filter"
_BROKEN: Final = "error"
# Servers and gateways have names of their own.
_ENDINGS: Final = {
    _FILTERED: re.compile(
        r"filter|sensitive|safety|refus|recitation|prohibited|blocked|blocklist|spii|guardrail|moderat|violat|policy",
        re.IGNORECASE,
    ),
    _BROKEN: re.compile(r"error|fail|abort|cancel|malformed|insufficient|overload|time.?out|interrupt", re.IGNORECASE),
    "length": re.compile(r"length|max.{0,20}token|token.?limit|context|window|truncat", re.IGNORECASE),
}
_IN_PIECES: Final = ("reasoning.text", "reasoning.summary")
# More than any model takes; the sums over many calls still fit a column of 31 bits.
_MOST_TOKENS: Final = 2**24


@dataclass(frozen=True)
class Usage:
    """Tokens reported by the provider for a call; `cached_tokens` are the input tokens read from its cache."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int


@dataclass(frozen=True)
class Answer:
    """A complete answer; `usage` is None if the provider reported none."""

    message: AIMessage
    usage: Usage | None


@dataclass
class _Call:
    id: str | None
    name: str
    arguments: str
    extra_content: Any = None


class AnswerBuilder:
    """Collects chunks and builds the answer or raises an error.

    LangChain's merge isn't used: it repairs the incomplete arguments of a stream that broke off, and the call would
    run.

    Args:
        ends_alone: True if the model is known to send the end tag of its thoughts without the start.

    Attributes:
        has_chunk: True once a chunk was added.
        ends_alone: As given, or as this answer has shown.
    """

    def __init__(self, *, ends_alone: bool = False) -> None:
        self.ends_alone = ends_alone
        self._splitter = ThinkingSplitter(ends_alone=ends_alone)
        self._thoughts: list[str] = []
        self._returned: list[str] = []
        self._details: list[Mapping[str, Any]] = []
        self._pieces: list[str] = []
        self._calls: list[_Call] = []
        self._call_at: dict[int, _Call] = {}
        self._finish_reason: str | None = None
        self._model_name: str | None = None
        self._usage: Usage | None = None
        self._is_refused = False
        self._has_choice = False
        self.has_chunk = False

    def add(self, chunk: BaseMessage) -> Split:
        """Adds the next chunk and returns its text and its thoughts, without what may be the beginning of a tag.

        If what was returned before is void, `thought` or `text` repeats it.
        """
        if not isinstance(chunk, AIMessage):
            msg = f"the stream brought a {chunk.type} message"
            raise BadResponseError(msg)
        text = plain_text(text_of(chunk))
        fields = chunk.additional_kwargs
        beside = plain_text(thought_in(fields) or thought_blocks(chunk.content))
        if isinstance(fields.get("reasoning_content"), str):
            self._returned.append(plain_text(fields["reasoning_content"]))
        details = fields.get("reasoning_details")
        self._details += [each for each in (details if isinstance(details, list) else ()) if isinstance(each, Mapping)]
        split = self._take(self._splitter.add(text), beside)
        self.has_chunk = True
        if isinstance(chunk, AIMessageChunk):
            extras = fields.get("extra_content") or []
            for place, fragment in enumerate(chunk.tool_call_chunks):
                self._add_fragment(fragment, extras[place] if place < len(extras) else None)
        else:
            # A model that can't stream returns the whole message at once, so it is complete.
            self._finish_reason = "stop"
            self._calls += [_Call(call["id"], call["name"], json.dumps(call["args"])) for call in chunk.tool_calls]
        metadata = chunk.response_metadata
        self._finish_reason = _ending(metadata.get("finish_reason")) or self._finish_reason
        self._model_name = metadata.get("model_name") or self._model_name
        self._is_refused = self._is_refused or bool(chunk.additional_kwargs.get("refusal"))
        self._has_choice = self._has_choice or bool(text or beside or self._calls or self._finish_reason or metadata)
        # No input has zero tokens: some servers send 0 for values that they don't count.
        if chunk.usage_metadata is not None and chunk.usage_metadata["input_tokens"] > 0:
            # The last report wins: some servers send a running total with every chunk.
            details = chunk.usage_metadata.get("input_token_details", {})
            self._usage = Usage(
                _count(chunk.usage_metadata["input_tokens"]),
                _count(chunk.usage_metadata["output_tokens"]),
                _count(details.get("cache_read")),
            )
        return split

    def end(self) -> Split:
        """Returns what was kept back; call it once, after the last chunk and before `build`."""
        split, is_cut = self._take(self._splitter.end()), self._finish_reason in (None, _BROKEN, "length")
        self.ends_alone = self._splitter.has_ended_alone or (self.ends_alone and is_cut)
        if not self._splitter.is_unended or is_cut:
            return split
        # It didn't think: its text was only held to be thoughts.
        self._pieces, self._thoughts = ["".join(self._thoughts)], []
        return Split(text=self._pieces[0], is_revoked=True)

    def _take(self, split: Split, beside: str = "") -> Split:
        if split.is_revoked:
            self._thoughts += self._pieces
            self._pieces.clear()
        self._thoughts += [thought for thought in (beside, split.thought) if thought]
        self._pieces.append(split.text)
        thought = "".join(self._thoughts) if split.is_revoked else beside + split.thought
        return split._replace(thought=thought)

    @property
    def thoughts(self) -> str:
        """The model's thoughts so far."""
        return "".join(self._thoughts)

    def _add_fragment(self, fragment: ToolCallChunk, extra_content: object) -> None:
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
        known.extra_content = extra_content or known.extra_content

    def build(self) -> Answer:
        """Returns the answer after the end of the stream.

        Raises:
            CutStreamError: The stream ended without a finish reason, or at the length limit with a tool call.
            RefusedError: The model or its content filter refused.
            ThoughtLimitError: There are thoughts alone, or nothing before the length limit.
            EmptyAnswerError: There is neither text nor a tool call.
            BadResponseError: There are chunks, but none with a choice.
        """
        text = "".join(self._pieces)
        if self._is_refused or self._finish_reason == _FILTERED:
            raise RefusedError
        if self.has_chunk and not self._has_choice:
            raise BadResponseError
        if self._finish_reason in (None, _BROKEN) or (self._finish_reason == "length" and self._calls):
            raise CutStreamError(self._finish_reason or "")
        if not text.strip() and not self._calls:
            raise ThoughtLimitError if self._finish_reason == "length" or self.thoughts.strip() else EmptyAnswerError
        valid, invalid = _split_calls(self._calls)
        metadata = {"model_name": self._model_name, "finish_reason": self._finish_reason}
        message = AIMessage(
            content=text,
            id=f"ai-{token_urlsafe(9)}",
            tool_calls=valid,
            invalid_tool_calls=invalid,
            additional_kwargs=self._to_return(),
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

    def _to_return(self) -> dict[str, Any]:
        """Returns what DeepSeek, Kimi, Gemini, OpenRouter and others want back with the calls in later requests."""
        returned: dict[str, Any] = {}
        if self._calls and any(self._returned):
            returned["reasoning_content"] = "".join(self._returned)
        if self._calls and self._details:
            returned["reasoning_details"] = plain_value(_whole_details(self._details))
        if any(call.extra_content for call in self._calls):
            valid = [call for call in self._calls if call.name and _parse(call.arguments) is not None]
            returned["extra_content"] = [plain_value(call.extra_content) for call in valid]
        return {RETURNED: returned} if returned else {}


def _ending(reason: object) -> str | None:
    """Returns why an answer ended, by OpenAI's name; "error" if it was broken off, None without a reason."""
    said = "" if reason is None else str(reason)
    if said.lower() in ("", "null", "none"):
        return None
    return next((name for name, pattern in _ENDINGS.items() if pattern.search(said)), said)


def _count(reported: int | None) -> int:
    """Clamps a reported number of tokens to a plausible range."""
    return min(max(0, reported or 0), _MOST_TOKENS)


def _whole_details(fragments: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Joins the pieces of OpenRouter's numbered blocks of text; a signature may come in a piece of its own."""
    blocks: dict[str, list[Mapping[str, Any]]] = {}
    for place, fragment in enumerate(fragments):
        kind, index = fragment.get("type"), fragment.get("index")
        has_more = kind in _IN_PIECES and index is not None
        blocks.setdefault(f"{kind} {index}" if has_more else str(place), []).append(fragment)
    return [_joined(pieces) for pieces in blocks.values()]


def _joined(pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for piece in pieces:
        whole |= {name: value for name, value in piece.items() if value is not None or name not in whole}
    for name in {"text", "summary"} & whole.keys():
        if texts := [piece[name] for piece in pieces if isinstance(piece.get(name), str)]:
            whole[name] = "".join(texts)
    return whole


def _is_next_call(known: _Call, fragment: ToolCallChunk) -> bool:
    """Returns True if a fragment starts another call under the same index: some servers number all calls 0."""
    if not fragment["name"] or not known.name:
        return False
    if fragment["id"] and known.id:
        return fragment["id"] != known.id
    return bool(fragment["args"]) and _parse(known.arguments) is not None and known.arguments != ""


def _parse(arguments: str) -> dict[str, Any] | None:
    """Returns the arguments as a dict, or None unless they are exactly one JSON object; blank text counts as {}."""
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
    """Splits calls by whether their arguments parse; missing and repeated ids are replaced by random ones."""
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
