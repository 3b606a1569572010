"""Requests of real front ends, as they were recorded, are sent again in their order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.fake.body import tool_names
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Reply, ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_api import OWNER, TOKEN, ServedApi, serve

FOLDER: Final = Path(__file__).parent / "recorded_client"
SIDE_REQUEST: Final = ("aside", "")
NOT_TAKEN: Final = ("prefill_unsupported", "")
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
}

# Texts of the program and results of its tools that reach the model.
READ: Final[Mapping[str, Sequence[str]]] = {
    "aider": ["*Trust this message", "return   404 if month else 0", "show_greeting.py"],
    "dspy": ["Ulsan itself.", "Daegu itself.", "Jeju itself.", "Mokpo itself."],
    "langgraph": ["Budget of May: 417 euros"],
    "pydantic_ai": ["Budget of May: 417 euros", "data:image/png;base64,"],
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
}


def reply_to(name: str, number: int) -> Reply:
    return REPLIES.get((name, number)) or text(recorded_answer(number))


def replay(served: ServedApi, server: FakeOpenAI, name: str) -> list[tuple[str, str]]:
    """Sends the requests, and returns what each was decided as."""
    decided, sessions = list[tuple[str, str]](), list[str]()
    with httpx2.Client(base_url=f"http://127.0.0.1:{served.port}", timeout=60) as client:
        for request in recorded(name):
            if request["method"] == "GET":
                assert client.get(request["path"], headers=request["headers"]).status_code == 200
                continue
            number = len(decided) + 1
            is_refused = DECIDED[name][number - 1] == NOT_TAKEN
            if not is_refused:
                server.script(reply_to(name, number))
            answer = client.post(request["path"], headers=request["headers"], json=request["body"])
            if is_refused:
                assert answer.status_code == 400
                decided.append((answer.json()["error"]["code"], ""))
                continue
            assert answer.status_code == 200, answer.text
            told = answer.headers
            turn_of_session = ""
            if session_id := told.get("X-Turnfold-Session", ""):
                sessions += [session_id] * (session_id not in sessions)
                turn_of_session = f"{sessions.index(session_id) + 1}/{told['X-Turnfold-Turn']}"
            decided.append((told["X-Turnfold-Matched"], turn_of_session))
    return decided


@pytest.mark.parametrize("name", DECIDED)
def test_each_request_of_a_front_end_is_what_its_user_did(open_chat: OpenChat, server: FakeOpenAI, name: str) -> None:
    server.models = ["test"]
    chat = open_chat(chat_model="test")
    with serve(chat.service) as served:
        assert replay(served, server, name) == DECIDED[name]
    sent = json.dumps([body["messages"] for body in server.bodies("chat")])
    assert [words for words in READ.get(name, ()) if words not in sent] == []
    titles = [what for what in DECIDED[name] if what == SIDE_REQUEST]
    assert chat.rows("SELECT count(*) FROM aside_call") == [(len(titles),)]
    retained = chat.rows("SELECT content FROM message")
    assert not [content for (content,) in retained if "### Task" in content or "5-word" in content]
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
