"""Servers of tools, good and hostile, as processes of their own and behind a URL."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

import pytest

from graph.mcp.config import ServerConfig
from graph.mcp.servers import McpServers
from graph.value.error import ClosingError, McpError, SettingsError, TurnStoppedSignal
from graph.value.mcp import McpResult, ServerStatus, ToolInfo
from tests.fake.chat import question
from tests.fake.mcp_tools import SECRET, entry_of, good_server, hostile_server, noted, served_by_url
from tests.fake.mcp_web import MisusedWeb, misused_web
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.picture import opened as opened_picture
from tests.fake.port import free_port
from tests.fake.served_app import ROOT

_WAIT: Final = 60.0
_LONG: Final = 60.0
TOO_LARGE: Final = "Error: the tool's result is larger than 8 MB or has too many values, and wasn't read. Ask for less."


class Opened:
    """Servers with a shorthand for calls; `progress` has all that calls told."""

    def __init__(self, servers: McpServers) -> None:
        self.servers = servers
        self.stop = threading.Event()
        self.progress: list[str] = []

    def tool(self, name: str, server: str = "") -> ToolInfo:
        listed = self.servers.tools(server or self.servers.names()[0], wait_seconds=_WAIT)
        return next(tool for tool in listed if tool.name == name)

    def call(self, tool: str | ToolInfo, **arguments: object) -> McpResult:
        found = self.tool(tool) if isinstance(tool, str) else tool
        return self.servers.call(found, arguments, stop=self.stop, on_progress=self.progress.append)

    def begin(self, tool: ToolInfo, **arguments: object) -> Callable[[], BaseException | McpResult]:
        """Calls in a thread; returns a function that waits for what came of it."""
        ended: list[BaseException | McpResult] = []

        def call() -> None:
            try:
                ended.append(self.call(tool, **arguments))
            except BaseException as error:  # noqa: BLE001 - what it raises is what is asked
                ended.append(error)

        thread = threading.Thread(target=call)
        thread.start()

        def end() -> BaseException | McpResult:
            thread.join(_WAIT)
            return ended[0]

        return end

    @property
    def state(self) -> tuple[str, str]:
        (status,) = self.servers.statuses()
        return status.state, str(status.failure or ", ".join(tool.name for tool in status.unusable))


@contextmanager
def opened(
    *configs: ServerConfig, allow: Sequence[str] = (), silence_seconds: float = _LONG, start_seconds: float = _LONG
) -> Iterator[Opened]:
    servers = McpServers(configs, allow=allow, silence_seconds=silence_seconds, start_seconds=start_seconds)
    try:
        yield Opened(servers)
    finally:
        servers.close()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(process_id: str) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("good")


@pytest.fixture(scope="module")
def good(folder: Path) -> Iterator[Opened]:
    with opened(good_server(folder)) as servers:
        yield servers


@pytest.fixture(scope="module")
def wild_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wild")


@pytest.fixture(scope="module")
def wild(wild_folder: Path) -> Iterator[Opened]:
    with opened(hostile_server(wild_folder)) as servers:
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
    assert status == ServerStatus("notes", "ready", tuple(tools.values()))


def test_results_are_text_and_pictures(good: Opened) -> None:
    assert good.call("look", subject="예산") == McpResult("예산: 서울 R-4711, /srv/data/budget.csv")
    assert good.call("resource").text == "two parts\n\nline 1\nline 2\n\nhttps://example.com/report"
    assert good.call("structured", city="부산").text == '{\n  "city": "부산",\n  "degrees": 21\n}'
    drawn = good.call("picture")
    assert drawn.text == ""
    assert [opened_picture(url).size for url in drawn.images] == [(40, 20)]
    failed = good.call("failing")
    assert failed.is_error
    assert "failing" in failed.text
    refused = good.call("look")
    assert refused.is_error
    assert "subject" in refused.text


def test_stop_cancels_the_call_at_the_server(good: Opened, folder: Path) -> None:
    call = good.begin(good.tool("slow"), steps=1, seconds=600)
    until(lambda: good.progress == ["step 1 of 1 with •••"])
    good.stop.set()
    assert isinstance(call(), TurnStoppedSignal)
    until(lambda: noted(folder, "slow") == ["began", "cancelled"])
    good.stop.clear()
    assert good.call("look", subject="still there").text


def test_a_server_is_started_when_first_needed_once_and_ended_with_its_calls(tmp_path: Path) -> None:
    with opened(hostile_server(tmp_path)) as servers:
        assert servers.state == ("idle", "")
        assert not noted(tmp_path, "started")
        servers.servers.start("wild")
        servers.servers.start("unknown")
        with pytest.raises(McpError, match=r"wild: no answer within 0\.001 s"):
            servers.servers.tools("wild", wait_seconds=0.001)
        calm = servers.tool("calm")
        calls = [servers.begin(calm) for _ in range(8)]
        assert [call() for call in calls] == [McpResult("calm")] * 8
        (process,) = noted(tmp_path, "started")
        assert is_running(process)
        with pytest.raises(McpError, match="no such server"):
            servers.servers.tools("unknown", wait_seconds=_WAIT)
        assert servers.call(calm._replace(server="gone")).is_error
        silent = servers.begin(servers.tool("silent"))
        until(lambda: "silent" in noted(tmp_path, "calls"))
    assert isinstance(silent(), TurnStoppedSignal)
    assert not is_running(process)
    with pytest.raises(ClosingError):
        servers.servers.tools("wild", wait_seconds=_WAIT)
    assert isinstance(servers.begin(calm)(), TurnStoppedSignal)


def test_a_silent_call_is_cancelled(tmp_path: Path) -> None:
    with opened(hostile_server(tmp_path), silence_seconds=1) as servers:
        assert servers.call("silent") == McpResult(
            "Error: nothing came from the tool for 1 s. It was cancelled, but may have taken effect.",
            is_error=True,
        )
        until(lambda: "notifications/cancelled" in noted(tmp_path, "notifications"))


@pytest.mark.slow
def test_progress_puts_off_the_deadline_of_silence(tmp_path: Path) -> None:
    with opened(hostile_server(tmp_path), silence_seconds=8) as servers:
        assert servers.call("ticking") == McpResult("ticked")
        assert len(servers.progress) == 5


def test_a_server_behind_a_url_is_used_alike_and_found_again(tmp_path: Path) -> None:
    port = free_port()
    with opened(ServerConfig("remote", url=f"http://127.0.0.1:{port}/mcp")) as servers:
        with served_by_url(tmp_path, port):
            look = servers.tool("look")
            assert servers.call(look, subject="예산") == McpResult("예산: 서울 R-4711, /srv/data/budget.csv")
            call = servers.begin(servers.tool("slow"), steps=1, seconds=600)
            until(lambda: noted(tmp_path, "slow") == ["began"])
            servers.stop.set()
            assert isinstance(call(), TurnStoppedSignal)
            until(lambda: noted(tmp_path, "slow") == ["began", "cancelled"])
            servers.stop.clear()
        assert servers.call(look, subject="x").is_error
        assert servers.call(look, subject="x").text.startswith(
            "Error: the tool server remote can't be reached; nothing was run. ConnectError"
        )
        assert servers.state[0] == "failed"
        with served_by_url(tmp_path, port):
            assert servers.call(look, subject="y").text.startswith("y: ")


@pytest.fixture(scope="module")
def web() -> Iterator[tuple[MisusedWeb, Opened]]:
    with misused_web() as web, opened(web.config) as servers:
        yield web, servers


def test_what_a_url_sends_is_bounded(web: tuple[MisusedWeb, Opened]) -> None:
    for name in ("huge", "huge_event", "parts", "parts_event", "zipped"):
        assert web[1].call(name) == McpResult(TOO_LARGE, is_error=True)
        assert web[1].call("calm") == McpResult("calm")
    assert web[1].call("newer") == McpResult('{"rows": 3}')


def test_headers_go_to_the_configured_address_alone(web: tuple[MisusedWeb, Opened]) -> None:
    assert web[1].call("redirecting").is_error
    assert web[0].elsewhere == []
    assert web[0].authorizations == {f"Bearer {SECRET}-2"}
    assert SECRET not in web[1].call("redirecting").text


def test_a_call_that_a_restarted_server_never_heard_is_made_again(web: tuple[MisusedWeb, Opened]) -> None:
    misused, servers = web
    servers.call("forgetful")
    misused.calls.clear()
    assert servers.call("calm") == McpResult("calm")
    assert misused.calls == ["calm"]


def test_a_hostile_server_is_listed(wild: Opened) -> None:
    tools = {tool.name: tool for tool in wild.servers.tools("wild", wait_seconds=_WAIT)}
    assert "broken" not in tools
    assert wild.state == ("ready", "broken")
    odd = tools["a b/한글"]
    assert odd.offered.startswith("wild__a_b")
    assert odd.offered.isascii()
    assert len(odd.offered) <= 64
    assert len(odd.description) == 1024
    assert odd.asks


def test_a_result_over_the_bound_isnt_read(wild: Opened) -> None:
    assert wild.call("huge") == McpResult(TOO_LARGE, is_error=True)
    assert wild.call("calm") == McpResult("calm")


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("parts", TOO_LARGE),
        ("most_parts", "a\n\na\n\na"),
        ("deep", TOO_LARGE),
        ("number", TOO_LARGE),
        ("long_sampling", "asked"),
        ("listing", "listed"),
    ],
    ids=["parts", "most parts", "deep", "number", "long sampling", "listing"],
)
def test_a_large_message_stops_no_other_server(tmp_path: Path, folder: Path, tool: str, said: str) -> None:
    with opened(hostile_server(tmp_path), good_server(folder)) as both:
        found = both.tool(tool, "wild")
        calls = [both.begin(found) for _ in range(3)]
        beside = Opened(both.servers)
        look = both.tool("look", "notes")
        began, seconds = time.monotonic(), []
        while time.monotonic() - began < 3:
            at = time.monotonic()
            assert beside.call(look, subject="x").text
            seconds.append(time.monotonic() - at)
        ended = [call() for call in calls]
    assert median(seconds) < 1  # of a machine that is busy with more than this, a single one may take longer
    assert all(isinstance(each, McpResult) and each.text.startswith(said) for each in ended)


@pytest.mark.parametrize("kind", ["quadratic", "many"])
def test_a_hostile_list_of_tools_stops_no_other_server(tmp_path: Path, folder: Path, kind: str) -> None:
    (tmp_path / kind).touch()
    with opened(hostile_server(tmp_path), good_server(folder)) as both:
        look = both.tool("look", "notes")
        listing = both.begin(both.tool("listing", "wild"))
        began, seconds = time.monotonic(), []
        while time.monotonic() - began < 3:
            at = time.monotonic()
            assert Opened(both.servers).call(look, subject="x").text
            seconds.append(time.monotonic() - at)
        assert listing() == McpResult("listed")
        assert both.call(both.tool("calm", "wild")) == McpResult("calm")
    assert median(seconds) < 1


def test_results_are_read_as_newer_servers_send_them(wild: Opened) -> None:
    assert wild.call("newer") == McpResult('{"rows": 3}')
    assert "asked for a model's answer" in wild.call("input").text


def test_a_message_without_end_ends_the_server(wild: Opened, wild_folder: Path) -> None:
    starts = len(noted(wild_folder, "started"))
    assert wild.call("endless") == McpResult(TOO_LARGE, is_error=True)
    until(lambda: wild.state == ("failed", "the server sent more than 64 MB or too many values at once"))
    assert wild.call("calm") == McpResult("calm")
    assert len(noted(wild_folder, "started")) == starts + 1


def test_results_that_lie_about_their_schema_are_data(wild: Opened) -> None:
    assert wild.call("lying").text == '{"a": "' + "a" * 60 + '!"}'
    assert wild.call("cut") == McpResult("cut �")
    assert wild.call("nonsense") == McpResult(
        "Error: the answer of the tool server wild breaks the protocol. The call may have taken effect.", is_error=True
    )


def test_sampling_elicitation_and_roots_are_refused(wild: Opened, wild_folder: Path) -> None:
    assert wild.call("sampling") == McpResult("asked")
    until(lambda: len(noted(wild_folder, "answers")) == 3)
    said = " ".join(noted(wild_folder, "answers"))
    assert "result" not in said
    for sentence in ("Sampling not supported", "Elicitation not supported", "List roots not supported"):
        assert sentence in said


def test_a_call_that_is_stopped_is_cancelled_by_a_notification(wild: Opened, wild_folder: Path) -> None:
    cancelled = noted(wild_folder, "notifications").count("notifications/cancelled")
    call = wild.begin(wild.tool("silent"))
    until(lambda: "silent" in noted(wild_folder, "calls"))
    wild.stop.set()
    assert isinstance(call(), TurnStoppedSignal)
    wild.stop.clear()
    until(lambda: noted(wild_folder, "notifications").count("notifications/cancelled") == cancelled + 1)


def test_a_server_that_dies_in_a_call_tells_its_last_line_and_is_started_again(wild: Opened, wild_folder: Path) -> None:
    starts = len(noted(wild_folder, "started"))
    died = wild.call("dying")
    assert died == McpResult(
        "Error: the connection to the tool server wild ended during the call, which may have taken effect. "
        "fatal: key ••• refused",
        is_error=True,
    )
    until(lambda: wild.state == ("failed", "fatal: key ••• refused"))
    assert noted(wild_folder, "calls").count("dying") == 1
    assert wild.call("calm") == McpResult("calm")
    assert len(noted(wild_folder, "started")) == starts + 1


def test_progress_comes_seldom_and_in_one_plain_line(wild: Opened) -> None:
    wild.progress.clear()
    assert wild.call("chatty") == McpResult("done")
    assert wild.progress[0] == "0 •••"
    assert len(wild.progress) < 100


def test_a_secret_that_is_told_is_hidden(wild: Opened, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        told = wild.call("telling")
        wild.call("nonsense")
    assert told == McpResult("key=••• nul=�\n\n[Content that can't be shown: image/png]", is_error=True)
    assert SECRET not in f"{caplog.text} {wild.servers.statuses()} {wild.progress}"


def test_a_tool_that_has_changed_isnt_called(wild: Opened, wild_folder: Path) -> None:
    calm = wild.tool("calm")
    wild.call("changing")
    until(lambda: calm not in wild.servers.statuses()[0].tools)
    calls = noted(wild_folder, "calls")
    assert wild.call(calm).text == (
        "Error: this tool has changed since it was chosen, so it wasn't run. The user has to choose it again."
    )
    assert wild.call(calm._replace(name="vanished")).text == (
        "Error: the tool server wild no longer has this tool; nothing was run."
    )
    assert noted(wild_folder, "calls") == calls
    assert wild.call("calm") == McpResult("calm")


def test_children_are_ended_with_their_server(tmp_path: Path) -> None:
    with opened(hostile_server(tmp_path)) as servers:
        servers.call("spawning")
        processes = noted(tmp_path, "started") + noted(tmp_path, "children")
        assert [is_running(process) for process in processes] == [True, True]
    until(lambda: not any(map(is_running, processes)))


@pytest.mark.slow
def test_a_server_that_ignores_its_end_is_killed(tmp_path: Path) -> None:
    (tmp_path / "stays").touch()
    with opened(hostile_server(tmp_path)) as servers:
        servers.call("calm")
        processes = noted(tmp_path, "started")
    until(lambda: not any(map(is_running, processes)))


@pytest.mark.slow
def test_servers_of_a_killed_process_end(tmp_path: Path) -> None:
    opening = (
        "import pathlib, sys, time; from tests.integration.test_mcp_server import hostile_server, opened\n"
        "with opened(hostile_server(pathlib.Path(sys.argv[1]))) as servers:\n"
        "    servers.call('calm')\n"
        "    time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", opening, str(tmp_path)], cwd=ROOT)
    until(lambda: noted(tmp_path, "calls") == ["calm"])
    process.kill()
    process.wait()
    until(lambda: not any(map(is_running, noted(tmp_path, "started"))))


@pytest.mark.parametrize(("kind", "reason"), [("old", "1999-01-01"), ("odd", "tools.2.name")])
def test_a_server_that_speaks_otherwise_is_told_what_is_wrong(tmp_path: Path, kind: str, reason: str) -> None:
    (tmp_path / kind).touch()
    with opened(hostile_server(tmp_path)) as servers:
        servers.servers.start("wild")
        until(lambda: servers.state[0] == "failed")
        assert reason in servers.state[1]


def test_a_server_that_doesnt_start_is_named_with_its_last_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "fails").touch()
    missing = ServerConfig("missing", "/nowhere/mcp-server")
    with opened(hostile_server(tmp_path), missing) as servers:
        for name, reason in (
            ("wild", "no database at me:•••@db"),
            ("missing", "/nowhere/mcp-server isn't installed"),
        ):
            with pytest.raises(McpError) as caught:
                servers.servers.tools(name, wait_seconds=_WAIT)
            assert (caught.value.server, caught.value.reason) == (name, reason)
            status = next(each for each in servers.servers.statuses() if each.name == name)
            assert (status.state, str(status.failure), status.tools) == ("failed", reason, ())
        (tmp_path / "fails").unlink()
        assert servers.call(servers.tool("calm", "wild")) == McpResult("calm")
    assert SECRET not in caplog.text


def test_a_server_that_never_answers_isnt_waited_for(tmp_path: Path) -> None:
    (tmp_path / "deaf").touch()
    with opened(hostile_server(tmp_path), start_seconds=1) as servers:
        with pytest.raises(McpError, match="no answer within 1 s"):
            servers.servers.tools("wild", wait_seconds=_WAIT)
        (process,) = noted(tmp_path, "started")
    assert not is_running(process)


def test_a_chat_goes_on_without_a_killed_server_and_ends_it_when_it_closes(
    tmp_path: Path, open_chat: OpenChat, server: FakeOpenAI
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"wild": entry_of(tmp_path, "mcp_hostile")}}))
    chat = open_chat(mcp_servers=path)
    assert not noted(tmp_path, "started")
    chat.service.mcp.start("wild")
    until(lambda: chat.service.mcp.choices().servers[0].state == "ready")
    server.script(text("첫 답입니다."))
    chat.say(question(1))
    chat.service.mcp.choose(chat.session_id, ["wild__calm"])
    for number, (result, is_killed) in enumerate((("calm", True), ("calm", False)), start=2):
        server.script(tools(ScriptedCall("wild__calm", "{}", f"call-{number}")), text("봤습니다."))
        chat.say(question(number))
        assert [(step.result, step.status) for step in chat.last_turn.steps] == [(result, "done")]
        if is_killed:
            os.kill(int(noted(tmp_path, "started")[-1]), signal.SIGKILL)
            until(lambda: chat.service.mcp.choices().servers[0].state == "failed")
    processes = noted(tmp_path, "started")
    assert [is_running(process) for process in processes] == [False, True]
    chat.close()
    assert not is_running(processes[1])


def test_a_file_that_cant_be_read_ends_the_start(tmp_path: Path, open_chat: OpenChat) -> None:
    with pytest.raises(SettingsError, match="can't be read"):
        open_chat(mcp_servers=tmp_path / "missing.json")
