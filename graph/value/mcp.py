"""Servers of tools by the Model Context Protocol, as the page and the turns see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

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


class ServerStatus(NamedTuple):
    """What is known of a server at the moment.

    Attributes:
        detail: Why it has failed, without secrets; of one that is ready the names of tools that can't be used.
    """

    name: str
    state: ServerState = "idle"
    detail: str = ""
    tools: tuple[ToolInfo, ...] = ()


class McpResult(NamedTuple):
    """The result of a call, or a sentence on why there is none; `images` are data URLs."""

    text: str
    images: tuple[str, ...] = ()
    is_error: bool = False
