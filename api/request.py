"""Parses and validates the bodies and headers of completion requests: messages, options, model ids."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, LiteralString, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from starlette.datastructures import Headers

from api.middleware import ApiClient
from api.problem import ProblemError, refused
from graph.value.client import CACHE_KEY, ClientMessage, ClientOptions, ClientRequest, Hint, is_image_url
from graph.value.event import ClientCall

MESSAGES: Final = 10_000
PARTS: Final = 1_000
_ID_CHARS: Final = 256


def wrong(kind: LiteralString, message: LiteralString, **named: str) -> PydanticCustomError:
    """Returns a validator's error: `kind` is its code, and `message` its sentence, with braces for what is named."""
    return PydanticCustomError(kind, message, named)


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    """Drops fields that are null, which OpenAI's clients use for absent."""
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


_B = TypeVar("_B", bound=BaseModel)


class Sent(BaseModel):
    """A model of the body; ignores unknown fields, null means absent."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    _drop_nulls = model_validator(mode="before")(_without_nulls)


def _as_url(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    return value.get("url") if isinstance(value, dict) else value


def as_parts(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


_IMAGES: Final = ("image_url", "input_image")
# Those of chat completions, and those of responses.
_PARTS: Final = ("text", "input_text", "output_text", "refusal", *_IMAGES)


class Part(Sent):
    """One part of a message: text, a refusal or an image."""

    type: str
    text: str = ""
    refusal: str = ""
    image_url: Annotated[str, BeforeValidator(_as_url, json_schema_input_type=str | dict[str, Any])] = ""

    @model_validator(mode="after")
    def _check(self) -> Part:
        if self.type not in _PARTS:
            types = "text, input_text, output_text, image_url, input_image, refusal"
            raise wrong("unsupported_content", "Only parts of these types are taken: {types}", types=types)
        if self.is_image and not is_image_url(self.image_url):
            message = "An image is a data: URL of an image, or an https address of a public host"
            raise wrong("invalid_image_url", message)
        return self

    @property
    def is_image(self) -> bool:
        return self.type in _IMAGES


Content = Annotated[
    list[Part], BeforeValidator(as_parts, json_schema_input_type=str | list[Part]), Field(max_length=PARTS)
]


class Function(Sent):
    """The function that a call names, and its arguments as JSON."""

    name: str = Field(min_length=1, max_length=_ID_CHARS)
    arguments: str = ""


class Call(Sent):
    """A call of a tool in an answer that the program sends back."""

    id: str = Field(min_length=1, max_length=_ID_CHARS)
    function: Function


class SentMessage(Sent):
    """One message; `name` counts in the old form of a result alone, and other fields are ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = []
    refusal: str = ""
    tool_calls: list[Call] = Field(default=[], max_length=PARTS)
    tool_call_id: str = Field(default="", max_length=_ID_CHARS)
    function_call: Function | None = None
    name: Any = ""

    @model_validator(mode="after")
    def _check(self) -> SentMessage:
        if self.role == "tool" and not self.tool_call_id:
            message = "A message of the role tool says by tool_call_id which call it answers"
            raise wrong("missing_tool_call_id", message)
        return self

    @property
    def calls(self) -> tuple[ClientCall, ...]:
        """The calls; one in the old form has its name for an id, as its result has nothing else."""
        calls = [(call.id, call.function) for call in self.tool_calls]
        if self.function_call:
            calls.append((self.function_call.name, self.function_call))
        return tuple(ClientCall(call_id, function.name, function.arguments or "{}") for call_id, function in calls)

    @property
    def text(self) -> str:
        return text_of(self.content, self.refusal)


def text_of(parts: Iterable[Part], refusal: str = "") -> str:
    texts = [part.refusal if part.type == "refusal" else part.text for part in parts]
    return "\n".join(text for text in (*texts, refusal) if text)


def with_spoken(messages: Sequence[SentMessage]) -> list[SentMessage]:
    """Returns the messages, with those of the system that alone answer an assistant's as the user's.

    Some agents run what an answer says, and tell the result as the system.
    """
    spoken, first, is_answer = [*messages], 0, False
    for at, message in enumerate((*messages, None)):
        if message is not None and message.role in _INSTRUCTING:
            continue
        if is_answer and (message is None or message.role == "assistant"):
            spoken[first:at] = [each.model_copy(update={"role": "user"}) for each in messages[first:at]]
        first, is_answer = at + 1, message is not None and message.role == "assistant" and not message.calls
    return spoken


_INSTRUCTING: Final = ("system", "developer")


def system_of(messages: Sequence[SentMessage]) -> str:
    texts = (message.text for message in messages if message.role in _INSTRUCTING)
    return "\n\n".join(text for text in texts if text)


def chat_of(messages: Sequence[SentMessage]) -> tuple[ClientMessage, ...]:
    """Converts the messages of user, assistant and tools; drops system and developer messages."""
    return tuple(
        ClientMessage(
            role="tool" if role == "function" else role,
            text=message.text,
            images=tuple(part.image_url for part in message.content if part.is_image),
            calls=message.calls,
            call_id=message.tool_call_id or (str(message.name) if role == "function" else ""),
        )
        for message in messages
        if (role := message.role) != "system" and role != "developer"
    )


