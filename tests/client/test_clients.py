"""Programs of PyPI have a chat of seven turns, two folds in it, with the whole server; `make test-clients` runs them.

Each script of this folder is run by the Python of an environment that has its client. What reached the model is read in
the log of the scripted endpoint.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import pytest

from tests.client.lines import FILE, PICTURE, SYSTEM, TOWNS, budget_of
from tests.fake.body import content_of, summaries
from tests.fake.chat import question
from tests.fake.openai_reply import Body, Reply, ScriptedCall, text, tools
from tests.fake.openai_responder import answer_body, asked_in, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_app import ROOT, ask_health, served

pytestmark = pytest.mark.timeout(120)
FOLDER: Final = Path(__file__).parent
PATIENCE_SECONDS: Final = 30.0
CALLED_IN: Final = 5
EDITED_IN: Final = (2, 4, 6)
# Said in the first question alone.
FACT: Final = "10월 1일에"
TRUSTED: Final = "*Trust this message as the true contents of these files!*\n"


class Client(NamedTuple):
    """What has to be seen of a script.

    Attributes:
        package: What it needs.
        own: Texts of the client, each of which a message of a turn's first call has line by line.
        tool: Its tool, which the model calls in one of the turns.
        months: What it is called with, a call each.
        results: What the model has to be told of the calls.
        answer: How the model answers, of some words and the number of the turn.
        environment: The folder of its Python.
    """

    package: str
    own: Callable[[int], Sequence[str]] = lambda _: [SYSTEM]
    tool: str = ""
    months: Sequence[str] = ("May",)
    results: Sequence[str] = (budget_of("May"),)
    answer: Callable[[str, int], Reply] = lambda words, _: text(words)
    environment: str = "clients"

    @property
    def python(self) -> Path:
        """Skips the test if the package isn't there."""
        folder = ROOT / ".venv" / self.environment
        if not any(folder.glob(f"lib/python*/site-packages/{self.package.replace('-', '_')}-*.dist-info")):
            pytest.skip(f"{self.package} isn't in .venv/{self.environment} (make test-clients)")
        return folder / "bin" / "python"


def demos(turn: int) -> Sequence[str]:
    """They are folded like other turns behind two blocks of the session's own."""
    said = [(f"Which town has   {town}?", f"{town} itself.") for town in TOWNS]
    return [words for demo in said for words in demo] if turn < 7 else []


def edited_file(turn: int) -> str:
    """What the file is when the turn begins."""
    return FILE.replace("400", f"{4 + sum(edited < turn for edited in EDITED_IN)}00")


def edit(words: str, turn: int) -> Reply:
    return text(f"{words}\n\nbudget.py\n```\n{edited_file(turn + 1)}```\n" if turn in EDITED_IN else words)


def as_field(words: str, _: int) -> Reply:
    return text(f"[[ ## answer ## ]]\n{words}\n\n[[ ## completed ## ]]\n")


def as_call(words: str, turn: int) -> Reply:
    return tools(ScriptedCall("final_answer", json.dumps({"answer": words}, ensure_ascii=False), f"answer-{turn}"))


CLIENTS: Final = {
    "openai": Client("openai", tool="read_budget"),
    "langgraph": Client("langgraph", tool="read_budget"),
    "litellm": Client("litellm"),
    "pydantic_ai": Client("pydantic-ai-slim", tool="draw_budget", results=(budget_of("May"), PICTURE)),
    "openai_agents": Client("openai-agents", tool="read_budget"),
    "dspy": Client("dspy", own=demos, answer=as_field),
    "llm": Client("llm", own=lambda turn: [SYSTEM, FILE] if turn < 4 else [SYSTEM]),
    "aider": Client(
        "aider-chat", own=lambda turn: [TRUSTED + edited_file(turn)], answer=edit, environment="clients-aider"
    ),
    "smolagents": Client("smolagents", tool="read_budget", answer=as_call),
    "llama_index": Client(
        "llama-index-llms-openai-like",
        tool="read_budget",
        months=("May", "June"),
        results=(budget_of("May"), budget_of("June")),
        environment="clients-llama-index",
    ),
    "summarization": Client("langchain", tool="read_budget"),
    "openai_at_once": Client("openai"),
    "mcp": Client("mcp"),
}
# The others have tests of their own.
IN_ONE_CHAT: Final = [name for name in CLIENTS if name not in {"openai_at_once", "mcp"}]


def token_of(name: str) -> str:
    return f"token-of-{name}-0123456789"


