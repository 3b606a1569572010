"""A program that reads the memory by the Model Context Protocol, with the official client.

MCPProgram(served.url, TOKEN).call("recall", session=session_id, query="port")
MCPProgram.started(command, arguments, environment).call("search_sessions")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple, Self

import anyio
import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

_SECONDS = 60.0


class ToolAnswer(NamedTuple):
    """A tool's result; `content` is None for an error."""

    text: str
    content: Any

    @property
    def is_error(self) -> bool:
        return self.content is None


class MCPProgram:
    """Connects anew for each method, with the handshake of earlier versions in the mode "legacy"."""

    def __init__(self, url: str, token: str, *, mode: str = "auto", **headers: str) -> None:
        sent = {"Authorization": f"Bearer {token}", **headers}

        @asynccontextmanager
        async def connect() -> Any:  # noqa: ANN401  # the library's streams
            async with (
                httpx2.AsyncClient(headers=sent, timeout=_SECONDS, trust_env=False) as http,
                streamable_http_client(f"{url}/mcp", http_client=http) as streams,
            ):
                yield streams

        self._connect: Callable[[], AbstractAsyncContextManager[Any]] = connect
        self._mode = mode

    @classmethod
    def started(
        cls, command: str, arguments: Sequence[str], environment: Mapping[str, str], *, mode: str = "auto"
    ) -> Self:
        """Returns a program that starts the server itself, for each method."""
        made = cls("", "", mode=mode)
        parameters = StdioServerParameters(command=command, args=list(arguments), env=dict(environment))
        made._connect = lambda: stdio_client(parameters)
        return made

    def tools(self) -> dict[str, types.Tool]:
        return self.talk()[0]

    def call(self, tool: str, **arguments: object) -> ToolAnswer:
        return self.talk((tool, arguments))[1][0]

    def talk(self, *calls: tuple[str, Mapping[str, object]]) -> tuple[dict[str, types.Tool], list[ToolAnswer]]:
        """Lists the tools and calls some by one connection; the client itself checks results by the tools' schemas."""

        async def run() -> tuple[dict[str, types.Tool], list[ToolAnswer]]:
            async with Client(self._connect(), mode=self._mode) as client:
                listed = await client.list_tools()
                answers = [_answer(await client.call_tool(tool, dict(arguments))) for tool, arguments in calls]
            return {tool.name: tool for tool in listed.tools}, answers

        return anyio.run(run)


def _answer(result: types.CallToolResult) -> ToolAnswer:
    (said,) = result.content
    assert isinstance(said, types.TextContent)
    assert result.is_error == (result.structured_content is None)
    return ToolAnswer(said.text, result.structured_content)
