"""Serialises the events of a turn as those of OpenAI's Responses API, or as a whole response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from api.completion_stream import CompletionHead, data_line, figures_of
from api.problem import Problem, problem_of_failure
from graph.core.text import plain_value
from graph.value.client import ClientUsage, CompletionEnd, FoundResponse
from graph.value.event import ClientCall, ThoughtDelta, TokenDelta

_COMPLETION: Final = "chatcmpl-"
_RESPONSE: Final = "resp_"
# By what a response that isn't finished is.
_STATUSES: Final = {"running": "in_progress", "stopped": "cancelled", "failed": "failed"}
# By finish reason; others are of whole answers.
_CUT: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


class _Form(NamedTuple):
    """How an item of text is told: its own fields, those of its one part, and the names of its events."""

    prefix: str
    fields: Mapping[str, Any]
    parts: str
    part: Mapping[str, Any]
    part_event: str
    text_event: str
    place: Mapping[str, int]
    added: Mapping[str, Any]


_MESSAGE: Final = _Form(
    "msg",
    {"type": "message", "role": "assistant"},
    "content",
    {"type": "output_text", "annotations": [], "logprobs": []},
    "response.content_part",
    "response.output_text",
    {"content_index": 0},
    {"logprobs": []},
)
_REASONING: Final = _Form(
    "rs",
    {"type": "reasoning"},
    "summary",
    {"type": "summary_text"},
    "response.reasoning_summary_part",
    "response.reasoning_summary_text",
    {"summary_index": 0},
    {},
)


def completion_id(response_id: str) -> str:
    """Returns the id of the completion that a response was made of, "" for ""."""
    return response_id and _COMPLETION + response_id.removeprefix(_RESPONSE)


def referred_id(item_id: str) -> str:
    """Returns the id of the completion that an item belongs to."""
    return _COMPLETION + item_id.partition("_")[2].rpartition("_")[0]


def full_name(group: str, name: str) -> str:
    """Returns the name by which the model knows a tool of a group, or one of none."""
    return f"{group}__{name}" if group else name


def of_response(problem: Problem) -> Problem:
    """Returns the problem with the name that the field of the messages has here."""
    is_of_input = (problem.param or "").partition(".")[0] == "messages"
    return replace(problem, param="input") if is_of_input else problem


class ResponseWriter:
    """An `AnswerWriter`: one item after the other, each told from its beginning to its end.

    Args:
        head: The completion's.
        echo: Fields of the request that the response repeats.
    """

    def __init__(self, head: CompletionHead, echo: Mapping[str, Any]) -> None:
        self._key = head.id.removeprefix(_COMPLETION)
        self._response: dict[str, Any] = {
            "id": _RESPONSE + self._key,
            "object": "response",
            "created_at": head.created,
            "model": head.model,
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            **echo,
            "output": [],
            "usage": None,
        }
        self._names = {
            full_name(tool["name"], each["name"]): {"name": each["name"], "namespace": tool["name"]}
            for tool in echo.get("tools", ())
            if tool["type"] == "namespace"
            for each in tool["tools"]
        }
        self._count = 0
        self._form: _Form | None = None
        self._texts: list[str] = []

    def start(self) -> bytes:
        return self._tell("created") + self._tell("in_progress")

    def keep_alive(self) -> bytes:
        return self._tell("in_progress")

    def delta(self, event: TokenDelta | ThoughtDelta) -> bytes:
        form = _MESSAGE if isinstance(event, TokenDelta) else _REASONING
        before = b"" if form is self._form else self._close() + self._begin(form)
        self._texts.append(event.text)
        return before + self._event(f"{form.text_event}.delta", **self._place(form), delta=event.text, **form.added)

    def calls(self, calls: Sequence[ClientCall]) -> bytes:
        lines = self._close()
        for call in calls:
            name = self._names.get(call.name, {"name": call.name})
            named = {"id": self._item_id("fc"), "type": "function_call", "call_id": call.id, **name}
            place = {"item_id": named["id"], "output_index": self._index}
            begun = {**named, "arguments": "", "status": "in_progress"}
            lines += self._event("response.output_item.added", output_index=self._index, item=begun)
            told = call.arguments
            lines += self._event("response.function_call_arguments.delta", **place, delta=told)
            lines += self._event("response.function_call_arguments.done", **place, name=name["name"], arguments=told)
            lines += self._end_item({**named, "arguments": told, "status": "completed"})
        return lines

    def end(self, end: CompletionEnd, *, with_usage: bool = True) -> bytes:  # noqa: ARG002  # usage is always told
        reason = _CUT.get(end.finish_reason)
        status = "incomplete" if reason else "completed"
        lines = b"" if self._form or self._response["output"] else self._begin(_MESSAGE)
        lines += self._close(status)
        self._response |= {
            "status": status,
            "incomplete_details": {"reason": reason} if reason else None,
            **_totals(end),
        }
        return lines + self._tell(status)

    def failure(self, problem: Problem) -> bytes:
        """Returns the last events of a failed stream: clients take the one or the other for its end."""
        error = of_response(problem).body()["error"]
        self._response |= {"status": "failed", "error": {"code": problem.code, "message": problem.message}}
        return self._event("error", error=error, **error | {"type": "error"}) + self._tell("failed")

    def whole(self, text: str, calls: Sequence[ClientCall], end: CompletionEnd, *, thoughts: str) -> dict[str, Any]:
        self._say(text, thoughts)
        self.calls(calls)
        self.end(end)
        return self._plain()

    def found(self, found: FoundResponse) -> dict[str, Any]:
        """Returns a response that was read by its id."""
        if found.status == "finished" and found.end:
            return self.whole(found.text, found.calls, found.end, thoughts=found.thoughts)
        self._say(found.text, found.thoughts)
        self._close("incomplete")
        self._response |= {"status": _STATUSES[found.status], **(_totals(found.end) if found.end else {})}
        if found.status == "failed":
            problem = problem_of_failure(found.error_code, found.error_detail)
            self._response["error"] = {"code": problem.code, "message": problem.message}
        return self._plain()

    def _say(self, text: str, thoughts: str) -> None:
        for event in (ThoughtDelta(thoughts), TokenDelta(text)):
            if event.text:
                self.delta(event)

    def _plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = plain_value(self._response)
        return plain

    @property
    def _index(self) -> int:
        return len(self._response["output"])

    def _item_id(self, prefix: str) -> str:
        return f"{prefix}_{self._key}_{self._index}"

    def _place(self, form: _Form) -> dict[str, Any]:
        return {"item_id": self._item_id(form.prefix), "output_index": self._index, **form.place}

    def _begin(self, form: _Form) -> bytes:
        self._form, self._texts = form, []
        item = {"id": self._item_id(form.prefix), **form.fields, "status": "in_progress", form.parts: []}
        added = self._event("response.output_item.added", output_index=self._index, item=item)
        return added + self._event(f"{form.part_event}.added", **self._place(form), part={**form.part, "text": ""})

    def _close(self, status: str = "completed") -> bytes:
        """Ends the item of text that is open, if one is."""
        form, self._form = self._form, None
        if form is None:
            return b""
        text, place = "".join(self._texts), self._place(form)
        part = {**form.part, "text": text}
        lines = self._event(f"{form.text_event}.done", **place, text=text, **form.added)
        lines += self._event(f"{form.part_event}.done", **place, part=part)
        item = {"id": self._item_id(form.prefix), **form.fields, "status": status, form.parts: [part]}
        return lines + self._end_item(item)

    def _end_item(self, item: Mapping[str, Any]) -> bytes:
        line = self._event("response.output_item.done", output_index=self._index, item=item)
        self._response["output"].append(item)
        return line

    def _tell(self, status: str) -> bytes:
        return self._event(f"response.{status}", response=self._response)

    def _event(self, name: str, /, **fields: object) -> bytes:
        line = data_line({"type": name, "sequence_number": self._count, **fields})
        self._count += 1
        return f"event: {name}\n".encode() + line


def _totals(end: CompletionEnd) -> dict[str, Any]:
    return {"usage": end.usage and _usage(end.usage), **figures_of(end)}


def _usage(usage: ClientUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
