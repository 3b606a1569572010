"""A program's own tools through completions, what an answer's end tells, and requests that are answered aside."""

from __future__ import annotations

import json

import pytest

from graph.service import ChatService
from graph.value.client import ClientUsage, CompletionEnd
from graph.value.error import InputError, ServerBusyError
from graph.value.event import ActionRequired, ClientCall, Folded, TurnFailed, TurnFinished, TurnStopped
from prompt.system.framing import NOT_RUN
from tests.fake.body import content_of, faults
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import CACHED_USAGE, ScriptedCall, close_early, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.resending import Program, Reading, assistant, counts, go, result, user
from tests.fake.store import MovableClock

LOOK = tool("look")
CLOCK = ScriptedCall("get_current_time", "{}", "call-1")


def program_of(chat: Chat, **fields: object) -> Program:
    """A program with a tool, in a new chat of an end user whom no other test has."""
    return Program(chat.service, fields={"user": chat.session_id, **fields}, options={"tools": (LOOK,)})


def test_a_program_runs_its_own_tools_and_missing_results_are_named(chat: Chat, server: FakeOpenAI) -> None:
    program = program_of(chat)
    calls = ScriptedCall("look", '{"at": "grass"}', "call-1"), ScriptedCall("look", '{"at": "sky"}', "call-2")
    server.script(tools(*calls, answer="Let me look.", usage=CACHED_USAGE))
    first = program.ask(question(1))
    assert isinstance(first.last, ActionRequired)
    one, two = (call.id for call in first.calls)
    assert not {one, two} & {"call-1", "call-2"}
    assert first.end.finish_reason == "tool_calls"
    assert first.end.usage == ClientUsage(100, 20, 64)
    before, retained = counts(chat), list(program.messages)
    program.messages = [*retained, result(one, "grass")]
    with pytest.raises(InputError, match=two):
        program.begin()
    assert counts(chat) == before
    program.messages = [*retained, result(two, "blue"), result(one, "green")]
    second = program.take(program.begin())
    assert (second.session_id, second.turn) == (first.session_id, 1)
    assert second.completion.id != first.completion.id
    assert second.end.finish_reason == "stop"
    assert second.end.usage is not None
    assert second.end.usage.cached_tokens != 64
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    after = program.ask(question(2))
    assert (after.session_id, after.turn) == (first.session_id, 2)
    # A question in place of results closes the open turn.
    server.script(tools(ScriptedCall("look", "{}", "call-4")))
    program.ask(question(3))
    assert program.ask(question(4)).turn == 4
    assert faults(server.bodies("chat")[-1]["messages"]) == []


@pytest.mark.parametrize("kept", [0, 1])
def test_a_program_that_reads_one_of_two_calls_goes_on_in_its_session(
    chat: Chat, server: FakeOpenAI, kept: int
) -> None:
    program = program_of(chat)
    calls = [ScriptedCall("look", json.dumps({"at": place}), place) for place in ("grass", "sky")]
    server.script(tools(*calls, answer="Let me look."))
    first = program.ask(question(1))
    read = first.calls[kept]
    program.messages[-1] = assistant("Let me look.", read)
    # Of its own list of calls a program has to answer all.
    program.messages.append(result(first.calls[1 - kept].id, "?"))
    with pytest.raises(InputError, match=read.id):
        program.begin()
    program.messages[-1] = result(read.id, "green")
    second = program.take(program.begin())
    assert (second.session_id, second.turn, second.end.finish_reason) == (first.session_id, 1, "stop")
    messages = server.bodies("chat")[-1]["messages"]
    assert faults(messages) == []
    assert {content_of(each) for each in messages if each["role"] == "tool"} == {"green", NOT_RUN["ko"]}
    third = program.ask(question(2))
    assert (third.session_id, third.turn, third.matched) == (first.session_id, 2, "history")


@pytest.mark.parametrize("minutes", [-60, 0, 1])
def test_no_clock_tells_to_which_response_words_and_tokens_belong(
    open_chat: OpenChat, server: FakeOpenAI, minutes: int
) -> None:
    clock = MovableClock()
    chat = open_chat(clock=clock)
    program = program_of(chat)
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look.", usage=CACHED_USAGE))
    first = program.ask(question(1), idempotency_key="first")
    clock.move(60 * minutes)
    server.script(text("It is green.", usage=CACHED_USAGE))
    program.messages.append(result(first.calls[0].id, "green"))
    second = program.take(program.begin(idempotency_key="second"))
    assert [reading.end.usage for reading in (first, second)] == [ClientUsage(100, 20, 64)] * 2
    assert (first.end.finish_reason, second.end.finish_reason) == ("tool_calls", "stop")
    again = program.request(*program.messages[:1], idempotency_key="first")
    assert Reading(chat.service.completions.begin(again)).text == "Let me look."
    again = program.request(*program.messages[:-1], idempotency_key="second")
    assert Reading(chat.service.completions.begin(again)).text == "It is green."


