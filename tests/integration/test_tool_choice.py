from __future__ import annotations

import json

import pytest

from graph.event import TurnFailed, TurnFinished
from graph.service import ChatService
from tests.fake.body import content_of, faults, tokens_of
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import Body, ScriptedCall, failure, text, tools
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI

SEOUL = ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")
WORDINGS = [
    (400, "Unsupported parameter: 'tool_choice' is not supported with this model."),
    (400, "tool_choice: Extra inputs are not permitted"),
    (422, "toolChoice: unknown variant `none`"),
]


def offered(body: Body) -> str:
    """The bytes of the tools in a request."""
    return json.dumps(body["tools"], ensure_ascii=False)


def choices(server: FakeOpenAI) -> list[str | None]:
    return [body.get("tool_choice") for body in server.bodies("chat")]


def rows(chat: Chat) -> list[tuple[int, int, str]]:
    return chat.rows("SELECT turn, sent_tokens, error_code FROM model_call ORDER BY created_at, rowid")


def test_small_talk_and_the_last_round_send_the_same_tools_as_any_other_call(chat: Chat, server: FakeOpenAI) -> None:
    server.respond_with(lambda body: answer_body(body) if body.get("tool_choice") == "none" else tools(SEOUL))
    server.script(text("10월 3일입니다."))
    chat.say(question(1))
    chat.say("고마워요!")
    assert isinstance(chat.say(question(3))[-1], TurnFinished)
    bodies = server.bodies("chat")
    assert choices(server) == [None, "none", *[None] * 8, "none"]
    assert len({offered(body) for body in bodies}) == 1
    assert [tokens for _, tokens, _ in rows(chat)] == [tokens_of(body) for body in bodies]
    assert [faults(body["messages"]) for body in bodies] == [[]] * 11


@pytest.mark.parametrize(("status", "words"), WORDINGS)
def test_an_endpoint_that_refuses_tool_choice_gets_none_from_then_on(
    chat: Chat, server: FakeOpenAI, status: int, words: str
) -> None:
    chat.ask(1, 1)
    server.respond_with(
        lambda body: failure(status, words) if "tool_choice" in body else answer_body(body),
    )
    assert isinstance(chat.say("고마워요!")[-1], TurnFinished)
    assert isinstance(chat.say("안녕히 계세요")[-1], TurnFinished)
    assert choices(server) == [None, "none", None, None]
    assert len({offered(body) for body in server.bodies("chat")}) == 1
    assert [code for _, _, code in rows(chat)] == ["", "bad_response", "", ""]


def test_a_refusal_is_remembered_for_its_model_and_its_server_alone(service: ChatService, server: FakeOpenAI) -> None:
    chat = Chat(service)
    server.respond_with(
        lambda body: (
            failure(*WORDINGS[0]) if "tool_choice" in body and body["model"] == "scripted-model" else answer_body(body)
        )
    )
    chat.say("안녕하세요")
    service.sessions.configure(chat.session_id, model="another-model")
    chat.say("고마워요!")
    other = Chat(service)
    other.say("안녕하세요")
    assert choices(server) == ["none", None, "none", None]


def test_an_error_that_only_mentions_tool_choice_is_not_remembered(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(*WORDINGS[0]), failure(400, "bad request"))
    failed = chat.say("안녕하세요")[-1]
    assert isinstance(failed, TurnFailed)
    assert failed.code == "bad_response"
    chat.retry()
    assert choices(server) == ["none", None, "none"]


@pytest.mark.parametrize("words", ["안녕하세요", "고마워요!"])
def test_a_model_that_calls_a_tool_and_says_nothing_is_asked_without_tools(
    chat: Chat, server: FakeOpenAI, words: str
) -> None:
    server.respond_with(lambda body: tools(SEOUL) if body.get("tools") else answer_body(body))
    assert isinstance(chat.say(words)[-1], TurnFinished)
    first, second = server.bodies("chat")
    assert second["messages"] == first["messages"]
    assert "tools" not in second
    assert "tool_choice" not in second
    assert [tokens for _, tokens, _ in rows(chat)] == [tokens_of(first), tokens_of(second)]
    assert chat.last_turn.steps == ()


def test_a_call_beside_an_answer_to_small_talk_is_dropped(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL, answer="천만에요."))
    assert isinstance(chat.say("고마워요!")[-1], TurnFinished)
    assert (chat.last_turn.answer_text, chat.last_turn.steps) == ("천만에요.", ())
    chat.ask(2, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_the_last_round_of_an_endpoint_that_ignores_tool_choice_ends_in_an_answer(
    chat: Chat, server: FakeOpenAI
) -> None:
    server.respond_with(
        lambda body: tools(SEOUL) if body.get("tools") and kind_of(body) == "chat" else answer_body(body)
    )
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert choices(server) == [*[None] * 8, "none", None]
    assert "도구를 더 쓸 수 없습니다" in content_of(server.bodies("chat")[-1]["messages"][-1])
    assert len(chat.last_turn.steps) == 8
