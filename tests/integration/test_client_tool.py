from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.client import ClientMessage
from graph.event import ClientCall, ToolFinished, ToolStarted, TurnFinished
from tests.fake.body import content_of, faults, roles
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import MakeSettings, OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by, tool
from tests.fake.store import leave_behind
from tests.fake.waiting_turn import FIRST, LOOK, SECOND, answer, refusal, required, resume, waiting

CLOCK = ScriptedCall("get_current_time", "{}", "call-clock")
ORPHANS = [
    pytest.param("call-9", id="another id"),
    pytest.param("", id="no id"),
    pytest.param("\x00\ud800", id="an id that is no text"),
    pytest.param("call-clock", id="an id of ours"),
]


def test_a_call_of_a_program_s_tool_ends_the_run_and_its_answer_goes_on_with_the_turn(
    chat: Chat, server: FakeOpenAI
) -> None:
    asked = waiting(chat, server)
    [call] = asked.calls
    assert (asked.turn, asked.text, call.id, call.name) == (1, "보겠습니다.", "call-1", "look")
    assert json.loads(call.arguments) == {"path": "a.py", "lines": {"to": 9, "from": 1}}
    assert not chat.view.is_running
    assert chat.service.turns.live(chat.session_id) is None
    server.script(text("인사를 찍습니다."))
    events = resume(chat, answer("call-1"))
    assert names(events) == ["TurnStarted", "TokenDelta", "TurnFinished"]
    body = server.bodies("chat")[-1]
    assert roles(body) == ["system", "user", "assistant", "tool"]
    assert content_of(body["messages"][-1]) == "print('hello')"
    assert faults(body["messages"]) == []
    turn = chat.last_turn
    assert (turn.number, turn.attempt, turn.status) == (1, 1, "finished")
    assert turn.answer_text == "보겠습니다.\n\n인사를 찍습니다."
    assert [(step.call_id, step.result, step.status) for step in turn.steps] == [("call-1", "print('hello')", "done")]


def test_a_waiting_turn_is_no_running_one_and_is_shown_as_what_it_is(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server)
    turn = chat.last_turn
    assert (turn.status, turn.answer_text) == ("requires_action", "보겠습니다.")
    assert [(step.name, step.status) for step in turn.steps] == [("look", "running")]
    assert chat.rows("SELECT status, finished_at IS NULL FROM turn") == [("requires_action", 0)]
    assert chat.rows("SELECT count(*) FROM lease WHERE expires_at IS NOT NULL") == [(0,)]


def test_a_server_with_one_place_answers_others_while_a_turn_waits(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1)
    waiting(chat, server)
    assert isinstance(Chat(chat.service).say(question(2))[-1], TurnFinished)
    assert isinstance(resume(chat, answer("call-1"))[-1], TurnFinished)