STRICT = {"type": "json_schema", "json_schema": {"name": "event", "strict": True, "schema": {"type": "object"}}}


@pytest.mark.parametrize(
    ("options", "are_ours_offered"),
    [
        ({"tool_choice": "required"}, False),
        ({"tool_choice": {"type": "function", "function": {"name": "look"}}}, False),
        ({"sampling": {"response_format": STRICT}}, False),
        ({"tools": (), "sampling": {"response_format": STRICT}}, False),
        ({"sampling": {"response_format": {"type": "json_object"}}}, True),
        ({"tool_choice": "auto"}, True),
        ({"tool_choice": "required", "tools": ()}, True),
        ({"tool_choice": {"type": "function", "function": {"name": "get_current_time"}}}, True),
    ],
)
def test_what_a_program_demands_is_not_answered_by_our_tools(
    chat: Chat, server: FakeOpenAI, options: dict[str, object], *, are_ours_offered: bool
) -> None:
    program = Program(chat.service, fields={"user": chat.session_id}, options={"tools": (LOOK,), **options})
    program.ask(question(1))
    body = server.bodies("chat")[-1]
    names = {each["function"]["name"] for each in body.get("tools", [])}
    assert ("get_current_time" in names) is are_ours_offered
    assert ("look" in names) is bool(options.get("tools", True))
    assert ("`recall`" in body["messages"][0]["content"]) is are_ours_offered


