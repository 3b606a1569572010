from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph.error import NotFoundError
from graph.input_view import CallInput, SentRequest
from graph.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.offline import KEYLESS, models_without_pauses
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by, tool

KEY = "sk-scripted-key-of-the-tests"
REASONING = json.dumps({"material": "갑은 을보다 크다.", "question": "질문 3번: 누가 더 큰가?"})
PNG = "data:image/png;base64," + "iVBORw0K" * 500


def calls_of(chat: Chat) -> list[tuple[int, CallInput]]:
    turns = chat.service.folds.called_turns(chat.session_id)
    return [(turn, call) for turn in turns for call in chat.service.folds.inputs(chat.session_id, turn)]


def requests(chat: Chat) -> list[SentRequest]:
    return [
        chat.service.folds.request(chat.session_id, turn, attempt=call.attempt, ordinal=call.ordinal)
        for turn, call in calls_of(chat)
    ]


def body_of(request: SentRequest) -> Any:  # noqa: ANN401  # JSON
    assert request.body is not None
    return json.loads(request.body)


def check_as_sent(chat: Chat, bodies: list[Body]) -> None:
    """Every request that is built again is the one that was sent, key by key and in order."""
    made = requests(chat)
    assert [request.is_verified for request in made] == [True] * len(bodies)
    assert not any(request.lacks_tools or request.is_of_program or request.is_embedded for request in made)
    assert [json.dumps(body_of(request)) for request in made] == [json.dumps(body) for body in bodies]


@pytest.mark.parametrize("language", ["ko", "en"])
@pytest.mark.parametrize("strategy", ["interval", "rolling", "compaction", "window"])
def test_every_request_is_built_again_as_it_was_sent(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str, language: str
) -> None:
    chat = open_chat(context_strategy=strategy, window_turns=2, app_context_threshold=500, max_context_tokens=1_000)
    chat.say("안녕하세요!" if language == "ko" else "Hello!")
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text("낮입니다."), to="질문 2번")
    server.script(
        tools(ScriptedCall("reasoning", REASONING, "call-2")), text("갑이다."), text("갑입니다."), to="질문 3번"
    )
    chat.ask(2, 7)
    chat.say("고마워요!" if language == "ko" else "Thank you!")
    chat.regenerate()
    check_as_sent(chat, server.bodies("chat"))
    assert KEY not in json.dumps([request.body for request in requests(chat)])


def test_the_last_round_of_tools_forbids_them(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(tool_rounds=2)

    def calls_while_it_may(body: Body) -> Reply:
        may_call = body.get("tool_choice") != "none"
        return tools(ScriptedCall("get_current_time", "{}", "call-1")) if may_call else text("낮입니다.")

    server.respond_with(calls_while_it_may)
    chat.say(question(1))
    check_as_sent(chat, server.bodies("chat"))
    assert body_of(requests(chat)[-1])["tool_choice"] == "none"


def test_an_endpoint_that_refuses_the_choice_is_shown_what_it_was_sent_then(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(400, "tool_choice is not supported"), text("안녕하세요."))
    chat.say("안녕하세요!")
    _, again = requests(chat)
    assert body_of(again) == server.bodies("chat")[1]
    assert "tool_choice" not in body_of(again)


def test_another_server_builds_them_again_too(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    chat.ask(1, 5)
    chat.close()
    check_as_sent(open_chat(chat.session_id), server.bodies("chat"))


def test_the_tools_of_a_project_are_found(open_chat: OpenChat, server: FakeOpenAI, tmp_path: Path) -> None:
    chat = open_chat(project_roots=(tmp_path,))
    chat.say(question(1), options=TurnOptions(project_root=str(tmp_path)))
    check_as_sent(chat, server.bodies("chat"))
    assert "read_rule" in {told.name for told in calls_of(chat)[0][1].blocks[-1].tools}


def test_each_tool_is_told_with_its_schema(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    ((_, call),) = calls_of(chat)
    (body,) = server.bodies("chat")
    assert [json.loads(told.text) for told in call.blocks[-1].tools] == [sent["function"] for sent in body["tools"]]
    assert [told.name for told in call.blocks[-1].tools] == ["get_current_time", "web_search", "reasoning", "recall"]
    assert not any(block.tools for block in call.blocks[:-1])


def test_tools_of_another_version_are_said_to_be_missing(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.ask(1, 1)
    chat.close()
    again = open_chat(chat.session_id, tools=[])
    (request,) = requests(again)
    assert (request.is_verified, request.lacks_tools) == (True, True)
    assert "tools" not in body_of(request)
    assert calls_of(again)[0][1].blocks[-1].tools == ()


def test_what_a_program_added_is_said_to_be_missing(chat: Chat) -> None:
    chat.say(question(1), options=asked_by(tools=(tool("look_up"),), sampling={"temperature": 0.5}))
    (request,) = requests(chat)
    assert (request.is_verified, request.lacks_tools, request.is_of_program) == (True, True, True)


def test_a_tool_that_a_program_replaced_is_left_out(chat: Chat) -> None:
    chat.say(question(1), options=asked_by(tools=(tool("web_search"),)))
    chat.say(question(2))
    _, request = requests(chat)
    assert not request.lacks_tools
    assert [told["function"]["name"] for told in body_of(request)["tools"]] == [
        "get_current_time",
        "reasoning",
        "recall",
    ]


def test_images_are_shortened(chat: Chat, server: FakeOpenAI) -> None:
    chat.service.turns.send(chat.session_id, question(1), images=[PNG])
    chat.events()
    (request,) = requests(chat)
    assert request.is_verified
    assert PNG[:64] in (request.body or "")
    assert PNG not in (request.body or "")
    shown, sent = body_of(request)["messages"][-1]["content"], server.bodies("chat")[0]["messages"][-1]["content"]
    assert (shown[0], shown[1]["type"]) == (sent[0], sent[1]["type"])
    assert shown[1]["image_url"]["url"] == f"{PNG[:64]}… (4022 characters)"


def test_what_was_changed_in_the_tables_is_shown_and_said_not_to_be_what_was_sent(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.change("UPDATE message SET content = replace(content, '김민수', '이영희')")
    (request,) = requests(chat)
    assert not request.is_verified
    assert "이영희" in (request.body or "")


def test_without_its_prompt_nothing_is_built(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.change('UPDATE model_call SET manifest = \'[0,["system","gone",9,1]]\'')
    (request,) = requests(chat)
    assert (request.body, request.is_verified) == (None, False)


def test_the_embedded_model_is_handed_the_same_and_says_that_nothing_left(open_chat: OpenChat) -> None:
    chat = open_chat(models=models_without_pauses, **KEYLESS)
    chat.ask(1, 1)
    (request,) = requests(chat)
    assert (request.is_verified, request.is_embedded) == (True, True)
    assert list(body_of(request)) == ["model", "messages", "tools"]


def test_a_call_that_never_was_is_not_found(chat: Chat) -> None:
    chat.ask(1, 1)
    for place in ({"attempt": 2, "ordinal": 1}, {"attempt": 1, "ordinal": 2}):
        with pytest.raises(NotFoundError):
            chat.service.folds.request(chat.session_id, 1, **place)