class Server(NamedTuple):
    """The served product and the endpoint behind it."""

    url: str
    endpoint: FakeOpenAI
    log: Path

    def program(self, name: str) -> httpx2.Client:
        """Returns a client of the product's own routes, with the token of a script."""
        headers = {"Authorization": f"Bearer {token_of(name)}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    tokens = ",".join(f"{name}:owner-{number}:{token_of(name)}" for number, name in enumerate(CLIENTS))
    settings = {"CHAT_API_TOKENS": tokens, "CHAT_API_PERSONAL": "all", "MODEL_WINDOW_TOKENS": "32000"}
    with (
        FakeOpenAI() as endpoint,
        served("app.py", folder / "data", endpoint.url, folder / "log", TURNFOLD_LOG_LEVEL="INFO", **settings) as (
            process,
            port,
        ),
    ):
        assert ask_health(port, process) == (200, "ok")
        yield Server(f"http://127.0.0.1:{port}", endpoint, folder / "log")


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    with running.endpoint.lent(is_alone=True):
        yield running


@contextmanager
def started(server: Server, name: str, folder: Path, *, user: str = "") -> Iterator[Callable[[object], str]]:
    """Starts a script, with its own token unless it is another script's; yields what asks it and returns its answer."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONUTF8": "1",
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": token_of(user or name),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [CLIENTS[name].python, FOLDER / f"with_{name}.py"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        )

        def ask(asked: object) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{json.dumps(asked)}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, log.read_text()[-4_000:]
            return str(json.loads(answer))

        try:
            yield ask
        finally:
            process.kill()
            process.communicate()


def wait_for_folds(server: Server, program: httpx2.Client) -> None:
    """Waits until nothing of the program's sessions runs and all blocks of three turns that are due are folded."""

    def is_folded(session: Mapping[str, Any]) -> bool:
        session_id, turns = session["session_id"], session["turn_count"]
        if session["is_running"]:
            return False
        if not program.get(f"/sessions/{session_id}/statistics").json()["next_fold"]["is_due"]:
            return True
        # A fold that is done is in force from the next turn on.
        log = server.log.read_text()
        blocks = [tuple(range(first, first + 3)) for first in range(1, turns - 1, 3)]
        return all(f"fold COMPLETED session={session_id} turns={block}" in log for block in blocks)

    deadline = time.monotonic() + PATIENCE_SECONDS
    while not all(map(is_folded, program.get("/sessions").json()["sessions"])):
        assert time.monotonic() < deadline, server.log.read_text()[-4_000:]
        time.sleep(0.05)


def have_chat(server: Server, name: str, ask: Callable[[object], str], *, user: str = "") -> list[list[Body]]:
    """Asks seven questions; returns what the model was sent in each turn."""
    client = CLIENTS[name]
    sent, turn = list[list[Body]](), 0

    def respond(body: Body) -> Reply:
        if kind_of(body) != "chat" or not body.get("tools"):
            return answer_body(body)
        if client.tool and turn == CALLED_IN and len(bodies()) == 1:
            asked = [(json.dumps({"month": month}), f"call-of-{name}-{month}") for month in client.months]
            return tools(*(ScriptedCall(client.tool, arguments, call_id) for arguments, call_id in asked))
        return client.answer(words_of(turn), turn)

    def bodies() -> list[Body]:
        # A request without memory has no tools.
        return [body for body in server.endpoint.bodies("chat")[before:] if body.get("tools")]

    server.endpoint.respond_with(respond)
    with server.program(user or name) as program:
        for turn in range(1, 8):
            before = len(server.endpoint.bodies("chat"))
            assert words_of(turn) in ask(question(turn))
            wait_for_folds(server, program)
            sent.append(bodies())
    return sent


def words_of(turn: int) -> str:
    return (
        f"{turn}번 답입니다. 담당자와 날짜와 예산을 차례로 살펴보았고, 데이터베이스를 먼저 복제하는 순서가 맞습니다. "
        "복제가 끝나기 전에 트래픽을 옮기면 그 사이의 주문을 잃을 수 있으니, 옮기기 전날 밤에 한 번 더 맞춥니다. "
        "요약이 줄일 것이 있도록 문장을 몇 개 더 붙입니다. 더 궁금한 점이 있으면 이어서 물어보세요."
    )


def has(body: Body, own: str) -> bool:
    """A message has all lines of a text, which may be indented further."""
    return any(all(line in content_of(message) for line in own.splitlines()) for message in body["messages"])


@pytest.mark.parametrize("name", IN_ONE_CHAT)
def test_a_client_has_one_session_and_its_own_texts_reach_the_model_beside_the_folds(
    server: Server, name: str, tmp_path: Path
) -> None:
    client = CLIENTS[name]
    with started(server, name, tmp_path) as ask:
        sent = have_chat(server, name, ask)
    with server.program(name) as program:
        (session,) = program.get("/sessions").json()["sessions"]
        turns = program.get(f"/sessions/{session['session_id']}/turns").json()["turns"]
    assert [sum(question(turn) in shown["user_text"] for shown in turns) for turn in range(1, 8)] == [1] * 7
    assert summaries(sent[2][-1]) == []
    assert summaries(sent[6][-1])[:2] == [(1, 3), (4, 6)]
    assert FACT in json.dumps(sent[6][-1]["messages"], ensure_ascii=False)
    for turn, bodies in enumerate(sent, 1):
        assert [own for own in client.own(turn) if not has(bodies[0], own)] == [], f"turn {turn}"
        assert len(bodies) == 1 + (bool(client.tool) and turn == CALLED_IN)
    if client.tool:
        told = json.dumps(sent[CALLED_IN - 1][-1]["messages"])
        assert [result for result in client.results if result not in told] == []


def at_once(ask: Callable[[object], str], api: str, asked: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Asks each question behind its branch; returns what came."""
    came: list[dict[str, Any]] = json.loads(ask([api, asked]))
    assert [(one["status"], one["text"]) for one in came] == [(200, answer_to(question)) for _, question in asked]
    return came


def answer_to(asked: str) -> str:
    return f"This is what the model says to it, at some length: {asked}"


@pytest.mark.parametrize("api", ["completions", "responses"])
def test_questions_that_are_asked_at_once_behind_one_history_are_answered_in_branches_of_their_own(
    server: Server, api: str, tmp_path: Path
) -> None:
    first = f"We move in October by the {api}, and the code is 4711. What is missing?"
    aspects = [f"What is to be said of aspect {letter} of the {api}?" for letter in "ABCDE"]
    followed = [f"And what is behind it? {asked}" for asked in aspects]
    together = threading.Barrier(len(aspects))

    def respond(body: Body) -> Reply:
        asked = asked_in(body)
        if asked != first:
            with suppress(threading.BrokenBarrierError):
                together.wait(PATIENCE_SECONDS / 6)
        return text(answer_to(asked))

    server.endpoint.respond_with(respond)
    with started(server, "openai_at_once", tmp_path) as ask:
        (begun,) = at_once(ask, api, [("", first)])
        branches = at_once(ask, api, [(begun["branch"], asked) for asked in aspects])
        went_on = at_once(ask, api, [(one["branch"], asked) for one, asked in zip(branches, followed, strict=True)])
    sessions = [one["session"] for one in branches]
    assert len(set(sessions)) == len(aspects)
    assert {one["matched"] for one in branches if one["session"] != begun["session"]} == {"fork"}
    assert [one["session"] for one in went_on] == sessions
    with server.program("openai_at_once") as program:
        for session_id, *asked in zip(sessions, aspects, followed, strict=True):
            turns = program.get(f"/sessions/{session_id}/turns").json()["turns"]
            said = [(turn["user_text"], turn["answer_text"]) for turn in turns]
            assert said == [(words, answer_to(words)) for words in (first, *asked)]
    for body in server.endpoint.bodies("chat"):
        sent = json.dumps(body["messages"])
        assert first in sent
        assert sum(asked in sent for asked in aspects) <= 1


def test_litellm_is_told_in_its_terms_that_a_message_is_longer_than_the_window(server: Server, tmp_path: Path) -> None:
    with started(server, "litellm", tmp_path) as ask:
        assert ask("예산은 120만 원입니다. " * 12_000) == "ContextWindowExceededError"


def test_the_mcp_client_reads_what_another_client_has_said(server: Server, tmp_path: Path) -> None:
    folders = tmp_path / "chat", tmp_path / "mcp"
    for folder in folders:
        folder.mkdir()
    with started(server, "openai", folders[0], user="mcp") as ask, started(server, "mcp", folders[1]) as call:
        have_chat(server, "openai", ask, user="mcp")
        (session,) = json.loads(call(["search_sessions", {"query": "김민수"}]))["sessions"]
        of_session = {"session": session["session_id"]}
        assert budget_of("May") in call(["read_turns", {**of_session, "from": 5, "to": 5}])
        assert question(2) in call(["recall", {**of_session, "turns": "2"}])
        assert len(json.loads(call(["list_summaries", of_session]))["summaries"]) == 2
