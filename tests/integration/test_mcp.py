"""The memory by the Model Context Protocol: the official client, over loopback and over standard input and output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, Final

import pytest

from api.mcp import RESULT_CHARS, TURNS_AT_ONCE
from graph.service import ChatService
from prompt.tool import words
from prompt.tool.words import recalled_numbers
from tests.fake.chat import Chat, question
from tests.fake.mcp_program import MCPProgram
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.owners import withdrawn
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW
from tests.fake.rooted import Rooted
from tests.fake.served_app import ROOT, ask_health
from tests.fake.served_app import served as served_app
from tests.fake.served_programs import STRANGER, TOKEN, ServedPrograms

OF_CHATS: Final = {"search_sessions", "recall", "read_turns", "list_summaries"}
OF_PROJECTS: Final = {"list_projects", "read_project"}
LISTING: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPTED: Final = {"Accept": "application/json, text/event-stream"}
MODES: Final = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture(scope="module")
def served(module_service: ChatService) -> Iterator[ServedPrograms]:
    with ServedPrograms(module_service) as served:
        yield served


@pytest.fixture
def reader(served: ServedPrograms) -> MCPProgram:
    return MCPProgram(served.url, TOKEN)


@MODES
def test_a_chat_is_found_recalled_and_read(chat: Chat, server: FakeOpenAI, served: ServedPrograms, mode: str) -> None:
    program, asked = MCPProgram(served.url, TOKEN, mode=mode), f"찾아봅시다 {mode}"
    chat.ask(1, 3)
    sessions = program.call("search_sessions", query="데이터베이스를 복제한", limit=50).content["sessions"]
    (found,) = [each for each in sessions if each["session_id"] == chat.session_id]
    assert (found["turn_count"], found["found_turn"], found["title"]) == (3, 3, chat.view.title)

    # The same as the chat's own model is shown in the next turn.
    for arguments in ({"query": "10월 2일 서버 이전"}, {"turns": "2-3"}):
        recalled = program.call("recall", session=chat.session_id, **arguments)
        call = ScriptedCall("recall", json.dumps(arguments, ensure_ascii=False), f"call-{len(chat.turns)}")
        server.script(tools(call), text("답입니다."), to=asked)
        chat.say(asked)
        chat.wait_for_folds()
        shown = chat.last_turn.steps[0].result
        assert recalled.text == recalled.content["passages"] == shown
        assert recalled.content["turns"] == list(recalled_numbers(shown))

    read = program.call("read_turns", session=chat.session_id, **{"from": 2, "to": 4})
    turns = read.content["turns"]
    assert [turn["number"] for turn in turns] == [2, 3, 4]
    assert [turn["user"] for turn in turns] == [question(2), question(3), asked]
    assert [turn["assistant"] for turn in turns] == [turn.answer_text for turn in chat.turns[1:4]]
    assert [(step["name"], step["result"]) for step in turns[2]["steps"]] == [
        (step.name, step.result) for step in chat.turns[3].steps
    ]
    assert (read.content["next"], read.content["turn_count"]) == (None, 5)
    assert json.loads(read.text) == read.content

    (summary,) = program.call("list_summaries", session=chat.session_id).content["summaries"]
    (record,) = chat.service.folds.records(chat.session_id)
    assert (summary["turns"], summary["summary"], summary["is_cut"]) == ([1, 2, 3], record.summary, False)


@MODES
def test_every_tool_says_that_it_only_reads(served: ServedPrograms, mode: str) -> None:
    listed = MCPProgram(served.url, TOKEN, mode=mode).tools()
    assert listed.keys() == OF_CHATS  # no folder of projects is allowed here
    for tool in listed.values():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.description
        assert tool.output_schema is not None
    assert set(listed["read_turns"].input_schema["properties"]) == {"session", "from", "to"}


def test_what_was_reset_is_read_but_not_recalled(chat: Chat, reader: MCPProgram) -> None:
    chat.ask(1, 1)
    chat.service.folds.reset(chat.session_id)
    assert reader.call("recall", session=chat.session_id, query="서버").text == words.RECALL_NO_TURNS["ko"]
    assert reader.call("read_turns", session=chat.session_id).content["turns"][0]["user"] == question(1)


def test_another_owner_s_chats_do_not_exist(chat: Chat, served: ServedPrograms, reader: MCPProgram) -> None:
    chat.ask(1, 1)
    stranger = MCPProgram(served.url, STRANGER)
    assert stranger.call("search_sessions").content == {"sessions": []}
    for tool, arguments in (("recall", {"query": "서버"}), ("read_turns", {}), ("list_summaries", {})):
        for program, session_id in ((stranger, chat.session_id), (reader, "no-such-session")):
            answer = program.call(tool, session=session_id, **arguments)
            assert answer == (f"There is no session of this id. ({session_id})", None)
    with withdrawn(chat.service, "stranger"):
        assert "isn't a token of this server" in stranger.call("search_sessions").text


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("read_turns", {}, "session: Field required."),
        ("read_turns", {"session": "SESSION", "from": 0}, "from: Input should be greater than or equal to 1."),
        ("read_turns", {"session": "SESSION", "from": 2}, "from: The last turn of this chat is 1."),
        ("read_turns", {"session": "SESSION", "from": 1, "to": None, "until": 3}, "until: Extra inputs"),
        ("recall", {"session": "SESSION"}, words.RECALL_NEEDS["ko"]),
        ("recall", {"session": "SESSION", "turns": "7-9"}, words.no_such_turns("7-9", 1, 1, "ko")),
        ("recall", {"session": "SESSION", "query": "버" * 2_001}, "query: String should have at most 2000 characters"),
        ("search_sessions", {"limit": 51}, "limit: Input should be less than or equal to 50."),
        ("search_sessions", {"query": ["비밀"]}, "query: Input should be a valid string."),
    ],
)
def test_a_wrong_call_is_told_so_in_words(
    chat: Chat, reader: MCPProgram, tool: str, arguments: dict[str, Any], said: str
) -> None:
    chat.ask(1, 1)
    named = {name: chat.session_id if value == "SESSION" else value for name, value in arguments.items()}
    answer = reader.call(tool, **named)
    assert answer.is_error
    assert answer.text.startswith(said)
    assert "비밀" not in answer.text


def test_no_result_is_longer_than_an_editor_takes(chat: Chat, server: FakeOpenAI, reader: MCPProgram) -> None:
    server.script(text("짧은 답입니다."), text("또 짧은 답입니다."), to="기록")
    chat.say("기록 " + "가" * 3 * RESULT_CHARS)
    chat.say("기록 하나 더")
    cut = reader.call("read_turns", session=chat.session_id).content
    (turn,) = cut["turns"]
    assert turn["is_cut"]
    assert RESULT_CHARS // 2 <= len(turn["user"]) <= RESULT_CHARS
    assert (turn["assistant"], cut["next"]) == ("짧은 답입니다.", 2)
    rest = reader.call("read_turns", session=chat.session_id, **{"from": cut["next"]}).content
    assert ([turn["user"] for turn in rest["turns"]], rest["next"]) == (["기록 하나 더"], None)
    chat.ask(3, 4)
    (record,) = chat.service.folds.records(chat.session_id)
    chat.service.folds.undo(chat.session_id, record.id)  # its turns stand word for word
    (summary,) = reader.call("list_summaries", session=chat.session_id).content["summaries"]
    assert summary["is_cut"]
    assert len(summary["summary"]) == RESULT_CHARS + 1


def test_many_turns_are_read_in_parts(chat: Chat, reader: MCPProgram) -> None:
    chat.ask(1, TURNS_AT_ONCE + 2)
    read = reader.call("read_turns", session=chat.session_id, **{"from": 2}).content
    assert [turn["number"] for turn in read["turns"]] == list(range(2, TURNS_AT_ONCE + 2))
    assert read["next"] == TURNS_AT_ONCE + 2
    assert reader.call("read_turns", session=chat.session_id, **{"from": read["next"]}).content["next"] is None


def test_a_project_s_memory_is_read_and_none_is_made(rooted: Rooted) -> None:
    other = rooted.project.allowed / "other"
    other.mkdir()
    rooted.project.put(SEED_CONTEXT, SEED_WORKFLOW)
    with ServedPrograms(rooted.open().service) as served:
        program = MCPProgram(served.url, TOKEN)
        listed, (projects, memory) = program.talk(("list_projects", {}), ("read_project", {"project": rooted.root}))
        assert listed.keys() == OF_CHATS | OF_PROJECTS
        assert projects.content == {"projects": [rooted.root]}
        lines = memory.content["memory"].splitlines()
        assert [line.partition(" (")[0] for line in lines[1:3]] == ["PROJECT: flow", "ACTIVE PLAN: CLI 정리"]
        assert "API 호환성 유지하기로 결정" in memory.text
        assert [task["title"] for task in memory.content["tasks"]] == ["문서 고치기"]
        assert memory.text.endswith("\n- [ ] 문서 고치기")
        for folder, said in (
            (other, "project: Nothing is noted of this project."),
            (other / "gone", "project: Nothing is noted of this project."),
            (rooted.outside, f"This path can't be used. ({rooted.outside})"),
        ):
            assert program.call("read_project", project=str(folder)) == (said, None)
        assert [*other.iterdir(), *rooted.outside.iterdir()] == []
        (rooted.project.brain / "workflow.json").write_text("{")
        assert program.call("read_project", project=rooted.root).text.startswith("This project's memory is damaged")


def test_the_route_has_the_checks_of_all_routes_for_programs(served: ServedPrograms) -> None:
    with served.client() as known, served.client("") as unknown:
        assert known.post("/mcp", json=LISTING, headers=ACCEPTED).json()["result"]["tools"]
        assert known.post("/mcp/", json=LISTING, headers=ACCEPTED).status_code == 200
        refusals = [
            (unknown.post("/mcp", json=LISTING), 401, "invalid_api_key"),
            (known.get("/mcp"), 405, "method_not_allowed"),
            (unknown.get("/.well-known/oauth-protected-resource/mcp"), 404, "unknown_url"),
            (known.post("/mcp", json=LISTING, headers={"Host": "evil.example"}), 403, "host_not_allowed"),
            (known.post("/mcp", json=LISTING, headers={"Origin": "https://evil.example"}), 403, "origin_not_allowed"),
            (known.post("/mcp", json={**LISTING, "params": {"cursor": "가" * 2**20}}), 413, "request_too_large"),
            (known.post("/mcp", json=[LISTING]), 400, "invalid_json"),
        ]
        for answer, status, code in refusals:
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        # A half of a character, which no database takes.
        half = {
            **LISTING,
            "method": "tools/call",
            "params": {"name": "search_sessions", "arguments": {"query": "\ud800"}},
        }
        answer = known.post("/mcp", content=json.dumps(half), headers={**ACCEPTED, "Content-Type": "application/json"})
        assert answer.json()["result"]["structuredContent"] == {"sessions": []}


def test_a_defect_is_told_without_its_text_and_logged(
    chat: Chat, reader: MCPProgram, caplog: pytest.LogCaptureFixture
) -> None:
    chat.ask(1, 1)
    chat.change("UPDATE turn SET status = 'no-such-status'")
    answer = reader.call("read_turns", session=chat.session_id)
    assert answer.text == "Something unexpected went wrong. The server's log has the details."
    assert "tool read_turns failed" in caplog.text


@pytest.mark.slow
def test_the_library_is_imported_by_the_first_request_alone() -> None:
    check = "import sys, app; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(("guide", "mode"), [("docs/api-clients.md", "auto"), ("docs/api-clients.ko.md", "legacy")])
def test_over_standard_input_and_output_it_is_the_local_user_s(open_chat: OpenChat, guide: str, mode: str) -> None:
    """By the lines of the guide, beside a server that has the same data open."""
    chat = open_chat()
    chat.ask(1, 3)
    settings = chat.service.settings
    environment = {
        "TURNFOLD_DATA_DIR": str(settings.turnfold_data_dir),
        "OPENAI_BASE_URL": str(settings.openai_base_url),
        "TURNFOLD_LOG_LEVEL": "DEBUG",
    }
    (block,) = re.findall(r"```json\n([^`]*\"command\"[^`]*)```", (ROOT / guide).read_text(encoding="utf-8"))
    pasted = json.loads(block)["mcpServers"]["turnfold"]
    places = {"/home/kim/turnfold": str(ROOT), ".venv/bin/python": sys.executable}
    arguments = [reduce(lambda line, place: line.replace(*place), places.items(), line) for line in pasted["args"]]
    listed, (found, recalled, unknown) = MCPProgram.started(pasted["command"], arguments, environment, mode=mode).talk(
        ("search_sessions", {}),
        ("recall", {"session": chat.session_id, "query": "10월 2일"}),
        ("read_turns", {"session": "none"}),
    )
    assert listed.keys() == OF_CHATS
    assert [each["session_id"] for each in found.content["sessions"]] == [chat.session_id]
    assert question(2) in recalled.text
    assert unknown.text == "There is no session of this id. (none)"


@pytest.mark.slow
def test_a_start_that_fails_is_said_on_standard_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "api.mcp"],
        cwd=ROOT,
        env={"TURNFOLD_DATA_DIR": str(tmp_path), "COMPRESSION_RATE": "7"},
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Turnfold can't start: settings: COMPRESSION_RATE")


@pytest.mark.slow
def test_the_app_serves_it(open_chat: OpenChat, server: FakeOpenAI, tmp_path: Path) -> None:
    chat = open_chat()
    chat.ask(1, 1)
    chat.close()
    log, folder = tmp_path / "log", chat.service.settings.turnfold_data_dir
    with served_app(str(ROOT / "app.py"), folder, server.url, log, CHAT_API_TOKEN=TOKEN) as (process, port):
        assert ask_health(port, process) == (200, "ok")
        for mode in ("auto", "legacy"):
            program = MCPProgram(f"http://127.0.0.1:{port}", TOKEN, mode=mode)
            read = program.call("read_turns", session=chat.session_id)
            assert [turn["user"] for turn in read.content["turns"]] == [question(1)]
    said = log.read_text()
    assert TOKEN not in said
    assert "질문" not in said
