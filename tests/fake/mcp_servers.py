"""MCP servers without processes: their tools answer as a test says, and every call is written down."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graph.mcp.config import asks_first
from graph.mcp.servers import McpServers
from graph.value.error import McpError, TurnStoppedSignal
from graph.value.mcp import Failure, McpResult, ServerStatus, ToolInfo
from prompt.system.framing import Language

_PICTURE = "data:image/png;base64,iVBORw0KGgo="


def mcp_tool(name: str, *, server: str = "notes", is_read_only: bool = False, description: str = "") -> ToolInfo:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": []}
    told = description or f"The tool {name}."
    return ToolInfo(
        server,
        name,
        f"{server}__{name}",
        name.replace("_", " ").title(),
        told,
        schema,
        not is_read_only,
        f"{name}-{told}-{is_read_only}",
        is_read_only,
    )


LOOK = mcp_tool("look", is_read_only=True)
WRITE = mcp_tool("write_note")
ERASE = mcp_tool("erase")


class ScriptedServers(McpServers):
    """One server "notes", that is ready at once.

    Attributes:
        calls: The name and arguments of each call that was made; `ended` has the names of those that have ended.
        listed: The servers whose tools were waited for.
        results: What the tools return, by name; a function gets the arguments and what stops it and tells progress.
    """

    def __init__(self, tools: Sequence[ToolInfo] = (LOOK, WRITE, ERASE), *, allow: Sequence[str] = ()) -> None:
        super().__init__((), allow=allow, silence_seconds=60)
        self.offered = list(tools)
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.results: dict[str, McpResult | Callable[..., McpResult]] = {}
        self.ended: list[str] = []
        self.started: list[str] = []
        self.listed: list[str] = []
        self.failure = ""
        self.allow = allow

    def names(self) -> tuple[str, ...]:
        return ("notes",)

    def statuses(self) -> tuple[ServerStatus, ...]:
        if self.failure:
            return (ServerStatus("notes", "failed", failure=Failure("other", said=self.failure)),)
        return (ServerStatus("notes", "ready", tuple(self.offered)),)

    def asks(self, tool: ToolInfo) -> bool:
        return asks_first(tool.server, tool.name, is_read_only=tool.is_read_only, allow=self.allow)

    def start(self, name: str) -> None:
        self.started.append(name)

    def tools(self, name: str, *, wait_seconds: float) -> tuple[ToolInfo, ...]:  # noqa: ARG002 - the base class's signature
        self.listed.append(name)
        if self.failure or name != "notes":
            raise McpError(name, self.failure)
        return tuple(self.offered)

    def call(
        self,
        tool: ToolInfo,
        arguments: Mapping[str, Any],
        *,
        stop: threading.Event,
        on_progress: Callable[[str], None],
        language: Language = "en",  # noqa: ARG002 - the base class's signature
    ) -> McpResult:
        if tool.fingerprint not in {each.fingerprint for each in self.offered}:
            return McpResult("changed", is_error=True)
        self.calls.append((tool.name, dict(arguments)))
        result = self.results.get(tool.name, McpResult(f"{tool.name} is done."))
        made = result if isinstance(result, McpResult) else result(arguments, stop, on_progress)
        self.ended.append(tool.name)
        return made


def picture(text: str = "A picture.") -> McpResult:
    return McpResult(text, (_PICTURE,))


def until_stopped(
    _arguments: Mapping[str, Any], stop: threading.Event, on_progress: Callable[[str], None]
) -> McpResult:
    on_progress("half done")
    if stop.wait(60):
        raise TurnStoppedSignal
    return McpResult("too late", is_error=True)
