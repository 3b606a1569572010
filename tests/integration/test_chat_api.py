"""What a program sends to /chat, over a real service: sessions, options, context, tools, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.service import ChatService
from graph.value.event import TurnFinished
from prompt.system.framing import VOLATILE_HEADING
from tests.fake.body import content_of, system_prompt, tool_names
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, chunk, failure, hang, raw, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by, tool
from tests.fake.resending import Program, result
from tests.fake.rooted import Rooted
from tests.fake.served_chat import ServedChat, essence_of, text_of
from tests.fake.served_programs import NARROW, STRANGER

ROOT = Path(__file__).parents[2]
IN_FILE = {"currentFile": "src/app.py", "selection": "def main():\n    return 1"}
BLOCK = f"{VOLATILE_HEADING}\ncurrentFile: src/app.py\nselection:\n    def main():\n        return 1"


@pytest.fixture(scope="module")
def module_service(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatService]:
    make_settings = settings_maker(tmp_path_factory.mktemp("module") / "data", endpoint.url)
    with chat_opener(make_settings) as open_chat:
        yield open_chat(model_attempts=2).service


@pytest.fixture(scope="module")
def served(module_service: ChatService) -> Iterator[ServedChat]:
    with ServedChat(module_service) as opened:
        yield opened


def session_ids(chat: Chat) -> set[str]:
    return {item.session_id for item in chat.service.sessions.list()}


def last_words(server: FakeOpenAI) -> str:
    return content_of(server.bodies("chat")[-1]["messages"][-1])


def test_a_chat_of_a_program_is_folded_as_any_other_and_has_its_name(
    served: ServedChat, server: FakeOpenAI, chat: Chat
) -> None:
    here = Chat(chat.service, served.send({"message": question(1)}).session_id)
    for number in range(2, 6):
        here.wait_for_folds()
        answer = served.send({"message": question(number), "session_id": here.session_id})
        assert answer.headers["x-turnfold-turn"] == str(number)
    assert here.covered == [(1, 2, 3)]
    assert "[1-3턴]" in system_prompt(server.bodies("chat")[-1])
    assert answer.received[-3].value["figures"]["folded_turns"] == 3
    assert (here.view.client, here.last_turn.client) == ("editor", "editor")


def test_what_the_options_say_holds_for_the_session(served: ServedChat, chat: Chat) -> None:
    options = {"compression_rate": 0.5, "strategy": "window", "model": "turnfold/scripted-model", "has_memory": False}
    options["fold_when"] = "pays"
    session_id = served.send({"message": question(1), "options": options}).session_id
    view = chat.service.sessions.get(session_id)
    assert (view.compression_rate, view.strategy, view.model) == (0.5, "window", "scripted-model")
    assert view.fold_when == "pays"
    assert not view.has_memory
    served.send({"message": question(2), "session_id": session_id, "options": {"model": None}})
    assert chat.service.sessions.get(session_id).model == "scripted-model"


def test_the_same_message_once_more_makes_no_second_turn(served: ServedChat, server: FakeOpenAI) -> None:
    body = {"message": question(1), "options": {"message_id": "message-1"}}
    first, second = served.send(body), served.send(body)
    assert first.session_id == second.session_id
    assert essence_of(first.received) == essence_of(second.received)
    assert len(server.bodies("chat")) == 1
    assert served.send(body, token=STRANGER).session_id != first.session_id


def test_the_context_goes_to_the_model_and_can_be_updated_alone(served: ServedChat, server: FakeOpenAI) -> None:
    session_id = served.send({"message": question(1), "context": IN_FILE}).session_id
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
        told = {"metadata": {"conversationId": answer.session_id, "rules": "not_agreed"}}
        assert answer.received[0].data == json.dumps(told, separators=(",", ":"))
        assert "네 칸" not in str(server.bodies("chat")[-1])
        rooted.agree(chat)
        answer = served.send({**body, "session_id": answer.session_id})
        assert answer.received[0].value == {"metadata": {"conversationId": answer.session_id}}
        assert "네 칸" in str(server.bodies("chat")[-1])
        rooted.write("AGENTS.md", "들여쓰기는 두 칸으로 합니다.")
        answer = served.send({**body, "session_id": answer.session_id})
        assert answer.received[0].value["metadata"]["rules"] == "changed"
    assert chat.service.sessions.get(answer.session_id).project_root == rooted.root


def test_a_program_has_only_the_tools_of_its_token_also_if_it_has_a_turn_answered_again(
    served: ServedChat, chat: Chat, server: FakeOpenAI
) -> None:
    server.script(failure(401))
    chat.say(question(1))
    assert len(tool_names(server.bodies("chat")[-1])) > 1
    for path in ("retry", "regenerate"):
        assert served.ask("POST", f"/sessions/{chat.session_id}/{path}", token=NARROW).status == 202
        chat.events()
        assert tool_names(server.bodies("chat")[-1]) == ["recall"]
        assert chat.last_turn.client == "narrow"
    served.send({"message": question(2)}, token=NARROW)
    assert tool_names(server.bodies("chat")[-1]) == ["recall"]


def test_page_chat_and_completions_go_on_with_one_session(served: ServedChat, server: FakeOpenAI, chat: Chat) -> None:
    chat.say(question(1))
    served.send({"message": question(2), "session_id": chat.session_id})
    program = Program(chat.service, fields={"session": chat.session_id}, options={"system": "늘 표로 답하세요."})
    program.ask(question(3))
    assert served.send({"message": question(4), "session_id": chat.session_id}).status == 200
    assert "늘 표로 답하세요." in system_prompt(server.bodies("chat")[-1])
    assert [turn.user_text for turn in chat.turns] == [question(number) for number in range(1, 5)]
    assert [turn.client for turn in chat.turns] == ["", "editor", "editor", "editor"]
    (item,) = [item for item in chat.service.sessions.list() if item.session_id == chat.session_id]
    assert item.client == ""
    assert isinstance(chat.events()[-1], TurnFinished)


def test_a_turn_that_waits_for_a_program_is_told_and_goes_on_under_places_of_its_own(
    served: ServedChat, server: FakeOpenAI, chat: Chat
) -> None:
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="보겠습니다."), text("보았습니다."))
    chat.say("무엇이 보이나요?", options=asked_by(tools=(tool("look"),)))
    waiting = served.follow(chat.session_id)
    assert waiting.received[-3].name == "action_required"
    assert [call["name"] for call in waiting.received[-3].value["calls"]] == ["look"]
    assert waiting.received[-2].value["choices"][0]["finish_reason"] == "tool_calls"
    assert served.follow(chat.session_id, waiting.received[-2].id).status == 204
    results = [result(step.call_id, "고양이") for step in chat.last_turn.steps]
    chat.service.turns.resume(chat.session_id, results, options=asked_by(tools=(tool("look"),)))
    told = served.follow(chat.session_id, waiting.received[-4].id).received
    assert told[0].name == "snapshot"
    assert text_of(told) == "보겠습니다.\n\n보았습니다."
    assert not {each.id for each in told} & {each.id for each in waiting.received if each.id}


def test_a_model_that_breaks_off_is_retried_and_the_client_told_what_stays(
    served: ServedChat, server: FakeOpenAI
) -> None:
    lost = raw(chunk({"content": "버려질 말 "}), '{"error": {"message": "overloaded", "code": 503}}')
    server.script(lost, text("새 답변"))
    told = served.send({"message": question(1)}).received
    assert [each.value for each in told if each.name == "answer_restarted"] == [{"text": ""}]
    assert text_of(told) == "새 답변"


@pytest.mark.slow
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
            told = served.follow(chat.session_id, "1.1.3").received
            assert (running.received[0].name, running.received[0].value["text"]) == ("snapshot", "부분 답변 ")
            ended = told[-4:]
            assert [each.name for each in ended] == ["snapshot", "turn_failed", "", ""]
            assert (ended[0].value["status"], ended[0].value["text"]) == ("failed", "부분 답변")
            assert ended[1].value["code"] == "interrupted"
            assert served.follow(chat.session_id, ended[2].id).status == 204


def test_a_wrong_body_is_refused_and_nothing_is_stored(served: ServedChat, chat: Chat, tmp_path: Path) -> None:
    before = session_ids(chat)
    said = {"message": "x"}
    bodies: list[object] = [{}, [], "text", None]
    bodies += [{"message": words} for words in (3, None, "", " \n", "x" * 200_001)]
    contexts: list[object] = [[], {"selection": 3}, {"selection": "x" * 200_001}]
    bodies += [{**said, "context": context} for context in contexts]
    bodies += [{**said, "session_id": session_id} for session_id in ("", 3)]
    bodies += [{**said, "conversationId": "x"}]
    wrong_options: list[dict[str, object]] = [
        {"compression_rate": 0.9},
        {"compression_rate": "0.3"},
        {"strategy": "none such"},
        {"unknown": 1},
        {"message_id": "x" * 257},
    ]
    bodies += [{**said, "options": options} for options in wrong_options]
    for body in bodies:
        answer = served.ask("POST", "/chat", json=body)
        assert answer.status == 400, str(body)[:100]
        assert answer.json["error"]["type"] == "invalid_request_error"
    for content in (b"", b"{", b'{"message":"\xff"}', b"[" * 100_000, b'{"message":NaN}'):
        assert served.ask("POST", "/chat", content=content).code == (400, "invalid_json"), content[:100]
    # A project outside the allowed folders.
    for named in ({"context": {"projectRoot": str(tmp_path)}}, {"options": {"project_root": str(tmp_path)}}):
        assert served.send({**said, **named}).code == (400, "invalid_path")
    assert session_ids(chat) == before


def test_hostile_texts_are_said_as_they_can_be(served: ServedChat, chat: Chat) -> None:
    said = "\u202eعربي 👩‍👩‍👧 \x00 \ud800 data: [DONE]\r\n\r\nevent: x\u2028끝"
    body = json.dumps({"message": said, "context": {"selection": said, "": said}}).encode()
    answer = served.ask("POST", "/chat", content=body)
    assert answer.received[-1].data == "[DONE]"
    [turn] = Chat(chat.service, answer.session_id).turns
    assert turn.user_text == said.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
