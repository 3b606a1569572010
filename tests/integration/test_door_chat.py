"""Whole chats of the real clients, over the real routes, the real service and a scripted endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.fake.body import shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_door import OWNER, TOKEN, ServedDoor

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
Ask = Callable[[str], str]


def with_openai(url: str) -> Ask:
    client = openai.OpenAI(base_url=url, api_key=TOKEN)
    messages: list[Any] = []

    def ask(words: str) -> str:
        messages.append({"role": "user", "content": words})
        stream = client.chat.completions.create(model="turnfold", messages=messages, stream=True)
        said = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        messages.append({"role": "assistant", "content": said})
        return said

    return ask


def langchain_model(url: str, **values: Any) -> ChatOpenAI:  # noqa: ANN401 - the model's own
    return ChatOpenAI(base_url=url, api_key=SecretStr(TOKEN), model="turnfold", **values)


def with_langchain(url: str) -> Ask:
    model = langchain_model(url)
    messages: list[BaseMessage] = []

    def ask(words: str) -> str:
        messages.append(HumanMessage(words))
        messages.append(model.invoke(messages))
        return str(messages[-1].content)

    return ask


@pytest.fixture
def served(chat: Chat) -> Iterator[ServedDoor]:
    with ServedDoor(chat.service.for_owner(OWNER).completions) as door:
        yield door


def counts(chat: Chat) -> list[int]:
    return [chat.rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("session", "turn", "message")]  # noqa: S608  # names of our own


@pytest.mark.parametrize("client", [with_openai, with_langchain])
def test_a_long_chat_of_a_real_client_is_folded_like_the_pages(
    open_chat: OpenChat, server: FakeOpenAI, client: Callable[[str], Ask]
) -> None:
    chat = open_chat(turns_per_minute=10_000)
    chat.ask(1, 50)
    page = server.bodies("chat")
    service = chat.service.for_owner(OWNER)
    with ServedDoor(service.completions) as served:
        ask = client(served.url)
        for number in range(1, 51):
            ask(question(number))
            (session,) = service.sessions.list()
            Chat(service, session.session_id).wait_for_folds()
    bodies = server.bodies("chat")[50:]
    assert [body["messages"] for body in bodies] == [body["messages"] for body in page]
    assert shape(bodies[-1]) == [*((first, first + 2) for first in range(1, 48, 3)), 49, 50]
    assert counts(chat) == [2, 100, 200]


def test_a_librarys_tools_are_called_and_answered_in_one_turn(
    chat: Chat, served: ServedDoor, server: FakeOpenAI
) -> None:
    server.script(tools(ScriptedCall("look", '{"b":1}', id="c1")), text("It is blue."))
    model = langchain_model(served.url).bind_tools([TOOL])
    asked: list[BaseMessage] = [HumanMessage("Which colour is it?")]
    answer = model.invoke(asked)
    assert isinstance(answer, AIMessage)
    assert [(call["name"], call["args"], call["id"]) for call in answer.tool_calls] == [("look", {"b": 1}, "c1")]
    final = model.invoke([*asked, answer, ToolMessage("blue", tool_call_id="c1")])
    assert final.content == "It is blue."
    assert counts(chat)[:2] == [1, 1]


def test_a_librarys_own_retries_make_one_turn(chat: Chat, served: ServedDoor, server: FakeOpenAI) -> None:
    server.script(failure(503), failure(503), text("Hello"))
    with openai.OpenAI(base_url=served.url, api_key=TOKEN, max_retries=2) as client:
        raw = client.chat.completions.with_raw_response.create(
            model="turnfold", messages=[{"role": "user", "content": question(1)}]
        )
    assert raw.parse().choices[0].message.content == "Hello"
    assert raw.headers["x-turnfold-turn"] == "1"
    assert len(server.bodies("chat")) == 3
    assert counts(chat)[:2] == [1, 1]
