"""The route `/v1/responses`: OpenAI's Responses API, translated into a chat completion and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints, Tag, field_validator
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from api.completions import CreateCompletion, OpenedCompletion
from api.event_stream import EventQueue
from api.middleware import ApiClient
from api.problem import ProblemError, problem_of, refused
from api.request import (
    DEFAULT_ID,
    MESSAGES,
    UNSUPPORTED,
    Call,
    Content,
    Function,
    FunctionTool,
    ParsedRequest,
    Sent,
    SentMessage,
    as_parts,
    parse_request,
    text_of,
    validated,
    wrong,
)
from api.response_stream import ResponseWriter, completion_id, full_name, of_response, referred_id
from api.route_table import EVENTS, Operation
from graph.value.error import NotFoundError, TurnfoldError

_Id = Annotated[str, Field(min_length=1, max_length=256)]


class MessageItem(Sent):
    """A message of one speaker."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: Content


class CallItem(Sent):
    """A call of a tool of the program's, as an earlier response has it."""

    type: Literal["function_call"]
    call_id: _Id
    name: _Id
    namespace: str = Field(default="", max_length=64)
    arguments: str


class OutputItem(Sent):
    """What a tool of the program's gave for a call."""

    type: Literal["function_call_output"]
    call_id: _Id
    output: Content


class LeftOutItem(Sent):
    """What a chat has from elsewhere and nobody said: thoughts, calls of OpenAI's tools with their results; ignored."""

    type: str


class ReferenceItem(Sent):
    """An item of an earlier response of this server, by its id: the chat up to the end of that response."""

    type: Literal["item_reference"] = "item_reference"
    id: _Id


def _type_of(sent: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    kind = sent.get("type") if isinstance(sent, dict) else None
    return kind if isinstance(kind, str) else None


_TAKEN: Final = frozenset({"message", "function_call", "function_call_output", "item_reference"})
# Also of later kinds of items: as long as they tell only what a tool or the API does, the chat is the same without.
_LEFT_OUT: Final = re.compile(
    r"reasoning|\w+_call|\w+_output|mcp_\w+|(\w+_)?compaction(_\w+)?|additional_tools|configuration_update|program",
    re.ASCII,
)


def _kind_of(item: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    if isinstance(item, dict) and item.get("type") is None:
        return "message" if "role" in item else "item_reference"
    kind = _type_of(item)
    return "left_out" if kind and kind not in _TAKEN and _LEFT_OUT.fullmatch(kind) else kind


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[OutputItem, Tag("function_call_output")]
    | Annotated[ReferenceItem, Tag("item_reference")]
    | Annotated[LeftOutItem, Tag("left_out")],
    Discriminator(
        _kind_of,
        custom_error_type="unsupported_content",
        custom_error_message=(
            "Only items of the types message, function_call, function_call_output and item_reference are taken; "
            "reasoning, and calls of OpenAI's own tools with their results, are left out"
        ),
    ),
]


def _as_items(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


class ResponseTool(FunctionTool):
    """A tool of the program's own."""

    type: Literal["function"]


class ToolGroup(Sent):
    """Tools of the program's own whose calls name their group."""

    type: Literal["namespace"]
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]
    tools: list[ResponseTool]


_UNSUPPORTED_TOOL: Final = "Only tools of the types function and namespace are taken"
_Tool = Annotated[
    Annotated[ResponseTool, Tag("function")] | Annotated[ToolGroup, Tag("namespace")],
    Discriminator(_type_of, custom_error_type="unsupported_tool", custom_error_message=_UNSUPPORTED_TOOL),
]


class Reasoning(Sent):
    """How a thinking model thinks."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


class TextOptions(Sent):
    """The form of the answer's text."""

    format: dict[str, Any] = Field(default={})


_MetadataKey = Annotated[str, Field(max_length=64)]
_MetadataValue = Annotated[str, Field(max_length=512)]
_Includable = Literal[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
]
_BUILT_IN: Final = re.compile(
    r"apply_patch|code_interpreter|computer(_use_preview)?|custom|file_search|image_generation|(local_)?shell|mcp|"
    r"programmatic_tool_calling|tool_search|web_search(_preview)?(_[0-9_]{10})?"
)


class ResponseBody(Sent):
    """The body of `/v1/responses`; fields that aren't named here are ignored."""

    input: Annotated[
        list[Item], BeforeValidator(_as_items, json_schema_input_type=str | list[Item]), Field(max_length=MESSAGES)
    ] = Field(default=[])
    model: str = Field(default=DEFAULT_ID, min_length=1, max_length=256)
    instructions: str = ""
    previous_response_id: str = Field(default="", max_length=256)
    stream: bool = False
    store: bool = True
    tools: list[_Tool] = Field(default=[])
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions = TextOptions()
    reasoning: Reasoning = Reasoning()
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    metadata: Annotated[dict[_MetadataKey, _MetadataValue], Field(max_length=16)] = Field(default={})
    # These two are checked and change nothing: nothing more can be told, and what doesn't fit is always left out.
    include: list[_Includable] = Field(default=[])
    truncation: Literal["auto", "disabled"] | None = None
    # Not supported: answers nobody waits for, chats and prompts that OpenAI stores.
    background: Annotated[Literal[False], UNSUPPORTED] = False
    conversation: Annotated[None, UNSUPPORTED] = None
    prompt: Annotated[None, UNSUPPORTED] = None
    top_logprobs: Annotated[Literal[0], UNSUPPORTED] = 0

    @field_validator("tools", mode="before")
    @classmethod
    def _refuse_built_in(cls, tools: Any) -> Any:  # noqa: ANN401  # JSON of any shape
        kinds = map(_type_of, tools) if isinstance(tools, list) else ()
        if built_in := next((kind for kind in kinds if kind and _BUILT_IN.fullmatch(kind)), None):
            message = "{name} is a tool of OpenAI's, which isn't here; only tools of the type function are taken"
            raise wrong("unsupported_tool", message, name=built_in)
        return tools


# Fields that a response repeats, as they are if the request hasn't named them.
ECHOED: Final[Mapping[str, Any]] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "user": None,
}
_UNCHECKED: Final = ("user", "safety_identifier", "prompt_cache_key")
_SAME: Final = ("model", "stream", "parallel_tool_calls", "temperature", "top_p", "metadata", *_UNCHECKED)


