"""What the scripted OpenAI-compatible server sends back, as plain values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, get_args

Body = Mapping[str, Any]
Ending = Literal["done", "close", "reset", "hang"]

DEFAULT_USAGE: Final = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
}
CACHED_USAGE: Final = {**DEFAULT_USAGE, "prompt_tokens_details": {"cached_tokens": 64}}


@dataclass(frozen=True)
class ScriptedCall:
    """A tool call as it goes over the wire: `arguments` is raw text, so it may be broken on purpose."""

    name: str
    arguments: str
    id: str | None


@dataclass(frozen=True)
class Reply:
    """One scripted reply; make it with the functions below.

    Attributes:
        status: HTTP status; other than 200 the reply is `error` as JSON, or as a page if it is a text, and nothing is
            streamed.
        events: Server-sent events in order, each the text after `data: `; sent verbatim.
        frame: What stands round each event; "{}" alone sends the events as they are, line ends included.
        ending: "done" sends [DONE] and ends the body; "close" ends the body without it; "reset" resets the
            connection; "hang" sends nothing more until the client goes away.
        is_silent: With a hang: not even the response's head is sent.
        pause_seconds: Wait before each event.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Any = field(default_factory=dict)
    events: tuple[str, ...] = ()
    frame: str = "data: {}\n\n"
    ending: Ending = "done"
    is_silent: bool = False
    pause_seconds: float = 0.0


def chunk(
    delta: Mapping[str, Any] | None, *, finish_reason: str | None = None, usage: Mapping[str, Any] | None = None
) -> str:
    """Returns one `chat.completion.chunk` as JSON; a None delta gives one with empty choices."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    return json.dumps(
        {
            "id": "chatcmpl-scripted",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "scripted-model",
            "choices": choices,
            "usage": usage,
        },
        ensure_ascii=False,
    )


def split_words(answer: str) -> list[str]:
    """Splits a text into pieces that end before a space; joined they are the text."""
    return [(" " if index else "") + word for index, word in enumerate(answer.split(" "))]


def in_pieces(answer: str, *, most: int = 6) -> list[str]:
    """Splits a text into at most so many pieces of whole words: reading a chunk costs the client more than a fold."""
    words = split_words(answer)
    size = -(-len(words) // most)
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def text(
    *pieces: str,
    usage: Mapping[str, Any] | None = DEFAULT_USAGE,
    finish_reason: str | None = "stop",
    pause_seconds: float = 0.0,
) -> Reply:
    """A whole answer; a single piece is streamed in a few pieces of whole words, a slow one word by word."""
    split = split_words if pause_seconds else in_pieces
    parts = split(pieces[0]) if len(pieces) == 1 else list(pieces)
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": part}) for part in parts]
    if finish_reason is not None:
        events.append(chunk({}, finish_reason=finish_reason))
    if usage is not None:
        events.append(chunk(None, usage=usage))
    return Reply(events=tuple(events), pause_seconds=pause_seconds)


def tools(
    *calls: ScriptedCall,
    answer: str = "",
    finish_reason: str | None = "tool_calls",
    fragment_chars: int = 7,
    usage: Mapping[str, Any] | None = DEFAULT_USAGE,
) -> Reply:
    """An answer that calls tools; the arguments come in fragments, as real servers send them."""
    events = [chunk({"role": "assistant", "content": answer})]
    for index, call in enumerate(calls):
        head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        events.append(chunk({"tool_calls": [head]}))
        for start in range(0, len(call.arguments), fragment_chars):
            fragment = call.arguments[start : start + fragment_chars]
            events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}))
    if finish_reason is not None:
        events.append(chunk({}, finish_reason=finish_reason))
    if usage is not None:
        events.append(chunk(None, usage=usage))
    return Reply(events=tuple(events))


def failure(
    status: int, message: str = "scripted failure", *, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """An HTTP error with OpenAI's error body, e.g. `failure(429, headers={"Retry-After": "1"})`."""
    error = {"error": {"message": message, "type": code or "scripted", "code": code, "param": None}}
    return Reply(status=status, error=error, headers=headers or {})


def hang(*pieces: str, is_silent: bool = False) -> Reply:
    """Streams the pieces and then nothing more; with `is_silent` not even the response's head comes."""
    return Reply(events=_opened(pieces), ending="hang", is_silent=is_silent)


