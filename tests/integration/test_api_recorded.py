"""Requests of real front ends, as they were recorded, are sent again in their order."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import pytest

from tests.fake.body import tool_names
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Reply, ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_api import OWNER, TOKEN, TOKENS, ServedApi, serve

FOLDER: Final = Path(__file__).parent / "recorded_client"
PATIENCE_SECONDS: Final = 60.0
SIDE_REQUEST: Final = ("aside", "")
NOT_TAKEN: Final = ("prefill_unsupported", "")
# In the background, beside its user's chat: whatever it is decided as, it is no turn of that chat.
BACKGROUND: Final = ("background", "")
# What each request is decided as, and in which turn of which session: "1/2" is the second turn of the first session.
DECIDED: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "open_webui": [
        SIDE_REQUEST,
        ("new", "1/1"),
        SIDE_REQUEST,
        SIDE_REQUEST,
        ("hint", "1/2"),
        SIDE_REQUEST,
        ("hint", "1/3"),
        SIDE_REQUEST,
    ],
    "open_webui_task_header": [
        *[
            SIDE_REQUEST,
            ("new", "1/1"),
            SIDE_REQUEST,
            SIDE_REQUEST,
            ("hint", "1/2"),
            SIDE_REQUEST,
            ("hint", "1/3"),
            SIDE_REQUEST,
        ],
        *[("hint", "1/3"), SIDE_REQUEST],  # Try Again
        *[NOT_TAKEN, SIDE_REQUEST],  # Continue Response
        *[("fork", "2/2"), SIDE_REQUEST],  # an edit of the second message
    ],
    "continue": [("new", "1/1"), ("history", "1/2")],
    "continue_tool": [("new", "1/1"), ("history", "1/1"), ("history", "1/2")],
    "libre_chat": [("new", "1/1"), SIDE_REQUEST, ("hint", "1/2")],
    # What stands in front of its first question is imported; the other requests are for commit messages.
    "aider": [("new", "1/4"), SIDE_REQUEST, SIDE_REQUEST, ("tail", "1/5"), SIDE_REQUEST, ("tail", "1/6")],
    "dspy": [("new", "1/5"), ("history", "1/6")],
    "langgraph": [("new", "1/1"), *[("history", f"1/{turn}") for turn in (2, 3, 4, 4)], ("tail", "1/5")],
    # The picture that its tool returned stands in a user's message.
    "pydantic_ai": [("new", "1/1"), *[("history", f"1/{turn}") for turn in (2, 3, 4)]],
    "opencode": [SIDE_REQUEST, ("new", "1/1"), *[("hint", f"1/{turn}") for turn in (2, 2, 3, 4)]],
    "gptme": [("new", "1/1"), SIDE_REQUEST, *[("history", f"1/{turn}") for turn in (2, 2, 3, 4)]],
    "qwen_code": [
        *[("new", "1/1"), BACKGROUND, ("history", "1/2"), BACKGROUND, ("history", "1/3"), ("history", "1/3")],
        *[BACKGROUND, ("history", "1/4"), BACKGROUND, ("history", "1/5"), BACKGROUND],
        *[("history", "1/6"), ("history", "1/7")],
    ],
    "qwen_code_suggestion": [
        *[("new", "1/1"), BACKGROUND, ("history", "1/2"), BACKGROUND, BACKGROUND, ("history", "1/3")],
        *[BACKGROUND, BACKGROUND, ("history", "1/4")],
    ],
}

# Texts of the program and results of its tools that reach the model.
READ: Final[Mapping[str, Sequence[str]]] = {
    "aider": ["*Trust this message", "return   404 if month else 0", "show_greeting.py"],
    "dspy": ["Ulsan itself.", "Daegu itself.", "Jeju itself.", "Mokpo itself."],
    "langgraph": ["Budget of May: 417 euros"],
    "pydantic_ai": ["Budget of May: 417 euros", "data:image/png;base64,"],
    "opencode": ["1: The budget of May is 417 euros.", "ripgrep execution failed"],
    "gptme": ["The budget of May is 417 euros."],
    "qwen_code": ["The budget of May is 417 euros.", "The move is on Monday."],
}


def recorded(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line.replace("{token}", TOKEN)) for line in lines]


def recorded_answer(number: int) -> str:
    """What the endpoint answered when the requests were recorded."""
    return f"Answer {number} from the scripted model: the budget is fine. "


def edit(number: int) -> str:
    """An answer that aider takes for the new text of a file."""
    file = f"def budget(month):\n\treturn   {400 + number} if month else 0\n"
    return f"{recorded_answer(number)}\n\nbudget.py\n```\n{file}```\n"


# What was answered when they were recorded, where it was more than a sentence.
REPLIES: Final[Mapping[tuple[str, int], Reply]] = {
    ("continue_tool", 1): tools(
        ScriptedCall("Read", '{"filepath":"a.txt"}', "call_a1"),
        ScriptedCall("List", '{"dirpath":"."}', "call_a2"),
        answer="I look at both. ",
    ),
    ("langgraph", 4): tools(ScriptedCall("read_budget", '{"month": "May"}', "call_b1")),
    ("pydantic_ai", 2): tools(ScriptedCall("draw_budget", '{"month": "May"}', "call_b1")),
    ("dspy", 1): text(f"[[ ## answer ## ]]\n{recorded_answer(1).strip()}\n\n[[ ## completed ## ]]"),
    ("aider", 1): text(edit(1)),
    ("aider", 4): text(edit(4)),
    ("opencode", 3): tools(
        ScriptedCall("read", '{"filePath": "/srv/code/notes.txt"}', "call_o3a"),
        ScriptedCall("glob", '{"pattern": "*.txt"}', "call_o3b"),
    ),
    ("gptme", 3): tools(ScriptedCall("shell", '{"command": "cat notes.txt"}', "call_g3")),
    ("qwen_code", 5): tools(
        ScriptedCall("read_file", '{"file_path": "/srv/code/notes.txt"}', "call_q5a"),
        ScriptedCall("read_file", '{"file_path": "/srv/code/more.txt"}', "call_q5b"),
    ),
    **{
        ("qwen_code", number): tools(
            ScriptedCall("read_file", '{"file_path": "/srv/code/notes.txt"}', f"call_m{number}")
        )
        for number in (2, 7, 11)
    },
    **{
        ("qwen_code_suggestion", number): tools(
            ScriptedCall("read_file", '{"file_path": "/srv/code/notes.txt"}', f"call_m{number}")
        )
        for number in (2, 7)
    },
}


def reply_to(name: str, number: int) -> Reply:
    return REPLIES.get((name, number)) or text(recorded_answer(number))


class SentRequest(NamedTuple):
    """A request that was sent.

    Attributes:
        number: Its place among the recorded ones, from 0.
        response: What came, once it is whole.
        calls: Ids of the calls that were recorded in its answer.
        gate: Holds the endpoint's answer back until it is set.
    """

    number: int
    response: Future[httpx2.Response]
    calls: Sequence[str]
    gate: threading.Event


class Replay:
    """Sends the recorded requests of a client, with the ids of calls that it gets now in place of the recorded ones.

    A request in the background is answered behind the next one of the user, and so before the next in the background.
    """

    def __init__(self, name: str, client: httpx2.Client, server: FakeOpenAI) -> None:
        self._name, self._client, self._server = name, client, server
        self._ids: dict[str, str] = {}
        self._sessions: list[str] = []
        self._decided: dict[int, tuple[str, str]] = {}

    def run(self) -> list[tuple[str, str]]:
        """Returns what each request was decided as."""
        requests = recorded(self._name)
        for request in requests:
            if request["method"] == "GET":
                assert self._client.get(request["path"], headers=request["headers"]).status_code == 200
        posted = [request for request in requests if request["method"] == "POST"]
        in_background = list[SentRequest]()
        with ThreadPoolExecutor() as pool:
            try:
                for number, request in enumerate(posted):
                    sent = self._send(pool, number, request)
                    if request.get("is_background"):
                        in_background.append(sent)
                        continue
                    self._end(sent)
                    while in_background:
                        self._end(in_background.pop())
            finally:
                for sent in in_background:
                    sent.gate.set()
        return [self._decided[number] for number in range(len(posted))]

    def _send(self, pool: ThreadPoolExecutor, number: int, request: Mapping[str, Any]) -> SentRequest:
        """Sends a request, and waits until it has come to the endpoint or was answered without it."""
        body = json.dumps(request["body"], ensure_ascii=False)
        for written, received in self._ids.items():
            body = body.replace(written, received)
        reply, gate, before = reply_to(self._name, number + 1), threading.Event(), len(self._server.exchanges)

        def answer(_: object) -> Reply:
            gate.wait(PATIENCE_SECONDS)
            return reply

        if DECIDED[self._name][number] != NOT_TAKEN:
            self._server.script(answer)
        response = pool.submit(
            self._client.post, request["path"], headers=request["headers"], content=body.encode("utf-8")
        )
        self._server.wait_until(lambda server: len(server.exchanges) > before or response.done())
        calls = [call["id"] for call in calls_in(reply.events)]
        return SentRequest(number, response, calls, gate)

    def _end(self, sent: SentRequest) -> None:
        """Waits for the answer."""
        sent.gate.set()
        response = sent.response.result(PATIENCE_SECONDS)
        expected = DECIDED[self._name][sent.number]
        if expected == NOT_TAKEN:
            assert response.status_code == 400
            self._decided[sent.number] = (response.json()["error"]["code"], "")
            return
        assert response.status_code == 200, f"request {sent.number + 1}: {response.text}"
        received = [call["id"] for call in calls_in(events_of(response))]
        self._ids |= zip(sent.calls, received, strict=True)
        told = response.headers
        session_id = told.get("X-Turnfold-Session", "")
        if expected == BACKGROUND and session_id not in self._sessions:
            self._decided[sent.number] = BACKGROUND
            return
        turn_of_session = ""
        if session_id:
            self._sessions += [session_id] * (session_id not in self._sessions)
            turn_of_session = f"{self._sessions.index(session_id) + 1}/{told['X-Turnfold-Turn']}"
        self._decided[sent.number] = (told["X-Turnfold-Matched"], turn_of_session)


def events_of(response: httpx2.Response) -> Sequence[str]:
    """The events of an answer that was streamed; a whole one as the only event."""
    if not response.headers["Content-Type"].startswith("text/event-stream"):
        return [response.text]
    events = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    return events


def calls_in(events: Sequence[str]) -> list[dict[str, Any]]:
    """The first fragments of all calls, which have their ids."""
    choices = [choice for event in events for choice in json.loads(event)["choices"]]
    messages = [choice.get("delta") or choice.get("message") or {} for choice in choices]
    return [call for message in messages for call in message.get("tool_calls") or () if call.get("id")]


def replay(served: ServedApi, server: FakeOpenAI, name: str) -> list[tuple[str, str]]:
    """Sends the requests, and returns what each was decided as."""
    with httpx2.Client(base_url=f"http://127.0.0.1:{served.port}", timeout=PATIENCE_SECONDS) as client:
        return Replay(name, client, server).run()


@pytest.mark.parametrize("name", DECIDED)
def test_each_request_of_a_front_end_is_what_its_user_did(open_chat: OpenChat, server: FakeOpenAI, name: str) -> None:
    server.models = ["test"]
    chat = open_chat(chat_model="test", chat_api_tokens=TOKENS, chat_api_personal="all")
    with serve(chat.service, personal="all") as served:
        assert replay(served, server, name) == DECIDED[name]
    sent = json.dumps([body["messages"] for body in server.bodies("chat")])
    assert [words for words in READ.get(name, ()) if words not in sent] == []
    ((aside,),) = chat.rows("SELECT count(*) FROM aside_call")
    assert 0 <= aside - DECIDED[name].count(SIDE_REQUEST) <= DECIDED[name].count(BACKGROUND)
    retained = chat.rows("SELECT content FROM message")
    assert not [
        content for (content,) in retained if "### Task" in content or "5-word" in content or "2-4 word" in content
    ]
    service = chat.service.for_owner(OWNER)
    shown = [
        [(turn.user_text, turn.answer_text) for turn in service.turns.transcript(item.session_id, last=10).turns]
        for item in service.sessions.list()
    ]
    if name == "open_webui_task_header":
        first = ("안녕", recorded_answer(2).strip())
        assert sorted(shown, key=len) == [
            [first, ("예산은 90만 원입니다.", recorded_answer(13).strip())],
            [
                first,
                ("예산은 120만 원입니다.", recorded_answer(5).strip()),
                ("세 번째 질문입니다.", recorded_answer(9).strip()),
            ],
        ]
    if name == "continue_tool":
        first_body, second_body, *_ = server.bodies("chat")
        assert {"Read", "List"} <= set(tool_names(first_body))
        results = [message["content"] for message in second_body["messages"] if message["role"] == "tool"]
        assert results == ["Content of a.txt:\nhello budget\n", "Files in /srv/code:\na.txt (file, 13 bytes)"]
        assert [len(turns) for turns in shown] == [2]
