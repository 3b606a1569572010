"""A turn that is run again: another answer, or another try after a failure."""

from __future__ import annotations

import threading

import pytest

from graph.value.error import InputError
from graph.value.event import TurnFinished, TurnStarted
from tests.fake.body import content_of, faults, raw_turns, roles
from tests.fake.chat import Chat, question, text_in
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, text
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.oracle import state_ids

OLD, NEW, THIRD = "옛 답은 파랑입니다.", "새 답은 초록입니다.", "셋째 답은 노랑입니다."


def test_new_answer_counts_everywhere_and_old_ones_stay_in_the_archive(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(text(OLD), text(NEW), text(THIRD))
    chat.ask(2, 2)
    events = chat.regenerate()
    assert events[0] == TurnStarted(chat.session_id, 2, 2)
    assert isinstance(events[-1], TurnFinished)
    assert (chat.last_turn.answer_text, chat.last_turn.attempt, chat.last_turn.number) == (NEW, 2, 2)
    chat.regenerate()
    assert (chat.last_turn.answer_text, chat.last_turn.attempt) == (THIRD, 3)
    first, second, third = server.bodies("chat")[-3:]
    assert first == second == third
    chat.ask(3, 3)
    body = server.bodies("chat")[-1]
    assert [content_of(m) for m in body["messages"] if m["role"] == "assistant"][-1] == THIRD
    assert raw_turns(body) == [1, 2, 3]
    query = "SELECT content FROM message WHERE session_id = ? AND turn = 2 AND role = 'ai' ORDER BY position"
    assert [text_in(content) for (content,) in chat.rows(query, chat.session_id)] == [OLD, NEW, THIRD]


def test_fold_and_chart_count_the_last_attempt_alone(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text(OLD * 20), text(NEW))
    chat.ask(1, 1)
    chat.regenerate()
    chat.ask(2, 2)
    points = chat.service.folds.chart(chat.session_id)
    assert [point.turn for point in points] == [1, 2]
    assert points[1].sent_tokens == points[1].full_tokens
    chat.ask(3, 4)
    (summary,) = (str(body) for body in server.bodies("summary"))
    assert NEW in summary
    assert OLD not in summary
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.original_chars == sum(len(turn.user_text + turn.answer_text) for turn in chat.turns[:3])
    # The fold that a turn began with holds for its next attempt.
    chat.regenerate()
    first, again = server.bodies("chat")[-2:]
    assert first == again
    assert (chat.covered, len(server.bodies("summary"))) == ([(1, 2, 3)], 1)


def test_only_failed_turns_are_retried_and_finished_ones_answered_again(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    with pytest.raises(InputError, match="1"):
        chat.service.turns.retry(chat.session_id)
    server.script(failure(500))
    chat.regenerate()
    assert (chat.last_turn.status, chat.last_turn.attempt) == ("failed", 2)
    with pytest.raises(InputError, match="1"):
        chat.service.turns.regenerate(chat.session_id)
    assert isinstance(chat.retry()[-1], TurnFinished)
    assert (chat.last_turn.status, chat.last_turn.attempt) == ("finished", 3)
    chat.ask(2, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


@pytest.mark.parametrize(
    ("strategy", "action"),
    [("interval", "regenerate"), ("rolling", "retry"), ("compaction", "regenerate"), ("window", "retry")],
)
def test_turn_run_again_after_a_reset_is_asked_its_question(
    chat: Chat, server: FakeOpenAI, strategy: str, action: str
) -> None:
    chat.ask(1, 1)
    chat.service.sessions.configure(chat.session_id, strategy=strategy)
    chat.ask(2, 3)
    if action == "retry":
        server.script(failure(500))
    chat.say(question(4))
    chat.service.folds.reset(chat.session_id)
    assert isinstance(getattr(chat, action)()[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert (roles(body), content_of(body["messages"][1])) == (["system", "user"], question(4))
    chat.ask(5, 5)
    body = server.bodies("chat")[-1]
    sent = "\n".join(content_of(message) for message in body["messages"])
    assert question(4) in sent
    assert question(3) not in sent
    assert faults(body["messages"]) == []


@pytest.mark.parametrize("strategy", ["rolling", pytest.param("compaction", marks=pytest.mark.slow)])
def test_slider_moved_meanwhile_keeps_no_thrown_away_answer(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = open_chat(
        context_strategy=strategy,
        app_context_threshold=400,
        max_context_tokens=1_000,
        rolling_sends_unsummarised=True,
        turns_per_minute=10_000,
    )
    server.respond_with(with_newest_first)
    chat.ask(1, 2)
    for number in range(3, 7):
        server.script(text(OLD * 12), text(NEW * 12))
        chat.say(question(number))
        is_over = threading.Event()
        movers = [
            threading.Thread(target=move_slider, args=(chat, is_over, rates)) for rates in ((0.2, 0.4), (0.3, 0.5))
        ]
        for mover in movers:
            mover.start()
        ending = chat.regenerate()[-1]
        is_over.set()
        for mover in movers:
            mover.join()
        assert isinstance(ending, TurnFinished)
        chat.wait_for_folds()
    chat.ask(7, 8)
    sent = [content_of(message) for body in server.bodies("chat") for message in body["messages"]]
    assert [words for words in sent if "옛 답" in words] == []


def with_newest_first(body: Body) -> Reply:
    """Summaries tell what was said last, so that it shows which answer they were made from."""
    if kind_of(body) == "chat":
        return answer_body(body)
    source = content_of(body["messages"][-1]).split("</source>", maxsplit=1)[0]
    return text(f"<summary>{source[-300:]}</summary>")


def move_slider(chat: Chat, is_over: threading.Event, rates: tuple[float, ...]) -> None:
    while not is_over.is_set():
        for rate in rates:
            chat.service.sessions.configure(chat.session_id, compression_rate=rate)


def test_under_window_the_state_holds_the_last_turns_alone(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_strategy="window", window_turns=2)
    chat.ask(1, 6)
    assert len(state_ids(chat.service.settings, chat.session_id)) == 2 * 3
    chat.service.sessions.configure(chat.session_id, strategy="interval")
    chat.ask(7, 7)
    sent = "\n".join(content_of(message) for message in server.bodies("chat")[-1]["messages"])
    assert question(1)[:12] in sent
    assert len(state_ids(chat.service.settings, chat.session_id)) == 14 - 2 * sum(len(turns) for turns in chat.covered)
