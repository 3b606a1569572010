"""The bodies of `/chat` and of a session's context."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from api.model_id import parse_model_id
from api.request import invalid_field
from api.token_guard import ApiClient
from graph.value.view import TurnOptions

_PROJECT_ROOT: Final = "projectRoot"
_Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class _Exact(BaseModel):
    """An object in which a field that isn't known is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ChatOptions(_Exact):
    """Settings of the session, from this message on; absent or null keeps them.

    Attributes:
        message_id: The sender's id of the message: sending it again makes no second turn.
        time_zone: IANA name of the user's time zone.
    """

    compression_rate: Annotated[float, Field(ge=0.1, le=0.5)] | None = None
    strategy: str | None = None
    model: Annotated[str, StringConstraints(max_length=256)] | None = None
    project_root: Annotated[str, StringConstraints(max_length=4_096)] | None = None
    has_memory: bool | None = None
    time_zone: Annotated[str, StringConstraints(max_length=64)] = ""
    message_id: _Id | None = None


class ChatMessage(_Exact):
    """The body of `POST /chat`.

    Attributes:
        message: What the user says.
        session_id: The session to go on with; a new one without it.
        context: What the user is at: `currentFile`, `selection`, `projectRoot`; other keys aren't sent to the model.
    """

    message: str
    session_id: _Id | None = None
    context: dict[str, str] = {}
    options: ChatOptions = ChatOptions()

    def turn_options(self, client: ApiClient) -> TurnOptions:
        """Returns what the turn is begun with."""
        chosen = self.options
        root = project_root_of(self.context) if chosen.project_root is None else chosen.project_root
        return TurnOptions(
            compression_rate=chosen.compression_rate,
            strategy=chosen.strategy,
            model=None if chosen.model is None else parse_model_id(chosen.model)[0] or None,
            project_root=root,
            has_memory=chosen.has_memory,
            time_zone=chosen.time_zone,
            context=self.context,
            client=client.options(),
        )


class Followed(BaseModel):
    """From where a turn's events are told: behind the id in `after`, or in the header `Last-Event-ID`."""

    after: str = ""


class _Context(_Exact):
    context: dict[str, str]


def read_message(sent: dict[str, Any]) -> ChatMessage:
    """Returns the body of `POST /chat`.

    Raises:
        ProblemError: 400: it isn't such a body; the answer names the field.
    """
    try:
        return ChatMessage.model_validate(sent)
    except ValidationError as error:
        raise invalid_field(error) from None


def read_context(sent: dict[str, Any]) -> dict[str, str]:
    """Returns the body of `PUT /sessions/{id}/context`.

    Raises:
        ProblemError: 400: it isn't an object of texts.
    """
    try:
        return _Context.model_validate({"context": sent}).context
    except ValidationError as error:
        raise invalid_field(error) from None


def project_root_of(context: dict[str, str]) -> str | None:
    """Returns the project that a context names, None for none."""
    return root if (root := context.get(_PROJECT_ROOT, "")).strip() else None
