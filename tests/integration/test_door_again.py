"""The real clients stop an answer, have it made anew, and ask several models in one chat: over the real routes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.fake.body import faults, shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.real_client import REAL_CHATS, LangChainChat, OpenAIChat, RealChat, Told
from tests.fake.resending import counts
from tests.fake.served_door import OWNER, TOKEN, ServedDoor, serve

CHAT_ID = {"X-OpenWebUI-Chat-Id": "c0ffee"}
PATIENCE_SECONDS = 60.0


@pytest.fixture
def served(chat: Chat) -> Iterator[ServedDoor]:
    with serve(chat.service) as door:
        yield door


def shown(chat: Chat, session_id: str) -> list[tuple[str, str]]:
    """Each turn's words and its status."""
    return [(turn.user_text, turn.status) for turn in Chat(chat.service.for_owner(OWNER), session_id).turns]


def stop_with_openai(program: RealChat, words: str) -> str:
    """Asks, reads the first words, closes the stream as a Stop button does, and returns them."""
    assert isinstance(program, OpenAIChat)
    program.messages.append({"role": "user", "content": words})
    stream = program.client.chat.completions.create(model="turnfold", messages=program.messages, stream=True)
    said = next(text for chunk in stream if (text := chunk.choices[0].delta.content))
    stream.close()
    return said


def stop_with_langchain(program: RealChat, words: str, url: str) -> str:
    program.messages.append(HumanMessage(words))
    model = ChatOpenAI(base_url=url, api_key=SecretStr(TOKEN), model="turnfold")
    pieces = model.stream(program.messages)
    said = next(str(piece.content) for piece in pieces if piece.content)
    pieces.close()  # type: ignore[attr-defined]  # a generator, though it is declared as an iterator
    return said


@pytest.mark.parametrize("client", REAL_CHATS)
@pytest.mark.parametrize("keeps_part", [True, False], ids=["keeps the part", "drops the part"])
def test_a_client_that_stops_an_answer_goes_on_in_its_session(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat], *, keeps_part: bool
) -> None:
    program = client(served.url)
    first = program.ask(question(1))
    server.script(hang("Half of"), to=question(2))
    if client is OpenAIChat:
        part = stop_with_openai(program, question(2))
        message: object = {"role": "assistant", "content": part}
    else:
        part = stop_with_langchain(program, question(2), served.url)
        message = AIMessage(part)
    assert part == "Half of"
    program.messages += [message] * keeps_part
    told = program.ask(question(3))
    assert told[1:3] == (first.session_id, 3)
    assert shown(chat, first.session_id) == [
        (question(1), "finished"),
        (question(2), "stopped"),
        (question(3), "finished"),
    ]
    body = server.bodies("chat")[-1]
    assert (shape(body), faults(body["messages"])) == ([1, 2, 3], [])
    assert "Half of" in str(body["messages"][-2])
    assert program.ask(question(4))[1:3] == (first.session_id, 4)
    assert counts(chat)[0] == 1


@pytest.mark.parametrize("client", REAL_CHATS)
def test_an_answer_made_anew_replaces_the_first_one_and_going_back_to_that_is_a_branch(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = client(served.url)
    first = program.ask(question(1))
    server.script(text("One answer."), text("Another answer."))
    program.ask(question(2))
    replaced = list(program.messages)
    program.messages = program.messages[:-1]
    again = program.send()
    assert again == Told("Another answer.", first.session_id, 2, "history")
    assert program.ask(question(3))[1:3] == (first.session_id, 3)
    program.messages = replaced
    branch = program.ask(question(4))
    assert (branch.matched, branch.turn, branch.session_id == first.session_id) == ("fork", 3, False)
    assert "One answer." in str(server.bodies("chat")[-1]["messages"])
    assert "Another answer." not in str(server.bodies("chat")[-1]["messages"])
    assert program.ask(question(5))[1:3] == (branch.session_id, 4)
    assert counts(chat)[0] == 2


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_request_with_the_same_key_is_given_the_same_answer(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = client(served.url)
    program.headers = {"Idempotency-Key": "one"}
    first = program.ask(question(1))
    program.messages = program.messages[:-1]
    assert program.send() == first._replace(matched="retry")
    assert (len(server.bodies("chat")), counts(chat)[:3]) == (1, [1, 1, 2])
    program.headers = {"Idempotency-Key": "two"}
    assert program.ask(question(2))[1:3] == (first.session_id, 2)


@pytest.mark.parametrize("client", REAL_CHATS)
def test_several_models_in_one_chat_of_a_client_have_a_session_each(
    open_chat: OpenChat, server: FakeOpenAI, client: type[RealChat]
) -> None:
    server.models = ["scripted-model", "another-model"]
    chat = open_chat()
    with serve(chat.service) as served, ThreadPoolExecutor() as pool:
        programs = [client(served.url) for _ in server.models]
        for program, model in zip(programs, server.models, strict=True):
            program.headers, program.fields = CHAT_ID, {"model": f"turnfold/{model}"}
        sessions = set()
        for number in (1, 2, 3):
            told = list(pool.map(lambda program, asked: program.ask(question(asked)), programs, [number] * 2))
            assert [one.turn for one in told] == [number, number]
            sessions.add(frozenset(one.session_id for one in told))
            sent = server.bodies("chat")[-2:]
            assert {body["model"] for body in sent} == set(server.models)
    assert [len(pair) for pair in sessions] == [2]
    assert counts(chat)[:3] == [2, 6, 12]


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_model_changed_within_a_chat_stays_in_its_session(
    open_chat: OpenChat, server: FakeOpenAI, client: type[RealChat]
) -> None:
    server.models = ["scripted-model", "another-model"]
    chat = open_chat()
    with serve(chat.service) as served:
        program = client(served.url)
        first = program.ask(question(1))
        program.fields = {"model": "turnfold/another-model"}
        assert program.ask(question(2))[1:3] == (first.session_id, 2)
    assert [body["model"] for body in server.bodies("chat")] == server.models


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_history_from_another_backend_is_kept_once_and_folded(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = client(served.url)
    for number in range(1, 7):
        program.messages += [
            {"role": "user", "content": question(number)},
            {"role": "assistant", "content": f"다른 서버의 답 {number}입니다. 트래픽은 새벽에 옮깁니다."},
        ]
    first = program.ask(question(7))
    assert (first.turn, first.matched) == (7, "new")
    session = Chat(chat.service.for_owner(OWNER), first.session_id)
    session.wait_for_folds()
    assert program.ask(question(8))[1:4] == (first.session_id, 8, "history")
    session.wait_for_folds()
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), 7, 8]
    assert counts(chat)[:3] == [1, 8, 16]


def test_chats_of_both_clients_are_one_if_one_takes_over_the_others_history(served: ServedDoor) -> None:
    one, two = OpenAIChat(served.url), LangChainChat(served.url)
    first = one.ask(question(1))
    two.messages = list(one.messages)
    assert two.ask(question(2))[1:4] == (first.session_id, 2, "history")
