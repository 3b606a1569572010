"""Fifty turns of the real clients, over the real routes, the real service and a scripted endpoint."""

from __future__ import annotations

import pytest

from tests.fake.body import shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI
from tests.fake.real_client import REAL_CHATS, RealChat
from tests.fake.resending import counts
from tests.fake.served_door import OTHER_OWNER, OTHER_TOKEN, serve


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_long_chat_of_a_real_client_is_folded_like_the_pages(
    open_chat: OpenChat, server: FakeOpenAI, client: type[RealChat]
) -> None:
    chat = open_chat(turns_per_minute=10_000)
    chat.ask(1, 50)
    page, page_folds = server.bodies("chat"), server.bodies("summary")
    service = chat.service.for_owner(OTHER_OWNER)
    with serve(chat.service) as served:
        program = client(served.url, token=OTHER_TOKEN)
        for number in range(1, 51):
            told = program.ask(question(number))
            assert (told.turn, told.matched) == (number, "new" if number == 1 else "history")
            Chat(service, told.session_id).wait_for_folds()
    bodies = server.bodies("chat")[50:]
    assert bodies == page
    assert shape(bodies[-1]) == [*((first, first + 2) for first in range(1, 48, 3)), 49, 50]
    assert server.bodies("summary")[len(page_folds) :] == page_folds
    assert [item.turn_count for item in service.sessions.list()] == [50]
    assert counts(chat) == [2, 100, 200, 32]
