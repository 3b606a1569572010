from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api import chat as chat_operations
from api.chat_request import ChatOptions
from graph.view import TurnOptions
from prompt.system.context_layer import VOLATILE_HEADING
from tests.fake.body import content_of, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, chunk, hang, raw, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by, tool
from tests.fake.resending import Program, result
from tests.fake.rooted import Rooted
from tests.fake.served_chat import Answer, ServedChat, essence_of, text_of
from tests.fake.served_programs import STRANGER

ROOT = Path(__file__).parents[2]
IN_FILE = {"currentFile": "src/app.py", "selection": "def main():\n    return 1"}
BLOCK = f"{VOLATILE_HEADING}\ncurrentFile: src/app.py\nselection:\n    def main():\n        return 1"


@pytest.fixture
def chat(open_chat: OpenChat) -> Chat:
    return open_chat()


@pytest.fixture
def served(chat: Chat) -> Iterator[ServedChat]:
    with ServedChat(chat.service) as opened:
        yield opened


def session_of(answer: Answer) -> str:
    return str(answer.told[0].value["metadata"]["conversationId"])


def code_of(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["error"]["code"]


def last_words(server: FakeOpenAI) -> str:
    return content_of(server.bodies("chat")[-1]["messages"][-1])


def test_a_chat_of_five_turns_is_folded_as_any_other(served: ServedChat, server: FakeOpenAI, chat: Chat) -> None:
    session_id = session_of(served.send({"message": question(1)}))
    here = Chat(chat.service, session_id)
    for number in range(2, 6):
        here.wait_for_folds()
        answer = served.send({"message": question(number), "session_id": session_id})
        assert answer.headers["x-turnfold-turn"] == str(number)
    assert here.covered == [(1, 2, 3)]
    assert "[1-3턴]" in system_prompt(server.bodies("chat")[-1])
    assert answer.told[-3].value["figures"]["folded_turns"] == 3


def test_what_the_options_say_holds_for_the_session(served: ServedChat, chat: Chat) -> None:
    options = {"compression_rate": 0.5, "strategy": "window", "model": "turnfold/scripted-model", "has_memory": False}
    session_id = session_of(served.send({"message": question(1), "options": options}))
    view = chat.service.sessions.get(session_id)
    assert (view.compression_rate, view.strategy, view.model) == (0.5, "window", "scripted-model")
    assert not view.has_memory


def test_the_same_message_once_more_makes_no_second_turn(served: ServedChat, server: FakeOpenAI) -> None:
    body = {"message": question(1), "options": {"message_id": "message-1"}}
    first, second = served.send(body), served.send(body)
    assert session_of(first) == session_of(second)
    assert essence_of(first.told) == essence_of(second.told)
    assert len(server.bodies("chat")) == 1
    other = served.send(body, token=STRANGER)
    assert session_of(other) != session_of(first)


def test_the_context_goes_to_the_model_and_can_be_updated_alone(served: ServedChat, server: FakeOpenAI) -> None:
    session_id = session_of(served.send({"message": question(1), "context": IN_FILE}))
    assert last_words(server) == f"{BLOCK}\n\n[CURRENT MESSAGE]\n{question(1)}"
    answer = served.ask("PUT", f"/sessions/{session_id}/context", json={"currentFile": "/b.py"})
    assert (answer.status, answer.json) == (200, {"currentFile": "/b.py"})
    served.send({"message": question(2), "session_id": session_id})
    assert last_words(server).startswith(f"{VOLATILE_HEADING}\ncurrentFile: /b.py\n\n")


def test_a_project_that_the_context_names_is_the_sessions_and_its_rules_must_be_agreed_to(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    rooted.write("AGENTS.md", "들여쓰기는 네 칸으로 합니다.")
    chat = rooted.open()
    body = {"message": question(1), "context": {"projectRoot": rooted.root}}
    with ServedChat(chat.service) as served:
        answer = served.send(body)
        assert answer.told[0].data == json.dumps(
            {"metadata": {"conversationId": session_of(answer), "rules": "not_agreed"}}, separators=(",", ":")
        )
        assert "네 칸" not in str(server.bodies("chat")[-1])
        rooted.agree(chat)
        answer = served.send({**body, "session_id": session_of(answer)})
        assert answer.told[0].value == {"metadata": {"conversationId": session_of(answer)}}
        assert "네 칸" in str(server.bodies("chat")[-1])
        rooted.write("AGENTS.md", "들여쓰기는 두 칸으로 합니다.")
        answer = served.send({**body, "session_id": session_of(answer)})
        assert answer.told[0].value["metadata"]["rules"] == "changed"
    assert chat.service.sessions.get(session_of(answer)).project_root == rooted.root


def test_a_project_outside_the_allowed_folders_is_refused_and_nothing_is_stored(
    served: ServedChat, chat: Chat, tmp_path: Path
) -> None:
    for body in (
        {"message": question(1), "context": {"projectRoot": str(tmp_path)}},
        {"message": question(1), "options": {"project_root": str(tmp_path)}},
    ):
        assert code_of(served.send(body)) == (400, "invalid_path")
    assert chat.service.sessions.list() == ()


def test_a_program_has_only_the_tools_of_its_token(chat: Chat, server: FakeOpenAI) -> None:
    with ServedChat(chat.service, tools="recall") as served:
        served.send({"message": question(1)})
    assert [each["function"]["name"] for each in server.bodies("chat")[-1]["tools"]] == ["recall"]


def test_what_another_program_instructed_stays(served: ServedChat, server: FakeOpenAI, chat: Chat) -> None:
    chat.say(question(1), options=asked_by(system="늘 표로 답하세요."))
    served.send({"message": question(2), "session_id": chat.session_id})
    assert "늘 표로 답하세요." in system_prompt(server.bodies("chat")[-1])


def test_page_chat_and_completions_go_on_with_one_session(served: ServedChat, chat: Chat) -> None:
    chat.say(question(1))
    served.send({"message": question(2), "session_id": chat.session_id})
    Program(chat.service, fields={"session": chat.session_id}).ask(question(3))
    answer = served.send({"message": question(4), "session_id": chat.session_id})
    assert answer.status == 200
    assert [turn.user_text for turn in chat.turns] == [question(number) for number in range(1, 5)]
    assert [turn.client for turn in chat.turns] == ["", "editor", "editor", "editor"]
    assert chat.events()[-1].__class__.__name__ == "TurnFinished"


def test_a_turn_that_waits_for_a_program_is_told_and_goes_on_under_places_of_its_own(
    served: ServedChat, server: FakeOpenAI, chat: Chat
) -> None:
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="보겠습니다."), text("보았습니다."))
    chat.say("무엇이 보이나요?", options=asked_by(tools=(tool("look"),)))
    waiting = served.follow(chat.session_id)
    assert waiting.told[-3].name == "action_required"
    assert [call["name"] for call in waiting.told[-3].value["calls"]] == ["look"]
    assert waiting.told[-2].value["choices"][0]["finish_reason"] == "tool_calls"
    assert served.follow(chat.session_id, waiting.told[-2].id).status == 204
    results = [result(step.call_id, "고양이") for step in chat.last_turn.steps]
    chat.service.turns.resume(chat.session_id, results, options=asked_by(tools=(tool("look"),)))
    told = served.follow(chat.session_id, waiting.told[-4].id).told
    assert told[0].name == "snapshot"
    assert text_of(told) == "보겠습니다.\n\n보았습니다."
    assert not {each.id for each in told} & {each.id for each in waiting.told if each.id}


