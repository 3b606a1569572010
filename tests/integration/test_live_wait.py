from __future__ import annotations

import threading

from tests.fake.chat import Chat, question
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI

LONG_SECONDS = 20.0


def test_waiting_ends_with_the_next_piece_of_text(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("첫 마디"))
    chat.start(question(1))
    live = None
    while live is None or live.text != "첫 마디":
        live = chat.service.turns.live(chat.session_id, seen=live, wait_seconds=LONG_SECONDS)
    chat.service.turns.stop(chat.session_id)
    chat.events()


def test_waiting_ends_with_the_turn(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("끝까지 못 한 말"))
    chat.start(question(1))
    chat.wait_until_live(lambda live: bool(live.text))
    seen = chat.service.turns.live(chat.session_id)
    stopping = threading.Timer(0.2, chat.service.turns.stop, (chat.session_id,))
    stopping.start()
    after = chat.service.turns.live(chat.session_id, seen=seen, wait_seconds=LONG_SECONDS)
    while after is not None:
        after = chat.service.turns.live(chat.session_id, seen=after, wait_seconds=LONG_SECONDS)
    stopping.join()
    assert chat.last_turn.status == "stopped"


def test_waiting_without_news_ends_in_time_and_tells_what_is_known(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("그대로"))
    chat.start(question(1))
    chat.wait_until_live(lambda live: live.text == "그대로")
    seen = chat.service.turns.live(chat.session_id)
    assert chat.service.turns.live(chat.session_id, seen=seen, wait_seconds=0.05) == seen
    chat.service.turns.stop(chat.session_id)
    chat.events()


def test_an_idle_session_is_not_waited_for(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("답"))
    chat.ask(1, 1)
    assert chat.service.turns.live(chat.session_id, wait_seconds=LONG_SECONDS) is None
