from __future__ import annotations

import threading

import pytest

from graph.error import BusyError, ServerBusyError
from graph.event import TurnFinished, TurnStopped
from graph.view import TurnOptions
from tests.fake.body import content_of, faults, roles
from tests.fake.chat import Chat, question, text_in
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, hang, text
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.oracle import state_ids

STRATEGIES = ["interval", "rolling", "compaction", "window"]
OLD, NEW = "옛 답: 서버는 부산에 둡니다. ", "새 답: 서버는 대전에 둡니다. "


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("action", ["regenerate", "retry"])
def test_a_turn_that_is_run_again_after_a_reset_is_asked_its_question(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str, action: str
) -> None:
    chat = open_chat(context_strategy=strategy, max_context_tokens=100_000)
    chat.ask(1, 4)
    if action == "retry":
        server.script(failure(500))
    chat.say(question(5))
    chat.service.folds.reset(chat.session_id)
    assert isinstance(getattr(chat, action)()[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert (roles(body), content_of(body["messages"][1])) == (["system", "user"], question(5))
    chat.ask(6, 6)
    body = server.bodies("chat")[-1]
    told = "\n".join(content_of(message) for message in body["messages"])
    assert question(5) in told
    assert question(4) not in told
    assert faults(body["messages"]) == []


@pytest.mark.parametrize("strategy", ["rolling", "compaction"])
def test_a_slider_moved_while_an_answer_is_made_anew_keeps_no_thrown_away_one(
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
    for number in range(3, 9):
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
    chat.ask(9, 10)
    told = [content_of(message) for body in server.bodies("chat") for message in body["messages"]]
    assert [words for words in told if "옛 답" in words] == []


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


def test_a_refused_first_message_leaves_no_session(open_chat: OpenChat, server: FakeOpenAI) -> None:
    service = open_chat(concurrent_turns=1).service
    busy, refused = Chat(service), Chat(service)
    server.script(hang(is_silent=True))
    busy.start(question(1))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    with pytest.raises(ServerBusyError):
        refused.start(question(1))
    assert busy.rows("SELECT count(*) FROM session") == [(1,)]
    assert [item.session_id for item in service.sessions.list()] == [busy.session_id]
    service.turns.stop(busy.session_id)
    assert isinstance(busy.events()[-1], TurnStopped)


def test_a_refused_message_changes_no_setting(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    before = chat.view
    server.script(hang(is_silent=True))
    chat.start(question(2))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    with pytest.raises(BusyError):
        chat.start(question(3), options=TurnOptions(compression_rate=0.5, strategy="window", model="another"))
    chat.service.turns.stop(chat.session_id)
    chat.events()
    after = chat.view
    assert (after.compression_rate, after.strategy, after.model) == (
        before.compression_rate,
        before.strategy,
        before.model,
    )
    assert after.turn_count == 2


def test_a_message_that_cannot_be_committed_leaves_no_session(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.change("CREATE TRIGGER full_disk BEFORE INSERT ON message BEGIN SELECT RAISE(ABORT, 'refused'); END")
    other = Chat(chat.service)
    with pytest.raises(Exception, match="database"):
        other.start(question(1))
    assert chat.rows("SELECT count(*) FROM session") == [(1,)]


@pytest.mark.parametrize(
    ("opening", "sentence"),
    [
        ("Please list the steps of the move.", "(The user stopped the answer.)"),
        (question(1), "(사용자가 답변을 중지했습니다.)"),
    ],
)
def test_the_sentence_of_a_closed_turn_is_in_the_language_of_the_session(
    chat: Chat, server: FakeOpenAI, opening: str, sentence: str
) -> None:
    chat.say(opening)
    server.script(hang(is_silent=True))
    chat.start("1 + 1 = ?")
    server.wait_until(lambda fake: fake.hanging_count == 1)
    chat.service.turns.stop(chat.session_id)
    assert isinstance(chat.events()[-1], TurnStopped)
    (closed,) = chat.rows("SELECT content FROM message WHERE turn = 2 AND role = 'ai'")
    assert text_in(closed[0]) == sentence


def test_under_window_the_state_holds_the_last_turns_alone(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_strategy="window", window_turns=2)
    chat.ask(1, 9)
    assert len(state_ids(chat.service.settings, chat.session_id)) == 2 * 3
    chat.service.sessions.configure(chat.session_id, strategy="interval")
    chat.ask(10, 10)
    told = "\n".join(content_of(message) for message in server.bodies("chat")[-1]["messages"])
    assert question(1)[:12] in told
    assert len(state_ids(chat.service.settings, chat.session_id)) == 20 - 2 * sum(len(turns) for turns in chat.covered)