def test_after_a_kill_of_the_server_there_is_a_snapshot(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.script(hang("부분 답변 "))
    chat = open_chat()
    command = [sys.executable, "-m", "tests.fake.killed_server", str(chat.service.settings.turnfold_data_dir)]
    with subprocess.Popen([*command, server.url, chat.session_id, question(1)], cwd=ROOT) as process:
        chat.wait_until(lambda: chat.rows("SELECT partial_text FROM turn") == [("부분 답변 ",)])
        with ServedChat(chat.service) as served:
            running = served.follow(
                chat.session_id, "1.1.3", until=lambda body: b"snapshot" in body and b"\n\n" in body
            )
            process.kill()
            process.wait()
            told = served.follow(chat.session_id, "1.1.3").told
            assert (running.told[0].name, running.told[0].value["text"]) == ("snapshot", "부분 답변 ")
            ended = told[-4:]
            assert [each.name for each in ended] == ["snapshot", "turn_failed", "", ""]
            assert (ended[0].value["status"], ended[0].value["text"]) == ("failed", "부분 답변")
            assert ended[1].value["code"] == "interrupted"
            assert served.follow(chat.session_id, ended[2].id).status == 204


def test_a_model_that_breaks_off_is_retried_and_the_client_told_what_stays(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    lost = raw(chunk({"content": "버려질 말 "}), '{"error": {"message": "overloaded", "code": 503}}')
    server.script(lost, text("새 답변"))
    with ServedChat(open_chat(model_attempts=2).service) as served:
        told = served.send({"message": question(1)}).told
    assert [each.value for each in told if each.name == "answer_restarted"] == [{"text": ""}]
    assert text_of(told) == "새 답변"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"message": 3},
        {"message": None},
        {"message": "x", "context": {"selection": 3}},
        {"message": "x", "context": []},
        {"message": "x", "session_id": ""},
        {"message": "x", "session_id": 3},
        {"message": "x", "conversationId": "x"},
        {"message": "x", "options": {"compression_rate": 0.9}},
        {"message": "x", "options": {"compression_rate": "0.3"}},
        {"message": "x", "options": {"strategy": "none such"}},
        {"message": "x", "options": {"unknown": 1}},
        {"message": "x", "options": {"message_id": "x" * 257}},
        {"message": ""},
        {"message": " \n"},
        {"message": "x" * 200_001},
        {"message": "x", "context": {"selection": "x" * 200_001}},
        [],
        "text",
        None,
    ],
)
def test_a_wrong_body_is_refused_and_nothing_is_stored(served: ServedChat, chat: Chat, body: object) -> None:
    answer = served.ask("POST", "/chat", json=body)
    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert chat.service.sessions.list() == ()


