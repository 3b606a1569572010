"""Servers of tools, good and hostile, as processes of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from graph.mcp.config import ServerConfig
from graph.mcp.servers import McpServers
from graph.value.mcp import McpResult, ToolInfo
from tests.fake.mcp_tools import SECRET, good_server, noted

_WAIT = 60.0


class Opened:
    """Servers with a shorthand for calls; `progress` has all that calls told."""

    def __init__(self, servers: McpServers) -> None:
        self.servers = servers
        self.stop = threading.Event()
        self.progress: list[str] = []

    def tool(self, server: str, name: str) -> ToolInfo:
        return next(tool for tool in self.servers.tools(server, wait_seconds=_WAIT) if tool.name == name)

    def call(self, server: str, name: str, **arguments: object) -> McpResult:
        return self.call_tool(self.tool(server, name), **arguments)

    def call_tool(self, tool: ToolInfo, **arguments: object) -> McpResult:
        return self.servers.call(tool, arguments, stop=self.stop, on_progress=self.progress.append)


@contextmanager
def opened(*configs: ServerConfig, allow: Sequence[str] = (), silence_seconds: float = 60) -> Iterator[Opened]:
    servers = McpServers(configs, allow=allow, silence_seconds=silence_seconds)
    try:
        yield Opened(servers)
    finally:
        servers.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("good")


@pytest.fixture(scope="module")
def good(folder: Path) -> Iterator[Opened]:
    with opened(good_server(folder)) as servers:
        yield servers


def test_tools_are_listed_with_their_marks(good: Opened) -> None:
    tools = {tool.name: tool for tool in good.servers.tools("notes", wait_seconds=_WAIT)}
    look = tools["look"]
    assert (look.offered, look.title, look.description) == (
        "notes__look",
        "Look up",
        "Reads what is noted of a subject.",
    )
    assert look.schema["properties"]["subject"]["description"] == "What to look up."
    assert (look.asks, tools["write_note"].asks) == (False, True)
    (status,) = good.servers.statuses()
    assert (status.name, status.state, status.detail, status.tools) == ("notes", "ready", "", tuple(tools.values()))


def test_a_result_is_its_text(good: Opened) -> None:
    assert good.call("notes", "look", subject="예산") == McpResult("예산: 서울 R-4711, /srv/data/budget.csv")
    assert good.call("notes", "resource").text == "two parts\n\nline 1\nline 2\n\nhttps://example.com/report"


def test_no_secret_is_told(good: Opened) -> None:
    assert good.call("notes", "slow", steps=1, seconds=0).text == "at last"
    assert SECRET not in f"{good.progress} {good.servers.statuses()}"


def test_a_server_is_started_once(good: Opened, folder: Path) -> None:
    good.call("notes", "look", subject="x")
    assert len(noted(folder, "started")) == 1
