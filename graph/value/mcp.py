"""Servers of tools by the Model Context Protocol, as the page and the turns see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

ServerState = Literal["idle", "starting", "ready", "failed"]


class ToolInfo(NamedTuple):
    """A tool of a server.

    Attributes:
        name: What the server calls it.
        offered: What the model calls it: `server__name`, unique, of the characters that every endpoint accepts.
        title: For people; the name if the server gives none.
        schema: JSON schema of the arguments.
        asks: Whether the user is asked before it runs, by its mark and `MCP_ALLOW`.
        fingerprint: Hash of all that the user and the model were told about it.
        is_read_only: The server's own mark, a hint.
    """

    server: str
    name: str
    offered: str
    title: str
    description: str
    schema: Mapping[str, Any]
    asks: bool
    fingerprint: str
    is_read_only: bool = False


FailureKind = Literal["ended", "not_installed", "protocol", "silent", "too_large", "other"]
_FAILURES: Final[Mapping[FailureKind, str]] = {
    "ended": "the server has ended",
    "not_installed": "{about} isn't installed",
    "protocol": "an answer of the server breaks the protocol at {about}",
    "silent": "no answer within {about} s",
    "too_large": "the server sent more than {about} MB or too many values at once",
    "other": "",
}


class Failure(NamedTuple):
    """Why a server can't be used, without secrets; as a string in English.

    Attributes:
        about: The command, the place in an answer, the seconds or the megabytes.
        said: What the server or a library said, or "".
    """

    kind: FailureKind
    about: str = ""
    said: str = ""

    def __str__(self) -> str:
        return ": ".join(filter(None, (_FAILURES[self.kind].format(about=self.about), self.said)))


UnusableReason = Literal["name", "twice", "many", "large", "schema", "parameter"]


class UnusableTool(NamedTuple):
    """A tool that nobody can choose; `about` is the place in its schema, or the parameter's name."""

    name: str
    reason: UnusableReason
    about: str = ""


class ServerStatus(NamedTuple):
    """What is known of a server at the moment; of the tools that can't be used the first ones, with the reason."""

    name: str
    state: ServerState = "idle"
    tools: tuple[ToolInfo, ...] = ()
    failure: Failure | None = None
    unusable: tuple[UnusableTool, ...] = ()


class McpResult(NamedTuple):
    """The result of a call, or a sentence on why there is none; `images` are data URLs."""

    text: str
    images: tuple[str, ...] = ()
    is_error: bool = False
