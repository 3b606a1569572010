from __future__ import annotations

import pytest

from component.wording import explain_error, words_of
from graph.error import BusyError, ServerBusyError, TurnRateError
from graph.event import TurnFinished, TurnStopped
from graph.metrics import Metrics
from graph.worker.limiter import TurnLimiter
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI


def test_one_turn_more_than_may_run_is_refused_and_leaves_nothing(open_chat: OpenChat, server: FakeOpenAI) -> None:
    service = open_chat(concurrent_turns=2).service
    first, second, third = Chat(service), Chat(service), Chat(service)
    server.script(hang("하나"), to=question(1))
    server.script(hang("둘"), to=question(2))
    first.start(question(1))
    second.start(question(2))
    with pytest.raises(ServerBusyError) as refused:
        third.start(question(3))
    assert "2" in refused.value.detail
    assert explain_error(words_of("en"), refused.value).startswith("There are many requests just now")
    assert third.rows("SELECT count(*) FROM message") == [(2,)]
    assert len(service.sessions.list()) == 2
    first.stop_when(lambda live: live.text == "하나")
    assert isinstance(third.say(question(3))[-1], TurnFinished)
    assert isinstance(second.stop_when(lambda live: live.text == "둘")[-1], TurnStopped)


LAST_QUESTION = "SELECT message_id FROM message WHERE role = 'human' ORDER BY position DESC LIMIT 1"


def test_a_place_is_given_back_however_a_turn_begins_or_ends(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1, turns_per_minute=6)
    chat.ask(1, 3)
    (known,) = chat.rows(LAST_QUESTION)[0]
    chat.service.turns.send(chat.session_id, question(3), message_id=known)
    chat.regenerate()
    hanging = server.script(hang(), to=question(4))
    chat.start(question(4))
    server.wait_until(lambda _: hanging.is_asked_for)
    with pytest.raises(BusyError):
        chat.start(question(5))
    chat.service.turns.stop(chat.session_id)
    chat.events()
    chat.retry()
    assert chat.last_turn.status == "finished"
    for begin_another in (lambda: chat.start(question(5)), chat.regenerate):
        with pytest.raises(TurnRateError, match=r"\d s"):
            begin_another()
    assert [turn.status for turn in chat.turns] == ["finished"] * 4
    assert chat.service.turns.send(chat.session_id, question(3), message_id=known) == 3


def test_the_minute_passes() -> None:
    now, owners = [0.0], list[str]()
    limiter = TurnLimiter(
        concurrent_turns=10, turns_per_minute=2, admit=owners.append, metrics=Metrics(), now_seconds=lambda: now[0]
    )
    limiter.begin("kim")
    now[0] = 30.0
    limiter.begin("kim")
    with pytest.raises(TurnRateError, match="30 s"):
        limiter.begin("kim")
    now[0] = 60.0
    limiter.begin("kim")
    with pytest.raises(TurnRateError):
        limiter.begin("kim")
