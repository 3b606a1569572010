"""Turns that wait for the tools of a program: how they go on, and what closes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graph.value.client import ClientMessage
from graph.value.event import ClientCall, Event, ToolFinished, ToolStarted, TurnFailed, TurnFinished
from tests.fake.body import content_of, faults, roles, tool_names
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import MakeSettings, OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by, tool
from tests.fake.store import leave_behind
from tests.fake.waiting_turn import FIRST, LOOK, SECOND, answer, refusal, required, resume, waiting

CLOCK = ScriptedCall("get_current_time", "{}", "call-clock")


def statuses(chat: Chat) -> list[str]:
    """As the table has them."""
    query = "SELECT status FROM turn WHERE session_id = ? ORDER BY number"
    return [status for (status,) in chat.rows(query, chat.session_id)]


def rows_of(chat: Chat) -> list[object]:
    queries = ("SELECT * FROM message WHERE session_id = ?", "SELECT * FROM turn WHERE session_id = ?")
    return [chat.rows(query, chat.session_id) for query in queries]


def test_a_call_of_a_program_s_tool_ends_the_run_and_its_answer_goes_on_with_the_turn(
    chat: Chat, server: FakeOpenAI
) -> None:
    asked = waiting(chat, server)
    [call] = asked.calls
    assert (asked.turn, asked.text, call.name) == (1, "보겠습니다.", "look")
    assert json.loads(call.arguments) == {"path": "a.py", "lines": {"to": 9, "from": 1}}
    assert not chat.view.is_running
    assert chat.service.turns.live(chat.session_id) is None
    turn = chat.last_turn
    assert (turn.status, turn.answer_text) == ("requires_action", "보겠습니다.")
    assert [(step.name, step.status) for step in turn.steps] == [("look", "running")]
    assert statuses(chat) == ["requires_action"]
    unfinished = "SELECT count(*) FROM turn WHERE finished_at IS NULL AND session_id = ?"
    assert chat.rows(unfinished, chat.session_id) == [(0,)]
    held = "SELECT count(*) FROM lease WHERE expires_at IS NOT NULL AND session_id = ?"
    assert chat.rows(held, chat.session_id) == [(0,)]
    server.script(text("인사를 찍습니다."))
    events = resume(chat, answer(call.id))
    assert names(events) == ["TurnStarted", "TokenDelta", "TurnFinished"]
    body = server.bodies("chat")[-1]
    assert roles(body) == ["system", "user", "assistant", "tool"]
    assert content_of(body["messages"][-1]) == "print('hello')"
    assert faults(body["messages"]) == []
    turn = chat.last_turn
    assert (turn.number, turn.attempt, turn.status) == (1, 1, "finished")
    assert turn.answer_text == "보겠습니다.\n\n인사를 찍습니다."
    assert [(step.call_id, step.result, step.status) for step in turn.steps] == [("call-1", "print('hello')", "done")]
    assert refusal(chat, answer("call-1")) == ("unknown_call", "call-1")


def test_of_a_mixed_round_ours_are_run_and_a_missing_answer_of_the_program_is_refused(
    chat: Chat, server: FakeOpenAI
) -> None:
    server.script(tools(CLOCK, FIRST, SECOND, answer="보겠습니다."))
    events = chat.say(question(1), options=LOOK)
    one, two = (call.id for call in required(events).calls)
    assert [event.call_id for event in events if isinstance(event, ToolStarted | ToolFinished)] == ["call-clock"] * 2
    assert [step.status for step in chat.last_turn.steps] == ["done", "running", "running"]
    before = rows_of(chat)
    assert refusal(chat, answer(two)) == ("unanswered_call", one)
    for call_id in ("call-9", "", "\x00\ud800"):
        assert refusal(chat, answer(call_id))[0] == "unknown_call"
    assert refusal(chat)[0] == "unknown_call"
    assert rows_of(chat) == before
    assert isinstance(resume(chat, answer(two, "둘"), answer(one, "하나"))[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert roles(body) == ["system", "user", "assistant", "tool", "tool", "tool"]
    said = [(message["tool_call_id"], message["content"]) for message in body["messages"][-2:]]
    assert said == [("call-1", "하나"), ("call-2", "둘")]
    assert faults(body["messages"]) == []


def test_calls_are_compared_by_what_their_arguments_say_and_a_changed_one_is_another(
    chat: Chat, server: FakeOpenAI
) -> None:
    def copy(arguments: str) -> ClientMessage:
        return ClientMessage("assistant", "보겠습니다.", calls=(ClientCall("call-1", "look", arguments),))

    same = json.dumps({"lines": {"from": 1, "to": 9}, "path": "a.py"}, separators=(",", ":"))
    others = ('{"path": "b.py"}', "no JSON", "[" * 100_000, '{"path": NaN}', "[" * 900 + "]" * 900)
    for number, (arguments, is_changed) in enumerate([(same, False), *((other, True) for other in others)]):
        session = Chat(chat.service)
        waiting(session, server)
        assert isinstance(resume(session, copy(arguments), answer("call-1", f"{number}"))[-1], TurnFinished)
        messages = server.bodies("chat")[-1]["messages"]
        told = [content_of(message) for message in messages if message["role"] == "tool"]
        assert told == [*(["(결과가 없습니다.)"] if is_changed else []), f"{number}"]
        assert faults(messages) == []


def test_several_rounds_are_one_turn_and_hold_no_place_and_ours_alone_count_towards_the_limit(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(tool_rounds=1, concurrent_turns=1)
    server.script(*(tools(ScriptedCall("look", "{}", f"call-{number}")) for number in range(1, 4)))
    required(chat.say(question(1), options=LOOK))
    for number in range(1, 3):
        required(resume(chat, answer(f"call-{number}")))
    assert isinstance(Chat(chat.service).say(question(2))[-1], TurnFinished)
    assert isinstance(resume(chat, answer("call-3"))[-1], TurnFinished)
    assert all("tool_choice" not in body for body in server.bodies("chat"))
    assert len(chat.last_turn.steps) == 3
    assert (chat.last_turn.number, chat.last_turn.attempt, statuses(chat)) == (1, 1, ["finished"])


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
    chat: Chat, server: FakeOpenAI
) -> None:
    ok = ClientMessage("assistant", "Ok.")
    chat.say(question(1), options=asked_by(preamble=(ClientMessage("user", "an older file"), ok)))
    server.script(tools(FIRST), tools(SECOND))
    options = asked_by(tools=(tool("look"),), system="Be brief.", preamble=(ClientMessage("user", "the file"), ok))
    required(chat.say(question(2), options=options))
    again = asked_by(tools=(tool("look"),), system="Be brief.")
    chat.service.turns.resume(chat.session_id, [answer("call-1")], options=again)
    required(chat.events())
    chat.service.turns.resume(chat.session_id, [answer("call-2")], options=again)
    chat.events()
    first, second, third = server.bodies("chat")[1:]
    assert [content_of(message) for message in first["messages"][-3:-1]] == ["the file", "Ok."]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert third["messages"][: len(second["messages"])] == second["messages"]


@pytest.mark.parametrize("dies", ["between two rounds", "while it answers"])
def test_another_process_goes_on_with_a_turn_whose_server_died(
    tmp_path: Path, make_settings: MakeSettings, open_chat: OpenChat, server: FakeOpenAI, dies: str
) -> None:
    chat = open_chat()
    waiting(chat, server)
    is_answering = dies == "while it answers"
    if is_answering:
        server.script(hang("아직 "))
        chat.service.turns.resume(chat.session_id, [answer("call-1")], options=LOOK)
        chat.wait_until_live(lambda live: "아직" in live.text)
    leave_behind(make_settings(), tmp_path / "dead")
    if not is_answering:
        (tmp_path / "dead" / "checkpoint.db").unlink()
    with chat_opener(settings_maker(tmp_path / "dead", server.url)) as open_dead:
        other = open_dead(chat.session_id)
        if not is_answering:
            assert other.last_turn.status == "requires_action"
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
    assert not {message["tool_call_id"] for message in body["messages"][-2:]} & {*ids}
    assert faults(body["messages"]) == []


def test_a_new_message_closes_what_waits(chat: Chat, server: FakeOpenAI) -> None:
    for number, options in ((1, None), (3, LOOK)):
        server.script(tools(CLOCK, FIRST))
        required(chat.say(question(number), options=LOOK))
        assert isinstance(chat.say(question(number + 1), options=options)[-1], TurnFinished)
        assert faults(server.bodies("chat")[-1]["messages"]) == []
        assert refusal(chat, answer("call-1"))[0] == "unknown_call"
        chat.wait_for_folds()
    assert [turn.status for turn in chat.turns] == ["stopped", "finished"] * 2


def test_stop_and_a_reset_close_what_waits_and_it_can_be_deleted(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server)
    chat.service.turns.stop(chat.session_id)
    assert statuses(chat) == ["stopped"]
    assert chat.last_turn.answer_text == "보겠습니다."
    server.script(tools(FIRST))
    required(chat.say(question(2), options=LOOK))
    chat.service.folds.reset(chat.session_id)
    assert chat.last_turn.status == "stopped"
    chat.say(question(3))
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    server.script(tools(FIRST))
    required(chat.say(question(4), options=LOOK))
    chat.service.sessions.delete(chat.session_id)
    assert chat.rows("SELECT count(*) FROM message WHERE session_id = ?", chat.session_id) == [(0,)]


@pytest.mark.parametrize("again", [Chat.retry, Chat.regenerate])
def test_a_waiting_turn_can_be_run_again_from_its_question(
    chat: Chat, server: FakeOpenAI, again: Callable[[Chat], list[Event]]
) -> None:
    waiting(chat, server)
    assert isinstance(again(chat)[-1], TurnFinished)
    assert roles(server.bodies("chat")[-1]) == ["system", "user"]
    assert (chat.last_turn.attempt, chat.last_turn.status, chat.last_turn.steps) == (2, "finished", ())


def test_a_compaction_leaves_what_waits_open(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(preserve_recent_messages=2)
    chat.ask(1, 5)
    server.script(tools(FIRST))
    required(chat.say(question(6), options=LOOK))
    record = chat.service.folds.compact(chat.session_id)
    assert record.turns[-1] < 6
    assert isinstance(resume(chat, answer("call-1"))[-1], TurnFinished)
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    assert chat.last_turn.status == "finished"


def test_no_fold_counts_a_waiting_turn_as_complete(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    server.script(tools(FIRST))
    required(chat.say(question(3), options=LOOK))
    chat.wait_for_folds()
    assert chat.service.folds.statistics(chat.session_id).record_count == 0
    assert chat.service.folds.next_fold(chat.session_id, strategy="").turns_left == 1
    resume(chat, answer("call-1"))
    chat.wait_for_folds()
    assert chat.rows("SELECT turns FROM record WHERE session_id = ?", chat.session_id) == [("[1,2,3]",)]


def test_a_failed_call_behind_an_answer_closes_the_turn_and_it_can_be_tried_again(
    chat: Chat, server: FakeOpenAI
) -> None:
    waiting(chat, server)
    server.script(failure(400))
    resume(chat, answer("call-1"))
    assert chat.last_turn.status == "failed"
    assert isinstance(chat.retry()[-1], TurnFinished)


def test_tools_of_several_programs_each_turn_ours_of_their_name_off_for_good(chat: Chat, server: FakeOpenAI) -> None:
    for name in ("web_search", "recall", "web_search", "look"):
        chat.say("지금은?", options=asked_by(tools=(tool(name),)))
    ((off,),) = chat.rows("SELECT tools_off FROM session WHERE session_id = ?", chat.session_id)
    assert json.loads(off) == ["web_search", "recall"]
    chat.say("이 대화는?")
    assert not {"web_search", "recall"} & {*tool_names(server.bodies("chat")[-1])}
    assert "get_current_time" in tool_names(server.bodies("chat")[-1])


def test_what_a_program_s_tools_return_stays_whole_and_is_refused_if_it_fills_the_window(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(model_window_tokens=8_192)
    chat.say(question(1))
    lead = ("The repo map: src, tests, docs.\n" * 60).strip()
    options = asked_by(tools=(tool("look"),), preamble=(ClientMessage("user", lead),))
    server.script(*(tools(ScriptedCall("look", "{}", f"call-{number}")) for number in range(1, 4)))
    required(chat.say(question(2), options=options))
    for number, count in ((1, 100), (2, 180)):
        read = "def main() -> None: print('hello')\n" * count
        required(resume(chat, answer(f"call-{number}", read)))
        sent = server.bodies("chat")[-1]["messages"]
        assert content_of(sent[-1]) == read
        assert lead in map(content_of, sent)
    events = resume(chat, answer("call-3", "def main() -> None: print('hello')\n" * 900))
    assert isinstance(events[-1], TurnFailed)
    assert (events[-1].code, events[-1].detail.endswith(" ≥ 8192")) == ("context_length", True)