# Not named like OpenAI's models: clients send `gpt-5…` and `o…` to other routes, with other fields.
DEFAULT_ID: Final = "turnfold"
PREFIX: Final = "turnfold/"
PLAIN: Final = ":plain"


def parse_model_id(model_id: str) -> tuple[str, bool]:
    """Returns the model's name, "" for the default, and whether the answer is made without memory (`:plain`)."""
    name = model_id.removesuffix(PLAIN)
    return ("" if name == DEFAULT_ID else name.removeprefix(PREFIX)), name != model_id


def check_known(model_id: str, names: Collection[str]) -> None:
    """Raises `ProblemError` (404) for an unknown model, without its name, which may be anything.

    Any name passes if the models can't be listed.
    """
    name, _ = parse_model_id(model_id)
    if name and names and name not in names:
        message = "There is no model of this name. GET /v1/models lists them."
        raise refused("model_not_found", message, "model", status=404)


SESSION: Final = "X-Turnfold-Session"
TURN: Final = "X-Turnfold-Turn"
MATCHED: Final = "X-Turnfold-Matched"
LEFT_OUT: Final = "X-Turnfold-Left-Out"
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
# Its cache key is the id of its chat.
_CODEX: Final = "codex"


def session_of(headers: Headers, metadata: Mapping[str, Any]) -> str:
    """Returns the session id in the request, "" for none. Raises `ProblemError` (400)."""
    return header(headers, SESSION) or _checked("metadata.turnfold_session", metadata.get("turnfold_session"))


