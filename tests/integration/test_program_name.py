from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fake.chat import Chat, question
from tests.fake.openai_reply import failure
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_chat import ServedChat


@pytest.fixture
def served(chat: Chat) -> Iterator[ServedChat]:
    with ServedChat(chat.service, tools="recall") as opened:
        yield opened


def tools_of(server: FakeOpenAI) -> list[str]:
    return [each["function"]["name"] for each in server.bodies("chat")[-1].get("tools", ())]


def test_a_chat_that_a_program_begins_has_its_name(served: ServedChat, chat: Chat) -> None:
    session_id = served.send({"message": question(1)}).told[0].value["metadata"]["conversationId"]
    (item,) = chat.service.sessions.list()
    assert (item.session_id, item.client) == (session_id, "editor")
    assert Chat(chat.service, session_id).last_turn.client == "editor"


def test_a_chat_that_the_page_begins_stays_the_pages(served: ServedChat, chat: Chat) -> None:
    chat.say(question(1))
    served.send({"message": question(2), "session_id": chat.session_id})
    (item,) = chat.service.sessions.list()
    assert item.client == ""
    assert [turn.client for turn in chat.turns] == ["", "editor"]


def test_a_turn_that_a_program_has_answered_again_has_its_name_and_its_tools(
    served: ServedChat, server: FakeOpenAI, chat: Chat
) -> None:
    server.script(failure(401))
    chat.say(question(1))
    assert len(tools_of(server)) > 1
    for path in ("retry", "regenerate"):
        assert served.ask("POST", f"/sessions/{chat.session_id}/{path}").status == 202
        chat.events()
        assert tools_of(server) == ["recall"]
        assert chat.last_turn.client == "editor"
