from __future__ import annotations

import pytest

from graph.client import ClientUsage
from graph.error import InputError
from graph.event import ActionRequired, ClientCall, Folded
from tests.fake.body import faults
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import CACHED_USAGE, ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.resending import Program, Reading, assistant, begin, counts, go, result
from tests.fake.store import MovableClock

LOOK = tool("look")


def test_a_program_runs_its_own_tools(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(chat.service, options={"tools": (LOOK,)})
    calls = ScriptedCall("look", '{"at": "grass"}', "call-1"), ScriptedCall("look", '{"at": "sky"}', "call-2")
    server.script(tools(*calls, answer="Let me look.", usage=CACHED_USAGE))
    first = program.ask(question(1))
    assert isinstance(first.last, ActionRequired)
    assert [call.id for call in first.calls] == ["call-1", "call-2"]
    assert first.end.finish_reason == "tool_calls"
    assert first.end.usage == ClientUsage(100, 20, 64)
    program.messages += [result("call-2", "blue"), result("call-1", "green")]
    second = program.take(program.begin())
    assert (second.session_id, second.turn) == (first.session_id, 1)
    assert second.completion.id != first.completion.id
    assert second.end.finish_reason == "stop"
    assert second.end.usage is not None
    assert second.end.usage.cached_tokens != 64
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    after = program.ask(question(2))
    assert (after.session_id, after.turn) == (first.session_id, 2)
    assert counts(chat)[:2] == [1, 2]


@pytest.mark.parametrize("minutes", [-60, 0, 1])
def test_no_clock_tells_to_which_response_words_and_tokens_belong(
    open_chat: OpenChat, server: FakeOpenAI, minutes: int
) -> None:
    clock = MovableClock()
    chat = open_chat(clock=clock)
    program = Program(chat.service, options={"tools": (LOOK,)})
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look.", usage=CACHED_USAGE))
    first = program.ask(question(1), idempotency_key="first")
    clock.move(60 * minutes)
    server.script(text("It is green.", usage=CACHED_USAGE))
    program.messages.append(result("call-1", "green"))
    second = program.take(program.begin(idempotency_key="second"))
    assert [reading.end.usage for reading in (first, second)] == [ClientUsage(100, 20, 64)] * 2
    assert (first.end.finish_reason, second.end.finish_reason) == ("tool_calls", "stop")
    again = program.request(*program.messages[:1], idempotency_key="first")
    assert Reading(chat.service.completions.begin(again)).text == "Let me look."
    again = program.request(*program.messages[:-1], idempotency_key="second")
    assert Reading(chat.service.completions.begin(again)).text == "It is green."


def test_results_that_are_missing_or_unknown_are_named(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(chat.service, options={"tools": (LOOK,)})
    calls = ScriptedCall("look", "{}", "call-1"), ScriptedCall("look", "{}", "call-2")
    server.script(tools(*calls, answer="Let me look."))
    program.ask(question(1))
    before, kept = counts(chat), list(program.messages)
    for results, named in ((["call-1"], "call-2"), (["call-1", "call-2", "call-3"], "call-3")):
        program.messages = [*kept, *(result(call, "grass") for call in results)]
        with pytest.raises(InputError, match=named):
            program.begin()
        assert counts(chat) == before


def test_the_programs_copy_of_its_calls_is_compared_by_what_it_says(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(chat.service, options={"tools": (LOOK,)})
    server.script(tools(ScriptedCall("look", '{"at": "grass", "n": 1}', "call-1"), answer="Let me look."))
    first = program.ask(question(1))
    before = counts(chat)
    program.messages[1:] = [assistant("", ClientCall("call-1", "look", '{"at": "sky"}')), result("call-1", "green")]
    with pytest.raises(InputError, match="call-1"):
        program.begin()
    assert counts(chat) == before
    program.messages[1] = assistant("", ClientCall("call-1", "look", '{"n":1,"at":"grass"}'))
    second = program.take(program.begin())
    assert (second.session_id, second.turn) == (first.session_id, 1)


def test_answers_alone_go_on_with_the_turn_of_a_named_session(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(chat.service, options={"tools": (LOOK,)})
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look."))
    first = program.ask(question(1))
    program.messages = [result("call-1", "green")]
    second = program.take(program.begin(session=first.session_id))
    assert (second.session_id, second.turn) == (first.session_id, 1)


def test_a_question_in_place_of_results_closes_the_open_turn(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(chat.service, options={"tools": (LOOK,)})
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look."))
    first = program.ask(question(1))
    after = program.ask(question(2))
    assert (after.session_id, after.turn) == (first.session_id, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_the_text_that_was_sent_is_recognised_also_around_our_own_tools(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1"), answer="One moment. "))
    program = begin(chat)
    first = program.ask(question(1))
    assert first.text.startswith("One moment. \n\n")
    assert len(server.bodies("chat")) == 2
    second = program.ask(question(2))
    assert (second.session_id, second.turn, second.matched) == (first.session_id, 2, "history")


def test_a_break_parts_what_stands_around_our_own_tools_in_a_stored_answer_too(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1"), answer="One moment."))
    first = begin(chat).ask(question(1), idempotency_key="once")
    again = begin(chat).ask(question(1), idempotency_key="once")
    assert (again.matched, again.text) == ("retry", first.text)
    assert first.text.startswith("One moment.\n\n")


def test_the_end_tells_usage_and_figures(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    go(program, 1, 3)
    server.script(text("A whole answer.", usage=CACHED_USAGE))
    reading = program.ask(question(4))
    assert any(isinstance(event, Folded) for event in reading.events)
    end = reading.end
    assert (end.finish_reason, end.usage) == ("stop", ClientUsage(100, 20, 64))
    figures = end.figures
    assert (figures["session"], figures["turn"], figures["matched"]) == (reading.session_id, 4, "history")
    assert (figures["records"], figures["folded_turns"]) == (1, 3)
    assert figures["sent_tokens_estimate"] > 0
    assert figures["fold_tokens"] > 0


def test_an_answer_without_reported_usage_has_none(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("A whole answer.", usage=None, finish_reason="length"))
    end = begin(chat).ask(question(1)).end
    assert (end.usage, end.finish_reason) == (None, "length")
