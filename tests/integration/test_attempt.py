from __future__ import annotations

import pytest

from graph.error import InputError
from graph.event import TurnFinished, TurnStarted
from tests.fake.body import content_of, faults, raw_turns
from tests.fake.chat import Chat, question, text_in
from tests.fake.openai_reply import failure, text
from tests.fake.openai_server import FakeOpenAI

OLD, NEW = "옛 답은 파랑입니다.", "새 답은 초록입니다."


def test_the_new_answer_counts_everywhere_and_the_old_one_stays_in_the_archive(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(text(OLD), text(NEW))
    chat.ask(2, 2)
    events = chat.regenerate()
    assert events[0] == TurnStarted(chat.session_id, 2, 2)
    assert isinstance(events[-1], TurnFinished)
    assert (chat.last_turn.answer_text, chat.last_turn.attempt, chat.last_turn.number) == (NEW, 2, 2)
    first, again = server.bodies("chat")[-2:]
    assert first == again
    chat.ask(3, 3)
    body = server.bodies("chat")[-1]
    assert [content_of(m) for m in body["messages"] if m["role"] == "assistant"][-1] == NEW
    assert raw_turns(body) == [1, 2, 3]
    kept = chat.rows("SELECT content FROM message WHERE turn = 2 AND role = 'ai' ORDER BY position")
    assert [text_in(content) for (content,) in kept] == [OLD, NEW]


def test_a_third_attempt_follows_the_second(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("첫째 답입니다."), text("둘째 답입니다."), text("셋째 답입니다."))
    chat.say(question(1))
    chat.regenerate()
    chat.regenerate()
    assert (chat.last_turn.answer_text, chat.last_turn.attempt) == ("셋째 답입니다.", 3)
    bodies = server.bodies("chat")
    assert bodies[0] == bodies[1] == bodies[2]


def test_a_regenerated_answer_that_fails_can_be_retried(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(failure(500))
    chat.regenerate()
    assert (chat.last_turn.status, chat.last_turn.attempt) == ("failed", 2)
    chat.retry()
    assert (chat.last_turn.status, chat.last_turn.attempt) == ("finished", 3)
    chat.ask(2, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_the_fold_that_a_turn_began_with_holds_for_its_next_attempt(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    chat.regenerate()
    first, again = server.bodies("chat")[-2:]
    assert first == again
    assert chat.covered == [(1, 2, 3)]
    assert len(server.bodies("summary")) == 1


def test_a_later_fold_takes_the_new_answer(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text(OLD), text(NEW))
    chat.ask(1, 1)
    chat.regenerate()
    chat.ask(2, 4)
    (summary,) = (str(body) for body in server.bodies("summary"))
    assert NEW in summary
    assert OLD not in summary
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.original_chars == sum(len(turn.user_text + turn.answer_text) for turn in chat.turns[:3])


def test_the_full_history_of_the_chart_counts_the_last_attempt_alone(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text(OLD * 20), text(NEW))
    chat.ask(1, 1)
    chat.regenerate()
    chat.ask(2, 2)
    points = chat.service.folds.chart(chat.session_id)
    assert [point.turn for point in points] == [1, 2]
    assert points[1].sent_tokens == points[1].full_tokens


def test_only_a_turn_that_ended_that_way_can_be_run_again(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    with pytest.raises(InputError, match="1"):
        chat.service.turns.retry(chat.session_id)
    server.script(failure(500))
    chat.say(question(2))
    with pytest.raises(InputError, match="2"):
        chat.service.turns.regenerate(chat.session_id)
    assert isinstance(chat.retry()[-1], TurnFinished)
