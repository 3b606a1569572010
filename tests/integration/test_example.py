from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from graph.core.cost import read_prices
from graph.fold.spec import target_chars
from graph.service import ChatService
from graph.service.deletion import RETENTION_SECONDS
from graph.value.error import DatabaseError, NotFoundError
from graph.value.event import TurnFinished
from graph.value.view import EXAMPLE_MODEL
from prompt.system.framing import Language
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI

# What each fold must keep, letter for letter: range, prohibition, decision, figures, and the question that was asked.
KEPT = {
    "ko": (
        ("12,400개", "86GB", "9~18시", "3~4일", "10월 14일 22시", "김민수", "300초", "`wiki-1014.tar`", "15일 12시"),
        ("39만 원", "45만 원", "4.2초", "10월 13일", "1초 이하", "두 번만", "23개", "14개"),
    ),
    "en": (
        (
            "12,400",
            "86 GB",
            "9 to 18",
            "3 to 4 days",
            "October 14, 22:00",
            "Dana",
            "300 sec",
            "`wiki-1014.tar`",
            "15th",
        ),
        ("$390", "$450", "4.2 seconds", "October 13", "1 second", "two emails", "23", "14"),
    ),
}


@pytest.fixture
def alone(module_service: ChatService, server: FakeOpenAI) -> Chat:
    """A chat of an owner who has no other; `server` says what is sent."""
    assert server.bodies() == []
    return Chat(module_service.for_owner(f"owner-{uuid.uuid4().hex[:8]}"))


@pytest.mark.parametrize("language", ["ko", "en"])
def test_example_has_seven_turns_and_two_folds(alone: Chat, server: FakeOpenAI, language: Language) -> None:
    service = alone.service
    example = Chat(service, service.sessions.open_example(language))
    turns, records = example.turns, service.folds.records(example.session_id)
    assert [(turn.number, turn.status) for turn in turns] == [(number, "finished") for number in range(1, 8)]
    assert example.covered == [(1, 2, 3), (4, 5, 6)]
    for record, block, retained in zip(records, (turns[:3], turns[3:6]), KEPT[language], strict=True):
        said = "".join(turn.user_text + turn.answer_text for turn in block)
        assert record.original_chars == len(said)
        assert record.summary_chars == len(record.summary)
        assert record.target_chars == target_chars(len(said), 0.3)
        # Notes of so full a block take less than the rate says, and more than those of a plain one.
        assert 0.18 < record.summary_chars / record.original_chars < 0.3
        assert record.summary_tokens < record.source_tokens
        assert (record.kind, record.outcome, record.model) == ("interval", "compressed", EXAMPLE_MODEL)
        assert (record.input_tokens, record.output_tokens) == (0, 0)
        # Its card shows what a good fold looks like.
        kept, missing = len(record.kept_facts), len(record.missing_facts)
        assert kept >= 3
        assert kept / (kept + missing) >= 0.9
        assert record.invented_facts == ()
        for fact in retained:
            assert fact in said
            assert fact in record.summary
    stores = service._engine.stores.chat  # noqa: SLF001  # nobody but a test has to know
    assert stores.state(example.session_id).language == language
    sums = service.folds.statistics(example.session_id)
    assert (sums.record_count, sums.folded_turn_count) == (2, 6)
    assert sums.original_chars == sum(record.original_chars for record in records)
    assert example.view.fold_failures == 0
    assert server.bodies() == []


