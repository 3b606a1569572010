"""MCP servers of PyPI and npm, as people have them in their files; `make test-clients` installs and runs them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from graph.mcp.config import read_servers
from graph.mcp.servers import McpServers
from graph.value.error import McpError
from graph.value.mcp import McpResult, ToolInfo
from tests.fake.served_app import ROOT

pytestmark = pytest.mark.timeout(120)
PATIENCE_SECONDS: Final = 60.0


def installed(environment: str, program: str) -> str:
    """Returns a server's program; skips the test if it isn't there."""
    found = [*(ROOT / ".venv" / environment).glob(f"**/*bin/{program}")]
    if not found:
        pytest.skip(f"{program} isn't in .venv/{environment} (make test-clients)")
    return str(found[0])


def files_server(folder: Path) -> dict[str, Any]:
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    return {"command": installed("mcp-files", "mcp-server-filesystem"), "args": [str(folder)]}


def sqlite_server(path: Path) -> dict[str, Any]:
    return {"command": installed("mcp-sqlite", "mcp-server-sqlite"), "args": ["--db-path", str(path)]}


def git_server(folder: Path) -> dict[str, Any]:
    """The server of a repository with one commit."""
    git = ["git", "-C", str(folder), "-c", "user.name=Mina", "-c", "user.email=mina@example.com"]
    (folder / "plan.md").write_text("Move on 14 October.\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "The plan"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    return {"command": installed("mcp", "mcp-server-git"), "args": ["--repository", str(folder)]}


def time_server() -> dict[str, Any]:
    return {"command": installed("mcp", "mcp-server-time"), "args": ["--local-timezone", "Asia/Seoul"]}


class Called:
    """The servers of one file, called as a turn calls them."""

    def __init__(self, servers: McpServers) -> None:
        self.servers = servers

    def tools(self, server: str) -> dict[str, ToolInfo]:
        return {tool.name: tool for tool in self.servers.tools(server, wait_seconds=PATIENCE_SECONDS)}

    def call(self, server: str, name: str, **arguments: object) -> McpResult:
        tool = self.tools(server)[name]
        return self.servers.call(tool, arguments, stop=threading.Event(), on_progress=lambda _: None)


def serving(folder: Path, entries: Mapping[str, Any], *, allow: str = "") -> McpServers:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": entries}))
    return McpServers(read_servers(path), allow=allow.split(",") if allow else (), silence_seconds=PATIENCE_SECONDS)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of the user's, beside the file with the servers."""
    inner = tmp_path.resolve() / "mine"
    inner.mkdir()
    yield inner
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(inner).encode() in _command(path)]
    assert left == [], "a server's process is still there"


def _command(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_files_are_read_without_asking_and_written_with_it(folder: Path, tmp_path: Path) -> None:
    (folder / "plan.md").write_text("Move on 14 October.\n")
    with closing(serving(tmp_path, {"files": files_server(folder)})) as servers:
        called = Called(servers)
        asking = {name for name, tool in called.tools("files").items() if tool.asks}
        assert {"write_file", "edit_file", "move_file", "create_directory"} == asking
        # As structured content, too.
        assert called.call("files", "read_text_file", path=str(folder / "plan.md")).text == "Move on 14 October.\n"
        written = called.call("files", "write_file", path=str(folder / "note.md"), content="Written.")
        assert (written.is_error, (folder / "note.md").read_text()) == (False, "Written.")
        outside = called.call("files", "read_text_file", path="/etc/hostname")
        assert outside.is_error
        assert "/etc/hostname" in outside.text


def test_a_database_asks_for_all_that_no_pattern_allows(folder: Path, tmp_path: Path) -> None:
    database = folder / "shop.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("create table orders (id text, total int)")
        connection.execute("insert into orders values ('ORD-20394', 41)")
    allow = "shop:read_query,shop:list_*,shop:describe_*"
    with closing(serving(tmp_path, {"shop": sqlite_server(database)}, allow=allow)) as servers:
        called = Called(servers)
        asking = {name for name, tool in called.tools("shop").items() if tool.asks}
        assert {"write_query", "create_table", "append_insight"} == asking
        assert "ORD-20394" in called.call("shop", "read_query", query="select * from orders").text
        refused = called.call("shop", "read_query", query="delete from orders")
        assert "ORD-20394" in called.call("shop", "read_query", query="select * from orders").text
        assert refused.text


def test_a_repository_is_read_and_changed(folder: Path, tmp_path: Path) -> None:
    with closing(serving(tmp_path, {"git": git_server(folder)})) as servers:
        called = Called(servers)
        asking = {name for name, tool in called.tools("git").items() if tool.asks}
        assert {"git_add", "git_commit", "git_checkout", "git_create_branch", "git_reset"} == asking
        assert "The plan" in called.call("git", "git_log", repo_path=str(folder)).text
        (folder / "plan.md").write_text("Move on 21 October.\n")
        assert "+Move on 21 October." in called.call("git", "git_diff_unstaged", repo_path=str(folder)).text
        called.call("git", "git_add", repo_path=str(folder), files=["plan.md"])
        called.call("git", "git_commit", repo_path=str(folder), message="A week later")
        assert "A week later" in called.call("git", "git_log", repo_path=str(folder)).text
        assert called.call("git", "git_log", repo_path="/").is_error


def test_structured_content_stands_once_and_a_broken_server_leaves_the_others_alone(
    folder: Path, tmp_path: Path
) -> None:
    entries = {"time": time_server(), "gone": {"command": str(folder / "no-such-program")}}
    with closing(serving(tmp_path, entries)) as servers:
        called = Called(servers)
        told = called.call("time", "get_current_time", timezone="Asia/Seoul").text
        assert told.count("Asia/Seoul") == 1
        assert called.call("time", "get_current_time", timezone="Nowhere/At_All").is_error
        with pytest.raises(McpError):
            called.tools("gone")
        assert {status.name: status.state for status in servers.statuses()} == {"time": "ready", "gone": "failed"}
        assert not called.call("time", "get_current_time", timezone="Europe/Berlin").is_error