def hint_of(headers: Headers, body: Mapping[str, Any], metadata: Mapping[str, Any]) -> Hint | None:
    """Returns the first chat id of the client's own, hashed if it isn't short, printable ASCII."""
    candidates: Iterable[tuple[str, Any]] = (
        *((name, headers.get(name)) for name in _HINT_HEADERS),
        *((f"metadata.{name}", metadata.get(name)) for name in _HINT_METADATA),
        (_CODEX if _CODEX in headers.get("user-agent", "")[:_VALUE_CHARS].lower() else CACHE_KEY, body.get(CACHE_KEY)),
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
    """Returns the client's id of the end user, "" for none. Raises `ProblemError` (400) if it isn't a short text."""
    if forwarded := header(headers, "X-OpenWebUI-User-Id"):
        return forwarded
    for name in ("user", "safety_identifier"):
        value = body.get(name, "")
        if value is not None and (not isinstance(value, str) or len(value) > _VALUE_CHARS):
            raise refused("invalid_value", f"{name}: it is a text of up to {_VALUE_CHARS} characters.", name)
        if value:
            return value
    return ""


def is_retry(headers: Headers) -> bool:
    count = headers.get("x-stainless-retry-count", "0")
    return count.isdecimal() and count.strip("0") != ""


def goes_on(headers: Headers) -> bool:
    """Returns True if the turn continues after the client closes its stream. Raises `ProblemError` (400)."""
    choice = header(headers, _ON_DISCONNECT).lower()
    if choice not in ("", "stop", "continue"):
        raise refused("invalid_header", f"{_ON_DISCONNECT}: it is stop or continue.")
    return choice == "continue"


def header(headers: Headers, name: str) -> str:
    """Returns a header's value, "" for none. Raises `ProblemError` (400) if it isn't short, printable ASCII."""
    return _checked(name, headers.get(name))


def _checked(name: str, value: object) -> str:
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
_OUR_KINDS: Final = frozenset(
    {"unsupported_content", "unsupported_tool", "invalid_image_url", "missing_tool_call_id", "duplicate_tool"}
)
_PREFILL: Final = (
    "The last message is the assistant's. Turnfold answers questions, and doesn't continue an answer: "
    "leave that message out to have the answer made again, or add a user message such as “Go on”."
)


@dataclass(frozen=True)
class ParsedRequest:
    """A request for a completion.

    `goes_on` if the turn continues after the client closes the stream; `echo`: fields that the answer repeats;
    `lengths`: where questions and results stand in the body, and how many characters they have.
    """

    request: ClientRequest
    model: str
    is_streamed: bool
    with_usage: bool
    goes_on: bool
    echo: Mapping[str, Any] = field(default_factory=dict)
    lengths: Sequence[tuple[str, int]] = ()


def _refuse_others(value: Any, take: ValidatorFunctionWrapHandler) -> Any:  # noqa: ANN401  # JSON of any shape
    try:
        return take(value)
    except ValidationError:
        raise wrong("unsupported", "It isn't supported") from None


# Of a field that OpenAI has and Turnfold takes only as if it weren't there.
UNSUPPORTED: Final = WrapValidator(_refuse_others)


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
    seed: int | None = None
    top_k: int | None = None
    min_p: float | None = Field(default=None, ge=0, le=1)
    chat_template_kwargs: dict[str, Any] | None = None
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
    """Options of a stream."""

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
    n: Annotated[Literal[1], UNSUPPORTED] = 1
    logprobs: Annotated[Literal[False], UNSUPPORTED] = False
    top_logprobs: Annotated[Literal[0], UNSUPPORTED] = 0
    audio: Annotated[None, UNSUPPORTED] = None
    modalities: list[Literal["text"]] = Field(default=[])

    @field_validator("tools")
    @classmethod
    def _check_names(cls, tools: list[Tool]) -> list[Tool]:
        if any(count > 1 for count in Counter(tool.function.name for tool in tools).values()):
            raise wrong("duplicate_tool", "Each tool has a name of its own")
        return tools


_SAMPLING: Final = frozenset(_Sampling.model_fields)


def parse_request(fields: dict[str, Any], headers: Headers, client: ApiClient) -> ParsedRequest:
    """Validates the body and headers of a completion request; reads no stored data.

    Raises `ProblemError` (400), which names the wrong field.
    """
    sent = validated(CompletionBody, fields)
    spoken = with_spoken(sent.messages)
    messages, system = chat_of(spoken), system_of(spoken)
    if not messages and system.strip():
        messages, system = (ClientMessage("user", system),), ""  # alone, it is what is asked
    _check_question(messages)
    tool_choice, tools = _allowed(sent.tool_choice, tuple(fields["tools"]) if sent.tools else ())
    model, is_plain = parse_model_id(sent.model)
    options = ClientOptions(
        name=client.name,
        system=system,
        tools=tools,
        tool_choice=tool_choice,
        sampling=sent.model_dump(include=set(_SAMPLING), exclude_unset=True),
        allowed_tools=client.tools,
        supports_restart=not sent.stream,
    )
    request = ClientRequest(
        messages,
        options,
        model=model,
        is_plain=is_plain,
        task=header(headers, _TASK),  # "" for a turn of the chat itself
        session=session_of(headers, sent.metadata),
        hint=hint_of(headers, fields, sent.metadata),
        user=user_of(headers, fields),
        is_personal=client.is_personal,
        idempotency_key=header(headers, "Idempotency-Key"),
        is_retry=is_retry(headers),
    )
    lengths = [
        (f"messages.{at}.content", len(message.text))
        for at, message in enumerate(sent.messages)
        if message.role in ("user", "tool", "function")
    ]
    with_usage = sent.stream_options.include_usage
    return ParsedRequest(request, sent.model, sent.stream, with_usage, goes_on(headers), lengths=lengths)


_Choice = str | dict[str, Any] | None
_Tools = tuple[Mapping[str, Any], ...]


def _allowed(choice: _Choice, tools: _Tools) -> tuple[_Choice, _Tools]:
    """Returns the choice and the tools; of a choice of the form `allowed_tools` its mode, and the tools that it names.

    Few servers know the form. Raises `ProblemError` (400).
    """
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return choice, tools
    match choice.get("allowed_tools"):
        case {"mode": "auto" | "required" as mode, "tools": [_, *_] as named}:
            names = [each["function"]["name"] for each in named if _names_a_function(each)]
            allowed = tuple(tool for tool in tools if tool["function"]["name"] in names)
            if len(names) == len(named) and len({*names}) == len(allowed):
                return str(mode), allowed
    message = "tool_choice: allowed_tools has a mode (auto or required), and names some of the request's tools."
    raise refused("invalid_value", message, "tool_choice")


def _names_a_function(tool: Any) -> bool:  # noqa: ANN401  # JSON of any shape
    match tool:
        case {"type": "function", "function": {"name": str()}}:
            return True
    return False


def _check_question(messages: Sequence[ClientMessage]) -> None:
    """Refuses a request without anything to answer: no messages, or the last is empty or the assistant's."""
    if not messages:
        raise refused("empty_messages", "There is no message of the user.", "messages")
    last = messages[-1]
    if last.role == "assistant":
        raise refused("prefill_unsupported", _PREFILL, "messages")
    if last.role == "user" and not last.images and not last.text.strip():
        raise refused("empty_message", "The last message is empty.", "messages")


def validated(kind: type[_B], fields: Mapping[str, Any]) -> _B:
    """Returns the body of a request. Raises `ProblemError` (400), which names the wrong field."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise invalid_field(error) from None


def invalid_field(error: ValidationError, known: Iterable[str] = ()) -> ProblemError:
    """Returns the error for the first wrong field, with path and expected value, never the value sent.

    For an unknown field the `known` ones are named.
    """
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])[:200]
    if first["type"] == "extra_forbidden" and known:
        return refused("invalid_value", f"{where}: there is none of this name; there are {', '.join(known)}.", where)
    code = first["type"] if first["type"] in _OUR_KINDS else "invalid_value"
    return refused(code, f"{where}: {first['msg']}." if where else f"{first['msg']}.", where or None)