def parse_response_request(fields: dict[str, Any], headers: Headers, client: ApiClient) -> ParsedRequest:
    """Validates the body and headers of a request for a response; reads no stored data.

    Raises `ProblemError` (400), which names the wrong field.
    """
    sent = validated(ResponseBody, fields)
    previous, items = _previous_and_rest(sent)
    if not items and (sent.input or not sent.instructions.strip()):
        message = "There is nothing in the input to answer: no message, and no result of a tool of the program's own."
        raise refused("empty_messages", message, "input")
    completion: dict[str, Any] = {
        **{name: fields[name] for name in _SAME if fields.get(name) is not None},
        "messages": list(_messages(sent.instructions, items)),
        "tools": [{"type": "function", "function": tool} for tool in _functions(fields.get("tools") or ())],
        "tool_choice": _tool_choice(sent.tool_choice),
        "max_completion_tokens": sent.max_output_tokens,
        "reasoning_effort": sent.reasoning.effort,
        "response_format": _response_format(sent.text.format),
    }
    parsed = parse_request(completion, headers, client)
    request = parsed.request
    if previous and (request.is_plain or request.task):
        raise refused("invalid_value", "An answer without memory follows no other.", "previous_response_id")
    options = replace(request.options, system=request.options.system or None) if previous else request.options
    echo = {name: default if fields.get(name) is None else fields[name] for name, default in ECHOED.items()}
    request = replace(request, previous=previous, options=options)
    lengths = [("input", len(text))] if isinstance(text := fields.get("input"), str) else [*_lengths(sent.input)]
    return replace(parsed, request=request, echo=echo, lengths=lengths)


def _lengths(items: Iterable[Item]) -> Iterator[tuple[str, int]]:
    for at, item in enumerate(items):
        if isinstance(item, MessageItem) and item.role == "user":
            yield f"input.{at}.content", len(text_of(item.content))
        elif isinstance(item, OutputItem):
            yield f"input.{at}.output", len(text_of(item.output))


def _previous_and_rest(sent: ResponseBody) -> tuple[str, Sequence[Item]]:
    """Returns the id of the completion that the request follows, "" for none, and the items that are new.

    The newest item that is sent by its id alone stands for all of the chat before it.
    """
    items = [item for item in sent.input if not isinstance(item, LeftOutItem)]
    for last, known in reversed([*enumerate(items)]):
        if isinstance(known, ReferenceItem):
            rules = [item for item in items[:last] if isinstance(item, MessageItem) and item.role in _RULES]
            # Other items of that response may follow in full.
            return referred_id(known.id), [*rules, *dropwhile(_is_said, items[last + 1 :])]
    return completion_id(sent.previous_response_id), items