@pytest.mark.parametrize("language", ["ko", "en"])
def test_figures_and_inputs_of_an_example_are_those_that_its_turns_would_have(
    open_chat: OpenChat, language: Language
) -> None:
    prices = read_prices('{"currency": "USD", "models": {"scripted-model": {"input": 2, "output": 8}}}')
    service = open_chat(model_prices=prices).service
    example = Chat(service, service.sessions.open_example(language))
    points = service.folds.chart(example.session_id)
    assert [point.turn for point in points if point.has_fold] == [4, 7]
    assert all(point.sent_tokens == point.full_tokens for point in points[:3])
    savings = service.folds.savings(example.session_id)
    assert savings.net_tokens == sum(point.full_tokens - point.sent_tokens for point in points) > 1_000
    assert savings.has_example
    for point in points:
        (call,) = service.inputs.of_turn(example.session_id, point.turn)
        assert call.is_verified
        assert not call.is_sent
        assert (call.sent_tokens, call.full_tokens) == (point.sent_tokens, point.full_tokens)
    assert [block.kind for block in call.blocks] == ["system", "record", "record", "message", "tools"]
    # What was prepared is no cost of the user's; nor does it hide what his own turns cost.
    costs = service.costs.of_session(example.session_id)
    assert costs is not None
    assert not any((costs.total.amount, costs.total.is_estimate, costs.unpriced_calls))
    sent = example.say(question(8))
    assert isinstance(sent[-1], TurnFinished)
    later = service.costs.of_session(example.session_id)
    assert later is not None
    assert later.total.amount > 0
    # The prepared inputs are what the product does send: the next one has the last one as its beginning.
    (real,) = service.inputs.of_turn(example.session_id, 8)
    assert real.is_sent
    assert [block.id for block in real.blocks[:3]] == [block.id for block in call.blocks[:3]]
    assert real.blocks[-1].id == call.blocks[-1].id
    money = service.folds.savings(example.session_id).money
    assert money is not None
    assert money.net == money.unsent > 0


def test_example_is_opened_again_and_made_anew_only_when_deleted_for_good(alone: Chat) -> None:
    sessions = alone.service.sessions
    with ThreadPoolExecutor(4) as pool:
        (first,) = {*pool.map(lambda _: sessions.open_example("ko"), range(4))}
    assert len(Chat(alone.service, first).turns) == 7
    sessions.rename(first, "내가 고친 이름")
    assert sessions.open_example("ko") == first
    assert [item.title for item in sessions.list()] == ["내가 고친 이름"]
    sessions.delete_many([first])
    assert sessions.open_example("ko") == first
    assert sessions.get(first).title == "내가 고친 이름"
    sessions.delete_many([first])
    alone.change(f"UPDATE session SET deleted_at = deleted_at - {round(RETENTION_SECONDS * 1_000_000)}")  # noqa: S608  # a number of our own
    assert sessions.open_example("ko") == first
    assert sessions.get(first).title != "내가 고친 이름"
    sessions.delete(first)
    assert Chat(alone.service, sessions.open_example("ko")).covered == [(1, 2, 3), (4, 5, 6)]
    assert sessions.count() == 1
    assert sessions.open_example("en") != first
    assert sessions.count() == 2


def test_nothing_is_left_of_an_example_that_could_not_be_made(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.change("CREATE TRIGGER full BEFORE UPDATE OF adopted_at ON record BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises(DatabaseError):
        chat.service.sessions.open_example("ko")
    assert chat.rows("SELECT count(*) FROM session") == [(0,)]
    chat.change("DROP TRIGGER full")
    assert len(Chat(chat.service, chat.service.sessions.open_example("ko")).turns) == 7


def test_example_goes_on_as_any_other_chat(open_chat: OpenChat, server: FakeOpenAI) -> None:
    service = open_chat(context_strategy="rolling", compression_rate=0.5).service
    example = Chat(service, service.sessions.open_example("ko"))
    view = example.view
    assert (view.strategy, view.compression_rate, view.turn_count) == ("interval", 0.3, 7)
    assert isinstance(example.say(question(8))[-1], TurnFinished)
    sent = str(server.bodies("chat")[0]["messages"])
    assert "[1-3턴]" in sent
    assert "3~4일" in sent
    assert "전환은 10월 셋째 주에 하고 싶어" not in sent
    example.ask(9, 10)
    assert example.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]


def test_each_owner_has_an_example_of_his_own(alone: Chat) -> None:
    other = alone.service.for_owner(f"other-{uuid.uuid4().hex[:8]}")
    mine = alone.service.sessions.open_example("ko")
    assert other.sessions.list() == ()
    assert other.sessions.open_example("ko") != mine
    with pytest.raises(NotFoundError):
        other.sessions.get(mine)
    assert [item.session_id for item in alone.service.sessions.list()] == [mine]