def test_of_a_mixed_round_ours_are_run_and_the_program_gets_its_own(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(CLOCK, FIRST, answer="보겠습니다."))
    events = chat.say(question(1), options=LOOK)
    asked = required(events)
    assert [call.id for call in asked.calls] == ["call-1"]
    assert [event.call_id for event in events if isinstance(event, ToolStarted | ToolFinished)] == ["call-clock"] * 2
    assert [step.status for step in chat.last_turn.steps] == ["done", "running"]
    assert isinstance(resume(chat, answer("call-1"))[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert roles(body) == ["system", "user", "assistant", "tool", "tool"]
    assert faults(body["messages"]) == []


def test_answers_may_come_in_any_order(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server, FIRST, SECOND)
    resume(chat, answer("call-2", "둘"), answer("call-1", "하나"))
    said = server.bodies("chat")[-1]["messages"][-2:]
    assert [(message["tool_call_id"], message["content"]) for message in said] == [
        ("call-1", "하나"),
        ("call-2", "둘"),
    ]


def test_a_missing_answer_is_named_and_changes_nothing(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server, FIRST, SECOND)
    before = chat.rows("SELECT * FROM message"), chat.rows("SELECT * FROM turn")
    assert refusal(chat, answer("call-2")) == ("unanswered_call", "call-1")
    assert (chat.rows("SELECT * FROM message"), chat.rows("SELECT * FROM turn")) == before
    assert isinstance(resume(chat, answer("call-1"), answer("call-2"))[-1], TurnFinished)


@pytest.mark.parametrize("call_id", ORPHANS)
def test_an_answer_to_no_call_of_the_program_is_refused(chat: Chat, server: FakeOpenAI, call_id: str) -> None:
    server.script(tools(CLOCK, FIRST))
    required(chat.say(question(1), options=LOOK))
    assert refusal(chat, answer("call-1"), answer(call_id))[0] == "unknown_call"
    assert refusal(chat)[0] == "unknown_call"
    assert chat.last_turn.status == "requires_action"


def test_calls_are_compared_by_what_their_arguments_say(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server)

    def copy(arguments: str) -> ClientMessage:
        return ClientMessage("assistant", "보겠습니다.", calls=(ClientCall("call-1", "look", arguments),))

    for other in ('{"path": "b.py"}', "no JSON", "[" * 100_000, '{"path": NaN}'):
        assert refusal(chat, copy(other), answer("call-1")) == ("unknown_call", "call-1")
    same = json.dumps({"lines": {"from": 1, "to": 9}, "path": "a.py"}, separators=(",", ":"))
    assert isinstance(resume(chat, copy(same), answer("call-1"))[-1], TurnFinished)


def test_an_answer_after_the_turn_has_ended_is_refused(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server)
    resume(chat, answer("call-1"))
    assert refusal(chat, answer("call-1")) == ("unknown_call", "call-1")


def test_several_rounds_are_one_turn_and_ours_alone_count_towards_the_limit(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(tool_rounds=1)
    server.script(*(tools(ScriptedCall("look", "{}", f"call-{number}")) for number in range(1, 6)), text("끝"))
    required(chat.say(question(1), options=LOOK))
    for number in range(1, 5):
        required(resume(chat, answer(f"call-{number}")))
    assert isinstance(resume(chat, answer("call-5"))[-1], TurnFinished)
    assert all("tool_choice" not in body for body in server.bodies("chat"))
    assert len(chat.last_turn.steps) == 5
    assert chat.rows("SELECT number, attempt, status FROM turn") == [(1, 1, "finished")]


def test_arguments_that_can_t_be_read_are_answered_here(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("look", '{"path": ', "call-1")), text("다시 보겠습니다."))
    events = chat.say(question(1), options=LOOK)
    assert isinstance(events[-1], TurnFinished)
    assert [event.is_error for event in events if isinstance(event, ToolFinished)] == [True]


def test_a_tool_that_the_program_names_as_we_do_is_the_program_s(chat: Chat, server: FakeOpenAI) -> None:
    options = asked_by(tools=(tool("recall"),))
    server.script(tools(ScriptedCall("recall", '{"query": "예산"}', "call-1")))
    events = chat.say(question(1), options=options)
    assert [call.name for call in required(events).calls] == ["recall"]
    assert not any(isinstance(event, ToolStarted) for event in events)
    chat.service.turns.resume(chat.session_id, [answer("call-1", "예산은 120만 원")], options=options)
    assert isinstance(chat.events()[-1], TurnFinished)


def test_a_resumed_turn_shows_what_came_before(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server)
    server.script(hang("아직 "))
    chat.service.turns.resume(chat.session_id, [answer("call-1")], options=LOOK)
    chat.wait_until_live(lambda live: "아직" in live.text)
    live = chat.service.turns.live(chat.session_id)
    assert live is not None
    assert live.text.startswith("보겠습니다.\n\n아직")
    assert [step.status for step in live.steps] == ["done"]
    chat.service.turns.stop(chat.session_id)
    chat.events()
    assert chat.last_turn.status == "stopped"


def test_each_call_of_a_resumed_turn_has_what_stands_in_front_and_the_same_beginning(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    chat.say(question(1), options=asked_by(lead=(ClientMessage("user", "an older file"),)))
    server.script(tools(FIRST), tools(SECOND))
    options = asked_by(tools=(tool("look"),), system="Be brief.", lead=(ClientMessage("user", "the file"),))
    required(chat.say(question(2), options=options))
    again = asked_by(tools=(tool("look"),), system="Be brief.")
    chat.service.turns.resume(chat.session_id, [answer("call-1")], options=again)
    required(chat.events())
    chat.service.turns.resume(chat.session_id, [answer("call-2")], options=again)
    chat.events()
    first, second, third = server.bodies("chat")[1:]
    assert "the file" in str(first["messages"][-1])
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert third["messages"][: len(second["messages"])] == second["messages"]


def test_another_process_goes_on_with_a_turn_after_a_kill_between_two_rounds(
    tmp_path: Path, make_settings: MakeSettings, open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    waiting(chat, server)
    leave_behind(make_settings(), tmp_path / "dead")
    (tmp_path / "dead" / "checkpoint.db").unlink()
    with chat_opener(settings_maker(tmp_path / "dead", server.url)) as open_dead:
        other = open_dead(chat.session_id)
        assert other.last_turn.status == "requires_action"
        assert isinstance(resume(other, answer("call-1"))[-1], TurnFinished)
        assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_the_same_answers_once_more_go_on_with_a_turn_whose_server_died(
    tmp_path: Path, make_settings: MakeSettings, open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    waiting(chat, server)
    server.script(hang("아직 "))
    chat.service.turns.resume(chat.session_id, [answer("call-1")], options=LOOK)
    chat.wait_until_live(lambda live: "아직" in live.text)
    leave_behind(make_settings(), tmp_path / "dead")
    with chat_opener(settings_maker(tmp_path / "dead", server.url)) as open_dead:
        other = open_dead(chat.session_id)
        assert refusal(other, answer("call-1", "another result")) == ("unknown_call", "call-1")
        assert isinstance(resume(other, answer("call-1"))[-1], TurnFinished)
        assert faults(server.bodies("chat")[-1]["messages"]) == []
        assert other.rows("SELECT count(*) FROM message WHERE role = 'tool'") == [(1,)]
        assert other.last_turn.status == "finished"


def test_calls_of_one_answer_that_share_an_id_get_ids_of_their_own(chat: Chat, server: FakeOpenAI) -> None:
    same = [ScriptedCall("look", json.dumps({"path": name}), "call-0") for name in ("a.py", "b.py")]
    asked = waiting(chat, server, *same)
    ids = [call.id for call in asked.calls]
    assert [json.loads(call.arguments) for call in asked.calls] == [{"path": "a.py"}, {"path": "b.py"}]
    assert len({*ids}) == 2
    assert isinstance(resume(chat, *map(answer, ids))[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert [message["tool_call_id"] for message in body["messages"][-2:]] == ids
    assert faults(body["messages"]) == []


def test_a_copy_of_a_call_nested_beyond_reason_is_another_call(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server)
    deep = ClientMessage("assistant", "", calls=(ClientCall("call-1", "look", "[" * 900 + "]" * 900),))
    assert refusal(chat, deep, answer("call-1")) == ("unknown_call", "call-1")
