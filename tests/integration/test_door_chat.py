from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam
from pydantic import SecretStr

from tests.fake.body import shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, ScriptedCall, failure, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.resending import counts
from tests.fake.served_door import TOKEN, ServedDoor

TURNS = 10


@pytest.fixture
def chat(open_chat: OpenChat) -> Chat:
    return open_chat(turns_per_minute=10_000)


@pytest.fixture
def door(chat: Chat) -> Iterator[ServedDoor]:
    with ServedDoor(chat.service.completions) as opened:
        yield opened


@pytest.fixture
def page(chat: Chat, server: FakeOpenAI) -> list[Body]:
    """What the endpoint is sent of the same chat through the page."""
    chat.ask(1, TURNS)
    return [body["messages"] for body in server.bodies("chat")]


def wait_for_folds(chat: Chat) -> None:
    for session in chat.service.sessions.list():
        Chat(chat.service, session.session_id).wait_for_folds()


def client_of(door: ServedDoor) -> OpenAI:
    return OpenAI(base_url=door.url, api_key=TOKEN)


def test_openais_client_resends_all_and_is_folded_like_the_page(
    chat: Chat, door: ServedDoor, page: list[Body], server: FakeOpenAI
) -> None:
    said: list[ChatCompletionMessageParam] = []
    with client_of(door) as client:
        for number in range(1, TURNS + 1):
            said.append({"role": "user", "content": question(number)})
            stream = client.chat.completions.create(model="turnfold", messages=said, stream=True)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
            said.append({"role": "assistant", "content": text})
            wait_for_folds(chat)
    bodies = server.bodies("chat")[TURNS:]
    assert [body["messages"] for body in bodies] == page
    assert shape(bodies[-1]) == [(1, 3), (4, 6), (7, 9), 10]
    assert counts(chat) == [2, 2 * TURNS, 4 * TURNS, 6]


def test_langchains_client_resends_all_and_is_folded_like_the_page(
    chat: Chat, door: ServedDoor, page: list[Body], server: FakeOpenAI
) -> None:
    said: list[AnyMessage] = []
    model = ChatOpenAI(base_url=door.url, api_key=SecretStr(TOKEN), model="turnfold")
    for number in range(1, TURNS + 1):
        said.append(HumanMessage(question(number)))
        answer = model.invoke(said)
        assert isinstance(answer, AIMessage)
        said.append(answer)
        wait_for_folds(chat)
    bodies = server.bodies("chat")[TURNS:]
    assert [body["messages"] for body in bodies] == page
    assert counts(chat) == [2, 2 * TURNS, 4 * TURNS, 6]


def test_langchains_client_runs_its_own_tools(chat: Chat, door: ServedDoor, server: FakeOpenAI) -> None:
    server.script(
        tools(ScriptedCall("look", '{"at":"grass"}', "call-1"), ScriptedCall("look", '{"at":"sky"}', "call-2"))
    )
    model = ChatOpenAI(base_url=door.url, api_key=SecretStr(TOKEN), model="turnfold").bind_tools([dict(tool("look"))])
    said: list[AnyMessage] = [HumanMessage(question(1))]
    first = model.invoke(said)
    assert isinstance(first, AIMessage)
    results = [ToolMessage("green", tool_call_id=str(call["id"])) for call in first.tool_calls]
    assert len(results) == 2
    second = model.invoke([*said, first, *results])
    assert isinstance(second, AIMessage)
    third = model.invoke([*said, first, *results, second, HumanMessage(question(2))])
    assert third.text
    assert counts(chat)[:2] == [1, 2]


def test_the_retries_of_openais_client_make_one_turn(chat: Chat, door: ServedDoor, server: FakeOpenAI) -> None:
    server.script(failure(503), failure(503))
    with client_of(door) as client:
        answer = client.chat.completions.create(model="turnfold", messages=[{"role": "user", "content": question(1)}])
    assert answer.choices[0].message.content
    assert len(server.bodies("chat")) == 3
    assert counts(chat)[:2] == [1, 1]
