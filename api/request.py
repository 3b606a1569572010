"""Makes of a body and its headers what the service is asked, or refuses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from starlette.datastructures import Headers

from api.header import goes_on, header, hint_of, is_retry, session_of, task_of, user_of
from api.message import MESSAGES, Sent, SentMessage, chat_of, system_of
from api.model_id import DEFAULT_ID, parse_model_id
from api.problem import ProblemError, refused
from api.token_guard import ApiClient
from graph.value.client import ClientMessage, ClientOptions, ClientRequest

_TOOLS: Final = 128
# The kinds of errors that are ours stand as the code; those of the parser are all one.
_OUR_KINDS: Final = frozenset({"unsupported_content", "invalid_image_url", "missing_tool_call_id", "duplicate_tool"})
_PREFILL: Final = (
    "The last message is the assistant's. Turnfold answers questions, and doesn't continue an answer: "
    "leave that message out to have the answer made again, or add a user message such as “Go on”."
)


@dataclass(frozen=True)
class ParsedRequest:
    """A request for a completion.

    Attributes:
        request: What the service is asked.
        model: The model's id as it was asked for; each chunk repeats it.
        is_streamed: Whether the answer is a stream of chunks.
        with_usage: Whether the stream ends with the tokens that the provider reported.
        goes_on: Whether the turn goes on when the client closes the stream.
    """

    request: ClientRequest
    model: str
    is_streamed: bool
    with_usage: bool
    goes_on: bool


class _Sampling(Sent):
    """What goes to the model as it is."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    stop: str | list[str] | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = Field(default=None, max_length=32)
    parallel_tool_calls: bool | None = None


class _FunctionTool(Sent):
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]
    description: str = ""
    parameters: dict[str, Any] = Field(default={})


class _Tool(Sent):
    type: Literal["function"]
    function: _FunctionTool


class _StreamOptions(Sent):
    include_usage: bool = False


class CompletionBody(_Sampling):
    """The body of `/v1/chat/completions`; fields that aren't named here are ignored."""

    messages: list[SentMessage] = Field(min_length=1, max_length=MESSAGES)
    model: str = Field(default=DEFAULT_ID, min_length=1, max_length=256)
    stream: bool = False
    stream_options: _StreamOptions = _StreamOptions()
    tools: list[_Tool] = Field(default=[], max_length=_TOOLS)
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    metadata: dict[str, Any] = Field(default={})
    # What isn't offered: more than one answer, and answers that aren't text alone.
    n: Literal[1] = 1
    logprobs: Literal[False] = False
    top_logprobs: Literal[0] = 0
    audio: None = None
    modalities: list[Literal["text"]] = Field(default=[])

    @field_validator("tools")
    @classmethod
    def _check_names(cls, tools: list[_Tool]) -> list[_Tool]:
        if any(count > 1 for count in Counter(tool.function.name for tool in tools).values()):
            kind = "duplicate_tool"
            message = "Each tool has a name of its own"
            raise PydanticCustomError(kind, message)
        return tools


_SAMPLING: Final = frozenset(_Sampling.model_fields)


def parse_request(fields: dict[str, Any], headers: Headers, client: ApiClient) -> ParsedRequest:
    """Returns what a program asks for by the object in its body; nothing of it is looked up.

    Raises:
        ProblemError: 400: something in it can't be taken; the answer names the field.
    """
    try:
        sent = CompletionBody.model_validate(fields)
    except ValidationError as error:
        raise invalid_field(error) from None
    messages = chat_of(sent.messages)
    _check_question(messages)
    model, is_plain = parse_model_id(sent.model)
    options = ClientOptions(
        name=client.name,
        system=system_of(sent.messages),
        tools=tuple(fields["tools"]) if sent.tools else (),
        tool_choice=sent.tool_choice,
        sampling=sent.model_dump(include=set(_SAMPLING), exclude_unset=True),
        allowed_tools=client.tools,
    )
    request = ClientRequest(
        messages,
        options,
        model=model,
        is_plain=is_plain,
        task=task_of(headers),
        session=session_of(headers, sent.metadata),
        hint=hint_of(headers, fields, sent.metadata),
        user=user_of(headers, fields),
        idempotency_key=header(headers, "Idempotency-Key"),
        is_retry=is_retry(headers),
    )
    return ParsedRequest(request, sent.model, sent.stream, sent.stream_options.include_usage, goes_on(headers))


def _check_question(messages: Sequence[ClientMessage]) -> None:
    """Refuses a request that nothing can be answered to.

    Raises:
        ProblemError: 400: it ends with an assistant's message, or says nothing.
    """
    if not messages:
        raise refused("empty_messages", "There is no message of the user.", "messages")
    last = messages[-1]
    if last.role == "assistant":
        raise refused("prefill_unsupported", _PREFILL, "messages")
    if last.role == "user" and not last.images and not last.text.strip():
        raise refused("empty_message", "The last message is empty.", "messages")


def invalid_field(error: ValidationError) -> ProblemError:
    """Returns what is told of the first wrong field: where, and what it takes; never what stood there."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])[:200]
    code = first["type"] if first["type"] in _OUR_KINDS else "invalid_value"
    return refused(code, f"{where}: {first['msg']}.", where or None)
