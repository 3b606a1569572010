from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from graph.core.language import session_language
from graph.core.schedule import target_chars
from graph.error import InternalError, NotFoundError
from graph.event import TurnFinished
from graph.service import ChatService
from graph.service.example import EXAMPLE_MODEL, ExampleLanguage
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
        ("12,400", "86 GB", "9 to 18", "3~4 days", "October 14, 22:00", "Dana", "300 sec", "`wiki-1014.tar`", "15th"),
        ("$390", "$450", "4.2 seconds", "October 13", "1 second", "two emails", "23", "14"),
    ),
}


@pytest.mark.parametrize("language", ["ko", "en"])
def test_the_example_has_seven_turns_and_two_measured_folds(
    chat: Chat, server: FakeOpenAI, language: ExampleLanguage
) -> None:
    example = Chat(chat.service, chat.service.sessions.open_example(language))
    turns = example.turns
    assert [(turn.number, turn.status) for turn in turns] == [(number, "finished") for number in range(1, 8)]
    assert example.covered == [(1, 2, 3), (4, 5, 6)]
    for record, block, kept in zip(
        example.service.folds.records(example.session_id), (turns[:3], turns[3:6]), KEPT[language], strict=True
    ):
        said = "".join(turn.user_text + turn.answer_text for turn in block)
        assert record.original_chars == len(said)
        assert record.summary_chars == len(record.summary)
        assert record.target_chars == target_chars(len(said), 0.3)
        assert 0.27 < record.summary_chars / record.original_chars < 0.33
        assert record.summary_tokens < record.source_tokens
        assert (record.kind, record.outcome, record.model) == ("interval", "compressed", EXAMPLE_MODEL)
        assert (record.input_tokens, record.output_tokens) == (0, 0)
        for fact in kept:
            assert fact in said
            assert fact in record.summary
    archive = example.service._access.stores.archive  # noqa: SLF001  # nobody but a test has to know
    assert session_language(archive.opening(example.session_id)) == language
    assert server.bodies() == []


def test_it_is_opened_again_and_made_anew_only_when_deleted(chat: Chat) -> None:
    sessions = chat.service.sessions
    first = sessions.open_example("ko")
    sessions.rename(first, "내가 고친 이름")
    assert sessions.open_example("ko") == first
    assert [item.title for item in sessions.list()] == ["내가 고친 이름"]
    sessions.delete(first)
    assert Chat(chat.service, sessions.open_example("ko")).covered == [(1, 2, 3), (4, 5, 6)]
    assert sessions.count() == 1
    assert sessions.open_example("en") != first
    assert sessions.count() == 2


def test_presses_at_once_make_one(service: ChatService) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = {*pool.map(lambda _: service.sessions.open_example("ko"), range(4))}
    (session_id,) = made
    assert len(Chat(service, session_id).turns) == 7
    assert service.sessions.count() == 1


def test_nothing_is_left_of_one_that_could_not_be_made(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    records = chat.service._access.stores.records  # noqa: SLF001  # nobody but a test has to know
    with monkeypatch.context() as broken:
        broken.setattr(type(records), "adopt", lambda *_: False)
        with pytest.raises(InternalError):
            chat.service.sessions.open_example("ko")
    assert chat.rows("SELECT count(*) FROM session") == [(0,)]
    assert len(Chat(chat.service, chat.service.sessions.open_example("ko")).turns) == 7


def test_the_chat_goes_on_as_any_other(chat: Chat, server: FakeOpenAI) -> None:
    example = Chat(chat.service, chat.service.sessions.open_example("ko"))
    events = example.say(question(8))
    assert isinstance(events[-1], TurnFinished)
    sent = str(server.bodies("chat")[0]["messages"])
    assert "[1-3턴]" in sent
    assert "3~4일" in sent
    assert "전환은 10월 셋째 주에 하고 싶어" not in sent
    example.ask(9, 10)
    assert example.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]


def test_figures_are_true_of_a_chat_that_no_model_was_called_for(service: ChatService) -> None:
    session_id = service.sessions.open_example("en")
    sums = service.folds.statistics(session_id)
    records = service.folds.records(session_id)
    assert (sums.record_count, sums.folded_turn_count) == (2, 6)
    assert sums.original_chars == sum(record.original_chars for record in records)
    assert (sums.unsent_tokens, sums.fold_tokens) == (0, 0)
    assert service.folds.chart(session_id) == ()
    assert service.sessions.get(session_id).fold_failures == 0


def test_it_shows_folds_by_turns_whatever_the_servers_strategy_and_slider(open_chat: OpenChat) -> None:
    service = open_chat(context_strategy="rolling", compression_rate=0.5).service
    view = service.sessions.get(service.sessions.open_example("ko"))
    assert (view.strategy, view.compression_rate, view.turn_count) == ("interval", 0.3, 7)


def test_each_owner_has_one_of_his_own(open_chat: OpenChat) -> None:
    first = open_chat(turnfold_owner="first").service
    second = open_chat(turnfold_owner="second").service
    mine = first.sessions.open_example("ko")
    assert second.sessions.list() == ()
    assert second.sessions.open_example("ko") != mine
    with pytest.raises(NotFoundError):
        second.sessions.get(mine)
    assert [item.session_id for item in first.sessions.list()] == [mine]
