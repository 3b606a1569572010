from __future__ import annotations

from graph.strategy.base import Limits
from graph.view import NextFold
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, text
from tests.fake.openai_server import FakeOpenAI


def following(chat: Chat) -> NextFold:
    return chat.service.folds.next_fold(chat.session_id, strategy=chat.view.strategy)


def test_before_the_first_message_the_first_block_is_said(chat: Chat) -> None:
    assert chat.service.folds.next_fold(None, strategy="interval") == NextFold(turns=(1, 2, 3), turns_left=3)


def test_what_was_said_to_be_folded_next_is_folded_next(chat: Chat) -> None:
    chat.ask(1, 3)
    first = following(chat)
    assert (first.turns, first.turns_left, first.is_due) == ((1, 2, 3), 0, True)
    chat.ask(4, 5)
    (record,) = chat.service.folds.records(chat.session_id)
    assert (record.turns, record.original_chars, record.target_chars) == (
        first.turns,
        first.original_chars,
        first.summary_chars,
    )
    said = sum(len(turn.user_text + turn.answer_text) for turn in chat.turns[3:])
    assert following(chat) == NextFold(
        turns=(4, 5, 6), turns_left=1, original_chars=said, summary_chars=int(said * record.compression_rate)
    )


def test_a_block_that_will_stand_word_for_word_is_said_to(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("네."), text("네."), text("네."))
    for word in ("하나", "둘", "셋"):
        chat.say(f"{word}만 적어 두세요.")
    first = following(chat)
    assert first.original_chars == first.summary_chars < 100
    chat.ask(4, 4)
    (record,) = chat.service.folds.records(chat.session_id)
    assert (record.kind, record.original_chars) == ("verbatim", first.original_chars)


def test_the_length_follows_the_rate(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.service.sessions.configure(chat.session_id, compression_rate=0.5)
    assert following(chat).summary_chars == int(following(chat).original_chars * 0.5)


def test_after_a_reset_the_next_block_begins_behind_it(chat: Chat) -> None:
    chat.ask(1, 4)
    chat.service.folds.reset(chat.session_id)
    assert following(chat) == NextFold(turns=(5, 6), turns_left=2, is_reset=True)
    chat.ask(5, 7)
    assert chat.covered == [(5, 6)]


def test_a_block_that_failed_stays_due(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(500), kind="summary")
    chat.ask(1, 3)
    assert (following(chat).is_due, chat.view.fold_failures) == (True, 1)


def test_an_open_turn_is_not_counted(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    chat.ask(1, 1)
    answered = following(chat)
    gate = server.script(failure(500))
    chat.start(question(2))
    chat.wait_until(lambda: gate.is_asked_for)
    chat.events()
    assert following(chat).turns_left == 1
    assert following(chat).original_chars > answered.original_chars


def test_strategies_that_go_by_tokens_say_how_far_it_is(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.ask(1, 2)
    for strategy, threshold in (("rolling", Limits().app_context_threshold), ("compaction", 75_000)):
        chat.service.sessions.configure(chat.session_id, strategy=strategy)
        shown = following(chat)
        assert 0 < shown.tokens < shown.threshold_tokens <= threshold
        assert not shown.is_due
        assert not chat.service.folds.uses_rate(strategy)


def test_without_automatic_compaction_there_is_no_threshold(open_chat: OpenChat) -> None:
    chat = open_chat(enable_auto_compaction=False)
    assert chat.service.folds.next_fold(None, strategy="compaction") == NextFold()


def test_a_strategy_without_summaries_says_what_it_sends(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.ask(1, 4)
    chat.service.sessions.configure(chat.session_id, strategy="window")
    assert following(chat) == NextFold(sent_turns=Limits().window_turns)
