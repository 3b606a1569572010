"""Parses and validates the body and headers of a completion request."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from starlette.datastructures import Headers

from api.message import MESSAGES, Sent, SentMessage, chat_of, system_of
from api.model_id import DEFAULT_ID, parse_model_id
from api.problem import ProblemError, refused
from api.token_guard import ApiClient
from graph.value.client import ClientMessage, ClientOptions, ClientRequest, Hint

SESSION: Final = "X-Turnfold-Session"
TURN: Final = "X-Turnfold-Turn"
MATCHED: Final = "X-Turnfold-Matched"
_TASK: Final = "X-Turnfold-Task"
_ON_DISCONNECT: Final = "X-Turnfold-On-Disconnect"
_VALUE_CHARS: Final = 256
# The most reliable chat ids first.
_HINT_HEADERS: Final = (
    "x-openwebui-chat-id",
    "x-conversation-id",
    "x-session-id",
    "x-session-affinity",
    "x-opencode-session",
)
_HINT_METADATA: Final = ("session_id", "chat_id", "conversation_id")
_HINT_FIELD: Final = "prompt_cache_key"


def session_of(headers: Headers, metadata: Mapping[str, Any]) -> str:
    """Returns the session id in the request, "" for none.

    Raises:
        ProblemError: 400: not a possible session id.
    """
    return header(headers, SESSION) or _checked("metadata.turnfold_session", metadata.get("turnfold_session"))


def hint_of(headers: Headers, body: Mapping[str, Any], metadata: Mapping[str, Any]) -> Hint | None:
    """Returns the first chat id of the client's own, hashed if it isn't short, printable ASCII."""
    candidates: Iterable[tuple[str, Any]] = (
        *((name, headers.get(name)) for name in _HINT_HEADERS),
        *((f"metadata.{name}", metadata.get(name)) for name in _HINT_METADATA),
        (_HINT_FIELD, body.get(_HINT_FIELD)),
    )
    ids = [(name, _hint_value(value)) for name, value in candidates]
    # A temporary chat of Open WebUI shares its id with all others of its tab.
    return next((Hint(name, value) for name, value in ids if value and not value.startswith("local:")), None)


def _hint_value(value: object) -> str:
    if not isinstance(value, str):
        return ""
    value = value.strip()
    if _is_plain(value):
        return "" if _is_template(value) else value
    return hashlib.sha256(value.encode(errors="replace")).hexdigest()


def user_of(headers: Headers, body: Mapping[str, Any]) -> str:
    """Returns the client's id of the end user, "" for none.

    Raises:
        ProblemError: 400: not a short text.
    """
    if forwarded := header(headers, "X-OpenWebUI-User-Id"):
        return forwarded
    for name in ("user", "safety_identifier"):
        value = body.get(name, "")
        if value is not None and (not isinstance(value, str) or len(value) > _VALUE_CHARS):
            raise refused("invalid_value", f"{name}: it is a text of up to {_VALUE_CHARS} characters.", name)
        if value:
            return value
    return ""


def task_of(headers: Headers) -> str:
    """Returns the task header, "" for a turn of the chat itself.

    Raises:
        ProblemError: 400: not short, printable ASCII.
    """
    return header(headers, _TASK)


def is_retry(headers: Headers) -> bool:
    """Returns True if the client library reports a repeated request."""
    count = headers.get("x-stainless-retry-count", "0")
    return count.isdecimal() and count.strip("0") != ""


def goes_on(headers: Headers) -> bool:
    """Returns True if the turn continues after the client closes its stream.

    Raises:
        ProblemError: 400: the header is neither "stop" nor "continue".
    """
    said = header(headers, _ON_DISCONNECT).lower()
    if said not in ("", "stop", "continue"):
        raise refused("invalid_header", f"{_ON_DISCONNECT}: it is stop or continue.")
    return said == "continue"


def header(headers: Headers, name: str) -> str:
    """Returns a header's value, "" for none.

    Raises:
        ProblemError: 400: not short, printable ASCII.
    """
    return _checked(name, headers.get(name))


def _checked(name: str, value: object) -> str:
    """Returns a value if it is safe to send back in a header."""
    if value is None:
        return ""
    if isinstance(value, str) and _is_plain(value):
        return "" if _is_template(value) else value.strip()
    raise refused("invalid_header", f"{name}: it is up to {_VALUE_CHARS} printable ASCII characters.", name)


def _is_plain(value: str) -> bool:
    return len(value) <= _VALUE_CHARS and value.isascii() and value.isprintable()


def _is_template(value: str) -> bool:
    """Whether a client left its template unfilled, such as "{{TASK}}", which is no value."""
    return value.startswith("{{") and value.endswith("}}")


_TOOLS: Final = 128
# Own error kinds are sent as the code; all of the parser's become "invalid_value".
_OUR_KINDS: Final = frozenset({"unsupported_content", "invalid_image_url", "missing_tool_call_id", "duplicate_tool"})
_PREFILL: Final = (
    "The last message is the assistant's. Turnfold answers questions, and doesn't continue an answer: "
    "leave that message out to have the answer made again, or add a user message such as “Go on”."
)


@dataclass(frozen=True)
class ParsedRequest:
    """A request for a completion.

    Attributes:
        request: The request to the service.
        model: The requested model id, repeated in each chunk.
        is_streamed: The answer is a stream of chunks.
        with_usage: The stream ends with the provider's token usage.
        goes_on: The turn continues after the client closes the stream.
    """

    request: ClientRequest
    model: str
    is_streamed: bool
    with_usage: bool
    goes_on: bool


class _Sampling(Sent):
    """Parameters passed to the model unchanged."""

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


class FunctionTool(Sent):
    """The function of a tool."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]
    description: str = ""
    parameters: dict[str, Any] = Field(default={})


