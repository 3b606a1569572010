"""A question that its program leaves unanswered, in a chat that went on elsewhere: it is sent on, and archived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest

from graph.service import ChatService
from tests.fake.chat import Chat, question
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_programs import ServedPrograms
from tests.integration.test_open_call import SAVE, Answered, Message, Wire, called, said, user


@pytest.fixture(scope="module")
def client(module_service: ChatService) -> Iterator[httpx2.Client]:
    with ServedPrograms(module_service) as served, served.client() as client:
        yield client


@pytest.fixture
def wire(chat: Chat, client: httpx2.Client, server: FakeOpenAI) -> Wire:
    return Wire(client, chat.session_id, server)


LEFT: Final[dict[str, list[Message]]] = {
    "with the call": [called("call-1")],
    "with words beside the call": [called("call-1", content="Let me look.")],
    "without the call": [],
}


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("turns", [1, 4])
@pytest.mark.parametrize("place", ["", "in front", "behind"])
@pytest.mark.parametrize("by", ["a user", "an id", "history alone"])
def test_a_question_left_with_a_call_is_sent_on_and_archived(
    wire: Wire, chat: Chat, left: str, turns: int, by: str, place: str
) -> None:
    def post(number: int, *messages: Message) -> Answered:
        return wire.post(*with_files(number, *messages), **named)

    def with_files(number: int, *messages: Message) -> list[Message]:
        files = [user(f"The file a.py, version {number}"), said("Ok, I see it.")]
        *before, last = messages
        return {"in front": [*files, *messages], "behind": [*before, *files, last], "": [*messages]}[place]

    named: dict[str, Any] = {"headers": {"X-Session-Id": wire.user}} if by == "an id" else {}
    named |= {"user": ""} if by == "history alone" else {}
    history: list[Message] = [user(f"I am {wire.user}."), said("Hello!")]
    for number in range(1, turns + 1):
        history.append(user(question(number)))
        history.append(said(post(number, *history).message["content"]))
    post(9, *history, user(question(9)))  # its clone goes on in the same session
    beside = "Let me look." if "words" in left else ""
    wire.call(*with_files(10, *history, user(SAVE)), answer=beside, **named)
    asked, lost = [*history, user(SAVE), *LEFT[left]], []
    for number in (5, 6, 7):
        asked.append(user(question(number)))
        answered = post(number, *asked)
        archived = [turn.user_text for turn in Chat(chat.service, answered.session_id).turns]
        is_there = SAVE in str(wire.server.bodies("chat")[-1]), SAVE in "\n".join(archived)
        lost += [(number, answered.matched)] if not any(is_there) else []
        asked.append(answered.message)
    assert lost == []