def test_a_demand_stands_in_each_request_that_makes_it(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(
        chat.service, fields={"user": chat.session_id}, options={"tools": (LOOK,), "tool_choice": "required"}
    )
    server.script(*(tools(ScriptedCall("look", "{}", call)) for call in ("call-1", "call-2")))
    first = program.ask(question(1))
    program.messages.append(result(first.calls[0].id, "green"))
    assert isinstance(program.take(program.begin()).last, ActionRequired)
    assert [body["tool_choice"] for body in server.bodies("chat")[-2:]] == ["required", "required"]


def test_in_a_named_session_the_results_alone_will_do(chat: Chat, server: FakeOpenAI) -> None:
    program = program_of(chat)
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look."))
    first = program.ask(question(1))
    program.messages = [result(first.calls[0].id, "green")]
    second = program.take(program.begin(session=first.session_id))
    assert (second.session_id, second.turn) == (first.session_id, 1)


def test_what_was_said_around_our_own_tools_is_recognised_and_told_again(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(CLOCK, answer="One moment. "))
    program = program_of(chat)
    first = program.ask(question(1), idempotency_key="once")
    assert first.text.startswith("One moment. \n\n")
    assert len(server.bodies("chat")) == 2
    again = program_of(chat).ask(question(1), idempotency_key="once")
    assert (again.matched, again.text) == ("retry", first.text)
    second = program.ask(question(2))
    assert (second.session_id, second.turn, second.matched) == (first.session_id, 2, "history")


def test_what_another_model_said_ends_the_turn_that_waited_for_the_program(chat: Chat, server: FakeOpenAI) -> None:
    program = program_of(chat)
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look."))
    first = program.ask(question(1))
    assert isinstance(first.last, ActionRequired)
    elsewhere = [result("call-1", "green"), assistant("Another model says that it is green.")]
    program.messages += elsewhere
    after = program.ask(question(2))
    assert after.session_id == first.session_id
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    assert [turn.status for turn in Chat(chat.service, first.session_id).turns] == ["finished", "finished"]
    assert program.ask(question(3)).session_id == first.session_id
    for body in server.bodies("chat")[-2:]:
        assert faults(body["messages"]) == []
        assert elsewhere[1].text in map(content_of, body["messages"])


def test_a_retry_of_what_failed_before_the_chat_went_on_is_told_no_sentence_of_ours(
    chat: Chat, server: FakeOpenAI
) -> None:
    program = program_of(chat)
    first = program.ask(question(1))
    server.script(hang("Half"))
    program.messages.append(user(question(2)))
    stopped = program.begin(idempotency_key="once")
    stopped.wait_for_text()
    stopped.completion.stop()
    assert stopped.last
    Chat(chat.service, first.session_id).say(question(3))
    server.script(text("A whole answer."))
    again = program.begin(idempotency_key="once")
    assert isinstance(again.last, TurnFinished)
    assert again.text == "A whole answer."
    assert Chat(chat.service, first.session_id).view.turn_count == 3


def test_the_end_tells_usage_and_figures(chat: Chat, server: FakeOpenAI) -> None:
    program = program_of(chat)
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
    server.script(text("A whole answer.", usage=None, finish_reason="length"))
    end = program.ask(question(5)).end
    assert (end.usage, end.finish_reason) == (None, "length")


ROWS = "SELECT owner, client, model, usage_input_tokens, usage_output_tokens, usage_cached_tokens, error_code"


def plain(service: ChatService, **options: object) -> Program:
    return Program(service, fields={"is_plain": True}, options=options)


def test_an_aside_is_sent_as_it_is_and_leaves_its_cost_alone(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(text("A title", usage=CACHED_USAGE))
    asking = plain(chat.service, system="Be brief.", sampling={"temperature": 0.5, "top_p": 0.25})
    asking.messages = [user("Hi"), assistant("Hello"), user("Name this chat")]
    reading = asking.begin()
    assert isinstance(reading.last, TurnFinished)
    assert reading.text == reading.last.text == "A title"
    (body,) = server.bodies()
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Name this chat"},
    ]
    assert (body["temperature"], body["top_p"]) == (0.5, 0.25)
    assert "tools" not in body
    assert (reading.session_id, reading.turn, reading.matched) == ("", 0, "aside")
    assert reading.end == CompletionEnd("stop", ClientUsage(100, 20, 64), {})
    assert chat.rows(f"{ROWS} FROM aside_call") == [("local", "editor", "scripted-model", 100, 20, 64, "")]
    for table in ("session", "turn", "message", "model_call", "anchor", "record"):
        assert chat.rows(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608  # names of our own


def test_an_asides_tools_images_and_results_go_out_as_they_came(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("look", '{"at": "잔디"}', "call-1"), answer="One moment."))
    asking = plain(chat.service, tools=(LOOK,), tool_choice="required")
    call = ClientCall("call-0", "look", '{"at": 1}')
    asking.messages = [
        user("See", "data:image/png;base64,AA"),
        assistant("", call),
        result("call-0", "grass"),
        user("?"),
    ]
    reading = asking.begin()
    assert isinstance(reading.last, ActionRequired)
    assert reading.text == reading.last.text == "One moment."
    assert reading.calls == (ClientCall("call-1", "look", '{"at": "잔디"}'),)
    assert reading.end.finish_reason == "tool_calls"
    (body,) = server.bodies()
    assert body["tools"] == [LOOK]
    assert body["tool_choice"] == "required"
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    assert body["messages"][0]["content"] == [{"type": "text", "text": "See"}, image]
    (sent,) = body["messages"][1]["tool_calls"]
    assert (sent["id"], sent["function"]) == ("call-0", {"name": "look", "arguments": '{"at": 1}'})
    assert (body["messages"][2]["tool_call_id"], body["messages"][2]["content"]) == ("call-0", "grass")


def test_an_aside_says_how_it_ended_or_why_it_failed_and_its_row_too(chat: Chat, server: FakeOpenAI) -> None:
    for reason in ("length", "stop"):
        server.script(text("Some words", finish_reason=reason))
        assert plain(chat.service).ask("Title?").end.finish_reason == reason
    asking = plain(chat.service)
    asking.messages = [user("Title?")]
    server.script(text("No", finish_reason="content_filter"))
    reading = asking.begin()
    assert isinstance(reading.last, TurnFailed)
    assert reading.end.finish_reason == "content_filter"
    server.script(failure(401))
    last = asking.begin().last
    assert isinstance(last, TurnFailed)
    assert last.code == "authentication"
    rows = chat.rows("SELECT error_code, usage_input_tokens FROM aside_call")
    assert ("authentication", None) in rows
    first, second = plain(chat.service).ask("Title?"), plain(chat.service).ask("Tags?")
    assert first.completion.id != second.completion.id
    assert all(reading.completion.id.startswith("chatcmpl-") for reading in (first, second))


def test_an_aside_is_tried_again_only_before_its_first_words(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(model_attempts=3)
    server.script(failure(500), text("A title"))
    assert plain(chat.service).ask("Title?").text == "A title"
    server.script(close_early("Half a"))
    asking = plain(chat.service)
    asking.messages = [user("Title?")]
    reading = asking.begin()
    assert reading.last == TurnFailed(0, "cut_stream", "")
    assert reading.text == "Half a"
    assert len(server.bodies()) == 3


def test_an_aside_takes_a_slot_until_it_is_stopped_or_the_server_closes(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(concurrent_turns=1)
    server.script(hang("Half"), hang("Quarter"))
    asking = plain(chat.service)
    asking.messages = [user("Title?")]
    reading = asking.begin()
    reading.wait_for_text()
    with pytest.raises(ServerBusyError):
        asking.begin()
    reading.completion.stop()
    assert reading.last == TurnStopped(0, "Half")
    reading = asking.begin()
    reading.wait_for_text()
    chat.close()
    assert reading.last == TurnStopped(0, "Quarter")


def test_the_models_are_those_of_the_endpoint_with_the_default_first(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.models = ["another", "scripted-model"]
    assert [*open_chat().service.completions.models()] == ["scripted-model", "another"]