class Tool(Sent):
    """A tool of the program's own."""

    type: Literal["function"]
    function: FunctionTool


class StreamOptions(Sent):
    """What a stream says beside the answer."""

    include_usage: bool = False


class CompletionBody(_Sampling):
    """The body of `/v1/chat/completions`; fields that aren't named here are ignored."""

    messages: list[SentMessage] = Field(min_length=1, max_length=MESSAGES)
    model: str = Field(default=DEFAULT_ID, min_length=1, max_length=256)
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    tools: list[Tool] = Field(default=[], max_length=_TOOLS)
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    metadata: dict[str, Any] = Field(default={})
    # Not supported: several answers, and anything but text.
    n: Literal[1] = 1
    logprobs: Literal[False] = False
    top_logprobs: Literal[0] = 0
    audio: None = None
    modalities: list[Literal["text"]] = Field(default=[])

    @field_validator("tools")
    @classmethod
    def _check_names(cls, tools: list[Tool]) -> list[Tool]:
        if any(count > 1 for count in Counter(tool.function.name for tool in tools).values()):
            kind = "duplicate_tool"
            message = "Each tool has a name of its own"
            raise PydanticCustomError(kind, message)
        return tools


_SAMPLING: Final = frozenset(_Sampling.model_fields)


def parse_request(fields: dict[str, Any], headers: Headers, client: ApiClient) -> ParsedRequest:
    """Validates the body and headers of a completion request; reads no stored data.

    Raises:
        ProblemError: 400; the answer names the wrong field.
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
    """Refuses a request without anything to answer: no messages, or the last is empty or the assistant's."""
    if not messages:
        raise refused("empty_messages", "There is no message of the user.", "messages")
    last = messages[-1]
    if last.role == "assistant":
        raise refused("prefill_unsupported", _PREFILL, "messages")
    if last.role == "user" and not last.images and not last.text.strip():
        raise refused("empty_message", "The last message is empty.", "messages")


def invalid_field(error: ValidationError) -> ProblemError:
    """Returns the error for the first wrong field, with path and expected value, never the value sent."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])[:200]
    code = first["type"] if first["type"] in _OUR_KINDS else "invalid_value"
    return refused(code, f"{where}: {first['msg']}.", where or None)
