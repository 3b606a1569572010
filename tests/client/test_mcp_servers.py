"""MCP servers of PyPI and npm, as people have them in their files; `make test-clients` installs and runs them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from graph.mcp.config import read_servers
from graph.mcp.servers import McpServers
from graph.value.error import McpError
from graph.value.event import ToolAsked, TurnFinished
from graph.value.mcp import McpResult, ToolInfo
from graph.value.view import TurnOptions, Word
from prompt.tool.words import DECLINED
from tests.fake.body import faults, summaries
from tests.fake.chat import question
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_app import ROOT

pytestmark = pytest.mark.timeout(120)
PATIENCE_SECONDS: Final = 60.0
# As by an update of the product.
AGAIN_AFTER: Final = 8


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


class Told(NamedTuple):
    """The calls of a turn, round by round, and the user's words on those that ask."""

    rounds: Sequence[Sequence[ScriptedCall]]
    words: Sequence[Word] = ()


def story(notes: str, repository: str) -> list[Told]:
    """Twelve turns with thirty calls, some of which need what results of folded turns told."""
    ids = count(1)

    def call(tool: str, **arguments: object) -> ScriptedCall:
        return ScriptedCall(tool, json.dumps(arguments), f"call-{next(ids)}")

    def git(command: str, **arguments: object) -> ScriptedCall:
        return call(f"git__git_{command}", repo_path=repository, **arguments)

    def query(where: str = "1 = 1") -> ScriptedCall:
        return call("shop__read_query", query=f"select * from orders where {where}")  # noqa: S608  # of our own words

    def update(order: str) -> ScriptedCall:
        sql = f"update orders set total = total + 1 where id = '{order}'"  # noqa: S608  # same
        return call("shop__write_query", query=sql)

    def read(path: str) -> ScriptedCall:
        return call("files__read_text_file", path=path)

    note, today, memo = f"{notes}/refunds.md", f"{notes}/today.md", f"{notes}/memo-01.md"
    written = call("files__write_file", path=note, content="- ORD-20311\n")
    found = call("files__search_files", path=notes, pattern="*refund*")
    all_read = call("files__read_multiple_files", paths=[note, memo])
    known = [call("files__get_file_info", path=note), call("files__directory_tree", path=notes)]
    moved = call("files__move_file", source=note, destination=today)
    return [
        Told([[call("files__list_directory", path=notes)], [read(memo)]]),
        Told([[call("shop__list_tables")], [call("shop__describe_table", table_name="orders"), query()]]),
        Told([[query("state = 'refund'")], [written]], ["once"]),
        Told([[git("status"), git("log", max_count=5)]]),
        Told([[git("diff_unstaged")], [found, query()]]),
        Told([[git("add", files=["plan.md"])], [git("commit", message="A week later")]], ["always", "always"]),
        Told([[query("id = 'ORD-20311'")], [update("ORD-20311")]], ["once"]),
        Told([[all_read, *known]]),
        Told([[query()], [update("ORD-20324")]], ["no"]),
        Told([[git("show", revision="HEAD")], [git("log", max_count=1), git("branch", branch_type="local")]]),
        Told([[read(note)], [moved]], ["once"]),
        Told([[query("id = 'ORD-20324'"), git("add", files=["plan.md"])], [read(today), query()]]),
    ]


@pytest.fixture
def endpoint() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


def test_twelve_turns_with_thirty_calls_fold_four_times(folder: Path, tmp_path: Path, endpoint: FakeOpenAI) -> None:
    notes, repository, database = folder / "notes", folder / "shop", folder / "shop.db"
    notes.mkdir()
    repository.mkdir()
    for number in range(1, 15):
        (notes / f"memo-{number:02}.md").write_text(f"# Memo {number}\n" + f"Order {number} was packed.\n" * 20)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("create table orders (id text primary key, total int, state text)")
        rows = [(f"ORD-{20_300 + number}", number, "refund" if number % 7 == 4 else "paid") for number in range(40)]
        connection.executemany("insert into orders values (?, ?, ?)", rows)
    entries = {"files": files_server(notes), "shop": sqlite_server(database), "git": git_server(repository)}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
    (repository / "plan.md").write_text("Move on 21 October.\n")
    allow = ("shop:read_query", "shop:list_*", "shop:describe_*")
    with chat_opener(settings_maker(tmp_path / "data", endpoint.url)) as open_chat:
        opened = partial(open_chat, mcp_servers=tmp_path / "mcp.json", mcp_allow=allow)
        chat = opened()
        for name in entries:
            chat.service.mcp.start(name)
        chat.wait_until(lambda: all(server.state == "ready" for server in chat.service.mcp.choices().servers))
        offered = [tool.offered for server in chat.service.mcp.choices().servers for tool in server.tools]
        for number, (rounds, words) in enumerate(story(str(notes), str(repository)), 1):
            endpoint.script(
                *(tools(*calls) for calls in rounds), text(f"{number}번. " + "말씀하신 대로 했습니다. " * 20)
            )
            last = chat.say(question(number), options=TurnOptions(mcp_tools=tuple(offered)) if number == 1 else None)[
                -1
            ]
            for word in words:
                assert isinstance(last, ToolAsked)
                chat.service.mcp.answer(chat.session_id, {call.call_id: word for call in last.calls})
                last = chat.events()[-1]
            assert isinstance(last, TurnFinished)
            chat.wait_for_folds()
            if number == AGAIN_AFTER:
                chat.close()
                chat = opened(chat.session_id)
        steps = [step for turn in chat.turns for step in turn.steps]
        assert [(step.status, step.result) for step in steps if step.status != "done"] == [("declined", DECLINED["ko"])]
        assert len(steps) == 30
        bodies = endpoint.bodies("chat")
        assert [found for body in bodies for found in faults(body["messages"])] == []
        assert len({json.dumps(body["tools"]) for body in bodies}) == 1
        assert summaries(bodies[-1]) == [(1, 3), (4, 6), (7, 9)]
        assert max(len(json.dumps(body["messages"])) for body in bodies) < 40_000
        chat.say(question(13))
        assert summaries(endpoint.bodies("chat")[-1]) == [(1, 3), (4, 6), (7, 9), (10, 12)]
    with closing(sqlite3.connect(database)) as connection:
        changed = connection.execute("select id, total from orders where total != rowid - 1").fetchall()
    assert changed == [("ORD-20311", 12)]
    log = subprocess.run(["git", "-C", repository, "log", "--format=%s"], check=True, capture_output=True, text=True)
    assert log.stdout.split("\n")[:2] == ["A week later", "The plan"]
    assert (notes / "today.md").read_text() == "- ORD-20311\n"