@pytest.mark.parametrize("body", [b"", b"{", b'{"message":"\xff"}', b"[" * 100_000, b'{"message":NaN}'])
def test_a_body_that_is_no_json_is_refused(served: ServedChat, body: bytes) -> None:
    assert code_of(served.ask("POST", "/chat", content=body)) == (400, "invalid_json")


def test_hostile_texts_are_said_as_they_can_be(served: ServedChat, chat: Chat) -> None:
    said = "\u202eعربي 👩‍👩‍👧 \x00 \ud800 data: [DONE]\r\n\r\nevent: x\u2028끝"
    body = json.dumps({"message": said, "context": {"selection": said, "": said}}).encode()
    answer = served.ask("POST", "/chat", content=body)
    assert answer.told[-1].data == "[DONE]"
    [turn] = Chat(chat.service, session_of(answer)).turns
    assert turn.user_text == said.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")


def test_a_model_that_is_not_named_keeps_that_of_the_session(served: ServedChat, chat: Chat) -> None:
    chat.say(question(1), options=TurnOptions(model="scripted-model"))
    served.send({"message": question(2), "session_id": chat.session_id, "options": {"model": None}})
    assert chat.view.model == "scripted-model"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TEXTS = st.text(max_size=30) | JSON
BODIES = st.dictionaries(st.text(max_size=12), JSON, max_size=3) | st.fixed_dictionaries(
    {"message": TEXTS},
    optional={
        "session_id": TEXTS,
        "context": st.dictionaries(st.sampled_from(["currentFile", "selection", "projectRoot", "x"]), TEXTS) | JSON,
        "options": st.dictionaries(st.sampled_from([*ChatOptions.model_fields, "x"]), TEXTS) | JSON,
    },
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES, after=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20))
def test_whatever_is_sent_has_an_answer_that_the_document_names(
    served: ServedChat, chat: Chat, body: dict[str, Any], after: str
) -> None:
    sending, following, updating = chat_operations.OPERATIONS
    path = f"/sessions/{chat.session_id}/context"
    session_ids = [item.session_id for item in chat.service.sessions.list()]
    sent = served.send(body)
    assert sent.status in {200, *sending.statuses}
    if sent.status != 200:
        assert [item.session_id for item in chat.service.sessions.list()] == session_ids
    assert served.ask("PUT", path, json=body).status in {200, *updating.statuses}
    assert served.follow(session_of(sent) if sent.status == 200 else chat.session_id, after).status in {
        200,
        204,
        *following.statuses,
    }