def reset(*pieces: str) -> Reply:
    """Streams the pieces, then resets the connection; without pieces it is reset before the response."""
    return Reply(events=_opened(pieces) if pieces else (), ending="reset", is_silent=not pieces)


def close_early(*pieces: str) -> Reply:
    """Streams the pieces and ends the body cleanly, but without finish_reason and [DONE]."""
    return Reply(events=_opened(pieces), ending="close")


def raw(*events: str, ending: Ending = "done") -> Reply:
    """Sends these events verbatim, e.g. broken JSON."""
    return Reply(events=events, ending=ending)


def bare(*parts: str, ending: Ending = "close", pause_seconds: float = 0.0) -> Reply:
    """Sends these parts of a body verbatim with status 200, e.g. comments, other fields of events, or a page."""
    return Reply(events=parts, frame="{}", ending=ending, pause_seconds=pause_seconds)


Thinking = Literal[
    "reasoning_content", "reasoning", "reasoning_details", "blocks", "tags", "other_tags", "end_tag", "channels"
]
THINKING: Final[tuple[Thinking, ...]] = get_args(Thinking)


def thinking(
    form: Thinking,
    thought: str,
    answer: str,
    *,
    most: int = 6,
    finish_reason: str = "stop",
    pause_seconds: float = 0.0,
    pieces: Callable[[str], Sequence[str]] | None = None,
) -> Reply:
    """An answer behind thoughts, in one of the forms that servers send them in.

    Args:
        form: A field beside the text, blocks in a list of contents, or marks within the text.
        thought: The thoughts, "" for none.
        answer: The answer, "" for thoughts alone.
        most: How many pieces each of the two is streamed in.
        finish_reason: The last chunk's.
        pause_seconds: Wait before each event.
        pieces: Splits each of the two into pieces, in place of `most`.
    """
    cut = pieces or partial(in_pieces, most=most)
    marks: dict[Thinking, tuple[str, str]] = {
        "tags": ("<think>\n", "\n</think>\n\n"),
        "other_tags": ("<thought>\n", "\n</thought>\n\n"),
        "end_tag": ("", "\n</think>\n\n"),
        "channels": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    }
    if form in marks:
        begin, end = marks[form]
        deltas = [{"content": piece} for piece in cut(f"{begin}{thought}{end if answer else ''}{answer}")]
    else:
        fields: dict[Thinking, Callable[[str], dict[str, Any]]] = {
            "reasoning_content": lambda piece: {"reasoning_content": piece, "content": None},
            "reasoning": lambda piece: {"reasoning": piece, "content": ""},
            "reasoning_details": lambda piece: {"reasoning_details": [{"type": "reasoning.text", "text": piece}]},
            "blocks": lambda piece: {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]},
        }
        deltas = [*map(fields[form], cut(thought)), *({"content": piece} for piece in (cut(answer) if answer else ()))]
    events = [chunk({"role": "assistant", "content": ""}), *map(chunk, deltas)]
    events += [chunk({}, finish_reason=finish_reason), chunk(None, usage=DEFAULT_USAGE)]
    return Reply(events=tuple(events), pause_seconds=pause_seconds)


def refusal(words: str) -> Reply:
    """An answer in OpenAI's `refusal` field, with no content."""
    return Reply(
        events=(
            chunk({"role": "assistant", "content": None}),
            chunk({"refusal": words}),
            chunk({}, finish_reason="stop"),
        )
    )


def slowed(reply: Reply, pause_seconds: float) -> Reply:
    """The same reply with a wait before each event."""
    return replace(reply, pause_seconds=pause_seconds)


def as_whole(reply: Reply) -> Body:
    """Returns the streamed reply as one `chat.completion`, for a request that doesn't stream."""
    chunks = [json.loads(event) for event in reply.events]
    deltas = [choice["delta"] for piece in chunks for choice in piece["choices"]]
    message = {"role": "assistant", "content": "".join(delta.get("content") or "" for delta in deltas)}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}


def describe(reply: Reply) -> str:
    """Says in a few words what a reply is."""
    if reply.status != 200:
        return f"a failure {reply.status}"
    said = " ".join(re.findall(r'"content": "([^"]+)', "".join(reply.events)))[:60]
    return f"{said!r}, then {reply.ending!r}"


def _opened(pieces: Sequence[str]) -> tuple[str, ...]:
    return (chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in pieces))
