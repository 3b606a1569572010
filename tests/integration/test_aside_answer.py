from __future__ import annotations

import pytest

from graph.client import ClientUsage, CompletionEnd
from graph.error import ServerBusyError
from graph.event import ActionRequired, ClientCall, TurnFailed, TurnFinished, TurnStopped
from graph.service import ChatService
from tests.fake.chat import Chat
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import CACHED_USAGE, ScriptedCall, close_early, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import Program, assistant, result, user

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
ROWS = "SELECT owner, client, model, usage_input_tokens, usage_output_tokens, usage_cached_tokens, error_code"


def plain(service: ChatService, **options: object) -> Program:
    return Program(service, fields={"is_plain": True}, options=options)


def test_an_aside_is_sent_as_it_is_and_leaves_its_cost_alone(chat: Chat, server: FakeOpenAI) -> None:
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
    asking = plain(chat.service, tools=(TOOL,), tool_choice="required")
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
    assert body["tools"] == [TOOL]
    assert body["tool_choice"] == "required"
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    assert body["messages"][0]["content"] == [{"type": "text", "text": "See"}, image]
    (sent,) = body["messages"][1]["tool_calls"]
    assert (sent["id"], sent["function"]) == ("call-0", {"name": "look", "arguments": '{"at": 1}'})
    assert (body["messages"][2]["tool_call_id"], body["messages"][2]["content"]) == ("call-0", "grass")


def test_an_aside_that_fails_says_why_and_its_row_too(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(401))
    asking = plain(chat.service)
    asking.messages = [user("Title?")]
    last = asking.begin().last
    assert isinstance(last, TurnFailed)
    assert last.code == "authentication"
    assert chat.rows("SELECT error_code, usage_input_tokens FROM aside_call") == [("authentication", None)]


@pytest.mark.parametrize(("finish_reason", "told"), [("length", "length"), ("stop", "stop")])
def test_an_aside_says_how_it_ended(chat: Chat, server: FakeOpenAI, finish_reason: str, told: str) -> None:
    server.script(text("Some words", finish_reason=finish_reason))
    assert plain(chat.service).ask("Title?").end.finish_reason == told


def test_a_refused_aside_tells_of_the_filter(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("No", finish_reason="content_filter"))
    asking = plain(chat.service)
    asking.messages = [user("Title?")]
    reading = asking.begin()
    assert isinstance(reading.last, TurnFailed)
    assert reading.end.finish_reason == "content_filter"


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


def test_an_aside_ends_when_it_is_stopped_and_when_the_server_closes(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(hang("Half"), hang("Quarter"))
    stopped, closed = (plain(chat.service, system=name) for name in ("one", "two"))
    stopped.messages = closed.messages = [user("Title?")]
    reading = stopped.begin()
    reading.wait_for_text()
    reading.completion.stop()
    assert reading.last == TurnStopped(0, "Half")
    reading = closed.begin()
    reading.wait_for_text()
    chat.close()
    assert reading.last == TurnStopped(0, "Quarter")


def test_an_aside_takes_a_slot_and_frees_it(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1)
    server.script(hang("Half"))
    asking = plain(chat.service)
    asking.messages = [user("Title?")]
    reading = asking.begin()
    reading.wait_for_text()
    with pytest.raises(ServerBusyError):
        asking.begin()
    reading.completion.stop()
    assert isinstance(reading.last, TurnStopped)
    assert isinstance(asking.begin().last, TurnFinished)


def test_two_asides_at_once_have_ids_of_their_own(chat: Chat) -> None:
    asking = plain(chat.service)
    first, second = asking.ask("Title?"), asking.ask("Tags?")
    assert first.completion.id != second.completion.id
    assert all(reading.completion.id.startswith("chatcmpl-") for reading in (first, second))


def test_the_models_are_those_of_the_endpoint_with_the_default_first(chat: Chat, server: FakeOpenAI) -> None:
    server.models = ["another", "scripted-model"]
    assert chat.service.completions.models() == ("scripted-model", "another")
