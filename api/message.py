"""The message models of request bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from graph.value.client import ClientMessage
from graph.value.event import ClientCall
from graph.value.image_url import is_image_url

MESSAGES: Final = 10_000
PARTS: Final = 1_000
_ID_CHARS: Final = 256


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    """Drops fields that are null, which OpenAI's clients use for absent."""
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


class Sent(BaseModel):
    """A model of the body; ignores unknown fields, null means absent."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    _drop_nulls = model_validator(mode="before")(_without_nulls)


def _as_url(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    return value.get("url") if isinstance(value, dict) else value


def _as_parts(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


class Part(Sent):
    """One part of a message: text, a refusal or an image."""

    type: str
    text: str = ""
    refusal: str = ""
    image_url: Annotated[str, BeforeValidator(_as_url, json_schema_input_type=str | dict[str, Any])] = ""

    @model_validator(mode="after")
    def _check(self) -> Part:
        if self.type not in ("text", "input_text", "refusal", "image_url"):
            kind = "unsupported_content"
            message = "Only parts of the types text, input_text, image_url and refusal are taken"
            raise PydanticCustomError(kind, message)
        if self.type == "image_url" and not is_image_url(self.image_url):
            kind = "invalid_image_url"
            message = "An image is a data: URL of an image, or an https address of a public host"
            raise PydanticCustomError(kind, message)
        return self


class Function(Sent):
    """The function that a call names, and its arguments as JSON."""

    name: str = Field(min_length=1, max_length=_ID_CHARS)
    arguments: str = ""


class Call(Sent):
    """A call of a tool in an answer that the program sends back."""

    id: str = Field(min_length=1, max_length=_ID_CHARS)
    function: Function


class SentMessage(Sent):
    """One message; what stands in its fields otherwise, such as `name`, is ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[
        list[Part], BeforeValidator(_as_parts, json_schema_input_type=str | list[Part]), Field(max_length=PARTS)
    ] = []
    refusal: str = ""
    tool_calls: list[Call] = Field(default=[], max_length=PARTS)
    tool_call_id: str = Field(default="", max_length=_ID_CHARS)

    @model_validator(mode="after")
    def _check(self) -> SentMessage:
        if self.role == "tool" and not self.tool_call_id:
            kind = "missing_tool_call_id"
            message = "A message of the role tool says by tool_call_id which call it answers"
            raise PydanticCustomError(kind, message)
        return self

    @property
    def text(self) -> str:
        texts = [part.refusal if part.type == "refusal" else part.text for part in self.content]
        return "\n".join(text for text in (*texts, self.refusal) if text)


def system_of(messages: Sequence[SentMessage]) -> str:
    texts = (message.text for message in messages if message.role in ("system", "developer"))
    return "\n\n".join(text for text in texts if text)


def chat_of(messages: Sequence[SentMessage]) -> tuple[ClientMessage, ...]:
    """Converts the messages of user, assistant and tools; drops system and developer messages."""
    return tuple(
        ClientMessage(
            role=role,
            text=message.text,
            images=tuple(part.image_url for part in message.content if part.type == "image_url"),
            calls=tuple(
                ClientCall(call.id, call.function.name, call.function.arguments or "{}") for call in message.tool_calls
            ),
            call_id=message.tool_call_id,
        )
        for message in messages
        if (role := message.role) != "system" and role != "developer"
    )