_RULES: Final = ("system", "developer")


def _is_said(item: Item) -> bool:
    return isinstance(item, CallItem) or (isinstance(item, MessageItem) and item.role == "assistant")


def _messages(instructions: str, items: Iterable[Item]) -> Iterable[SentMessage]:
    """Converts items to the messages of a chat completion: what the assistant said and called in a row is one."""
    if instructions:
        yield SentMessage(role="system", content=as_parts(instructions))
    said: list[MessageItem | CallItem] = []
    for item in items:
        if said and not _is_said(item):
            yield _answer(said)
            said = []
        if isinstance(item, MessageItem | CallItem) and _is_said(item):
            said.append(item)
        elif isinstance(item, MessageItem):
            yield SentMessage(role=item.role, content=item.content)
        elif isinstance(item, OutputItem):
            yield SentMessage(role="tool", tool_call_id=item.call_id, content=item.output)
    if said:
        yield _answer(said)


def _answer(said: Iterable[MessageItem | CallItem]) -> SentMessage:
    text, calls = "", list[Call]()
    for item in said:
        if isinstance(item, CallItem):
            name = full_name(item.namespace, item.name)
            calls.append(Call(id=item.call_id, function=Function(name=name[:256], arguments=item.arguments)))
            continue
        more = SentMessage(role="assistant", content=item.content).text
        is_joined = not text or text[-1].isspace() or more[:1].isspace()
        text += more if is_joined else f"\n\n{more}"
    return SentMessage(role="assistant", content=as_parts(text), tool_calls=calls)


def _functions(tools: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for tool in tools:
        if tool["type"] == "function":
            yield _described(tool)
        else:
            named = ({**each, "name": full_name(tool["name"], each["name"])} for each in tool["tools"])
            yield from map(_described, named)


def _described(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "type" and value is not None}


def _tool_choice(choice: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    match choice:
        case {"type": "function", "name": str(name)}:
            return {"type": "function", "function": {"name": full_name(choice.get("namespace") or "", name)}}
        case {"type": "allowed_tools", "tools": [*tools]}:
            allowed = {"mode": choice.get("mode"), "tools": [_tool_choice(tool) for tool in tools]}
            return {"type": "allowed_tools", "allowed_tools": allowed}
        case dict():
            message = "Only a tool of the type function can be chosen, or allowed_tools of such."
            raise refused("unsupported_tool", message, "tool_choice")
    return choice


def _response_format(wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = wanted.get("type", "text")
    if kind == "text":
        return None
    return {"type": kind, "json_schema": _described(wanted)} if kind == "json_schema" else {"type": kind}


class CreateResponse(CreateCompletion):
    """The route's handler: a `CreateCompletion` in other words."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except (ProblemError, TurnfoldError) as error:
            if (problem := of_response(problem_of(error))).param != "input":
                raise
            raise ProblemError(problem) from error

    def _parse(self, fields: dict[str, Any], headers: Headers, client: ApiClient) -> ParsedRequest:
        return parse_response_request(fields, headers, client)

    def _open(self, asked: ParsedRequest, client: ApiClient, queue: EventQueue) -> OpenedCompletion:
        try:
            return super()._open(asked, client, queue)
        except NotFoundError:
            if not asked.request.previous:
                raise
            message = "Previous response not found: there is none of this id, or it was answered without memory."
            raise refused("previous_response_not_found", message, "previous_response_id", status=404) from None

    def _writer(self, opened: OpenedCompletion) -> ResponseWriter:
        # Behind a session, the oldest is left out of what doesn't fit, whatever was asked; see `left_out`.
        truncation = "auto" if opened.completion.session_id else "disabled"
        return ResponseWriter(opened.head, {**opened.asked.echo, "truncation": truncation})


CREATE: Final = Operation(
    "createResponse",
    "POST",
    "/v1/responses",
    dict[str, Any],
    summary="Answers as OpenAI's Responses API does, with the folded memory behind it; see the guide.",
    body=ResponseBody,
    media_types=("application/json", EVENTS),
    refusals=(404, 409, 502),
)
