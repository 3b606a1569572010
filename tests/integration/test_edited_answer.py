"""An answer that a front end's user has edited: what it said before is neither sent nor archived from then on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest

from graph.service import ChatService
from prompt.system.framing import ASSISTANT_BEGAN
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_programs import ServedPrograms
from tests.integration.test_open_call import SAVE, Message, Wire, called, result, said, user

OLD: Final = "OLD-77: the meeting with Ann is saved for Friday at nine, and the room of the third floor is booked."
EDITED: Final = {
    "long": "NEW-88: nothing has been saved yet, as the calendar was closed; ask again.",
    "short": "NEW-88",
}


@pytest.fixture(scope="module")
def client(module_service: ChatService) -> Iterator[httpx2.Client]:
    with ServedPrograms(module_service) as served, served.client() as client:
        yield client


@pytest.fixture
def wire(chat: Chat, client: httpx2.Client, server: FakeOpenAI) -> Wire:
    return Wire(client, chat.session_id, server)


def check(wire: Wire, chat: Chat, asked: list[Message], named: dict[str, Any]) -> None:
    for number in (10, 11):
        answered = wire.post(*asked, **named)
        sent = str(wire.server.bodies("chat")[-1])
        assert ("OLD-77" in sent, "NEW-88" in sent) == (False, True), (number, answered)
        assert not any(sentence in sent for sentence in ASSISTANT_BEGAN.values())
        archived = str([(turn.user_text, turn.answer_text) for turn in Chat(chat.service, answered.session_id).turns])
        assert ("OLD-77" in archived, "NEW-88" in archived) == (False, True), (number, answered)
        asked += [answered.message, user(question(number + 10))]


@pytest.mark.parametrize("edit", EDITED)
@pytest.mark.parametrize(("turns", "place"), [(1, 1), (2, 1), (4, 1), (4, 2)])
@pytest.mark.parametrize("by", ["an id", "a user", "history alone"])
def test_an_edited_answer_is_the_answer(wire: Wire, chat: Chat, edit: str, turns: int, place: int, by: str) -> None:
    named: dict[str, Any] = {"headers": {"X-OpenWebUI-Chat-Id": wire.user}} if by == "an id" else {}
    named |= {"user": ""} if by == "history alone" else {}
    asked: list[Message] = []
    for number in range(1, turns + 1):
        asked.append(user(f"{question(number)} ({wire.user})"))
        wire.server.script(text(OLD if number == place else f"Answer {number} of {wire.user}."))
        asked.append(said(wire.post(*asked, **named).message["content"]))
    asked[2 * place - 1] = said(EDITED[edit])
    check(wire, chat, [*asked, user(question(9))], named)


@pytest.mark.parametrize("edit", EDITED)
@pytest.mark.parametrize("beside", ["", "Let me look."])
@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("behind", [0, 2])
@pytest.mark.parametrize("by", ["an id", "a user", "history alone"])
def test_an_edited_answer_behind_calls_is_the_answer(
    wire: Wire, chat: Chat, edit: str, beside: str, before: int, behind: int, by: str
) -> None:
    named: dict[str, Any] = {"headers": {"X-OpenWebUI-Chat-Id": wire.user}} if by == "an id" else {}
    named |= {"user": ""} if by == "history alone" else {}
    asked: list[Message] = []

    def go_on(first: int, count: int) -> None:
        for number in range(first, first + count):
            asked.append(user(f"{question(number)} ({wire.user})"))
            asked.append(said(wire.post(*asked, **named).message["content"]))

    go_on(1, before)
    asked.append(user(f"{SAVE} ({wire.user})"))
    wire.call(*asked, answer=beside, **named)
    asked += [called("call-1", content=beside), result("call-1", "saved")]
    wire.server.script(text(OLD))
    asked.append(wire.post(*asked, **named).message)
    place = len(asked) - 1
    go_on(4, behind)
    asked[place] = said(EDITED[edit])
    check(wire, chat, [*asked, user(question(9))], named)
