from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.transfer import export_lines, import_lines
from graph.value.error import BusyError, InputError
from graph.value.event import Folded
from tests.fake.body import shape
from tests.fake.chat import Chat, question
from tests.fake.compacting import COMPACTING, ask_until_compacted
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI

# Each strategy folds within seven turns.
EARLY: dict[str, Any] = {
    "app_context_threshold": 500,
    "max_context_tokens": 1_000,
    "compaction_threshold": 0.4,
    "records_budget_tokens": 500,
    "merged_together": 2,
    "newest_records": 1,
    "merged_tokens": 200,
    "window_turns": 2,
}


def resets(chat: Chat) -> tuple[tuple[int, ...], bool]:
    shown = chat.service.turns.transcript(chat.session_id)
    return shown.reset_after, shown.can_undo_reset


def figures(chat: Chat) -> tuple[object, ...]:
    folds, session_id = chat.service.folds, chat.session_id
    return (
        folds.records(session_id),
        folds.past_records(session_id, last=99),
        folds.statistics(session_id),
        folds.chart(session_id),
        folds.gauge(session_id),
        folds.compactions(session_id),
    )


@pytest.mark.parametrize(
    "strategy", ["interval", *(pytest.param(name, marks=pytest.mark.slow) for name in ("compaction", "window"))]
)
def test_an_undone_reset_never_was(chat_with: OpenChat, server: FakeOpenAI, strategy: str) -> None:
    chat = chat_with(**EARLY, context_strategy=strategy)
    twin = Chat(chat.service)
    for one in (twin, chat):
        one.ask(1, 7)
    before = figures(chat)
    assert bool(before[0]) == (strategy != "window")
    chat.service.folds.reset(chat.session_id)
    assert chat.service.folds.records(chat.session_id) == ()
    assert chat.service.folds.past_records(chat.session_id, last=99) == before[0]
    assert resets(chat) == ((7,), True)
    chat.service.folds.undo_reset(chat.session_id)
    assert resets(chat) == ((), False)
    assert figures(chat) == before
    for one in (twin, chat):
        one.ask(8, 10)
    bodies = [body["messages"] for body in server.bodies("chat")[-6:]]
    assert bodies[:3] == bodies[3:]
    assert [record.summary for record in figures(chat)[0]] == [record.summary for record in figures(twin)[0]]  # type: ignore[attr-defined]  # records


def test_a_reset_is_undone_to_the_reset_before_it(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    chat.service.folds.reset(chat.session_id)
    chat.service.folds.reset(chat.session_id)  # there is nothing left to forget
    chat.ask(5, 6)
    chat.service.folds.reset(chat.session_id)
    assert resets(chat) == ((4, 6), True)
    chat.service.folds.undo_reset(chat.session_id)
    assert resets(chat) == ((4,), False)
    with pytest.raises(InputError, match="no_reset"):
        chat.service.folds.undo_reset(chat.session_id)
    chat.ask(7, 7)
    assert shape(server.bodies("chat")[-1]) == [(5, 6), 7]


def test_a_reset_can_no_longer_be_undone_once_a_turn_was_run(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    with pytest.raises(InputError, match="no_reset"):
        chat.service.folds.undo_reset(chat.session_id)
    chat.service.folds.reset(chat.session_id)
    server.script(hang("여기까지"))
    chat.start(question(3))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    with pytest.raises(BusyError):
        chat.service.folds.undo_reset(chat.session_id)
    assert resets(chat) == ((2,), False)
    chat.service.turns.stop(chat.session_id)
    chat.events()
    with pytest.raises(InputError, match="no_reset"):
        chat.service.folds.undo_reset(chat.session_id)
    assert resets(chat) == ((2,), False)


def test_a_turn_that_is_run_again_stands_behind_the_reset(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.service.folds.reset(chat.session_id)
    chat.regenerate()
    assert resets(chat) == ((), False)
    with pytest.raises(InputError, match="no_reset"):
        chat.service.folds.undo_reset(chat.session_id)
    chat.ask(2, 3)
    chat.service.folds.reset(chat.session_id)
    chat.regenerate()
    assert resets(chat) == ((2,), False)
    # Two resets around such a turn are one.
    chat.service.folds.reset(chat.session_id)
    chat.regenerate()
    assert resets(chat) == ((2,), False)


def test_a_record_that_covers_a_turn_which_is_run_again_is_no_past_one(chat_with: OpenChat) -> None:
    chat = chat_with(context_strategy="compaction", max_context_tokens=100_000, preserve_recent_messages=1)
    chat.ask(1, 6)
    chat.service.folds.compact(chat.session_id)
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.to_position == 11
    chat.service.folds.reset(chat.session_id)
    assert chat.service.folds.past_records(chat.session_id, last=9) == (record,)
    chat.regenerate()
    chat.ask(7, 7)
    chat.service.folds.reset(chat.session_id)
    assert chat.service.folds.past_records(chat.session_id, last=9) == ()


@pytest.mark.usefixtures("true_usage")
def test_a_restored_compaction_stays_restored_through_a_reset_that_is_undone(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**COMPACTING)
    ask_until_compacted(chat)
    (record,) = chat.service.folds.compactions(chat.session_id)
    chat.service.folds.restore(chat.session_id, record.id)
    chat.service.folds.reset(chat.session_id)
    chat.service.folds.undo_reset(chat.session_id)
    paid = len(server.bodies("summary"))
    assert not [event for event in chat.say("네, 다음 항목으로 갑시다.") if isinstance(event, Folded)]
    chat.wait_for_folds()
    assert len(server.bodies("summary")) == paid


def test_another_server_undoes_what_this_one_reset(open_chat: OpenChat, server: FakeOpenAI) -> None:
    with open_chat() as chat:
        chat.ask(1, 4)
        chat.service.folds.reset(chat.session_id)
    with open_chat(chat.session_id) as chat:
        chat.service.folds.undo_reset(chat.session_id)
        chat.ask(5, 5)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5]


def test_a_reset_is_exported_and_imported(open_chat: OpenChat, tmp_path: Path) -> None:
    chat = open_chat()
    chat.ask(1, 3)
    chat.service.folds.reset(chat.session_id)
    lines = list(export_lines(chat.service._engine.stores.chat.database))  # noqa: SLF001  # nobody but a test has to know
    reset = [line for line in lines if '"context_reset"' in line]
    assert len(reset) == 1
    with closing(open_sqlite(tmp_path / "other.db", busy_timeout_seconds=10)) as other:
        assert import_lines(other, lines, owner="me").session_count == 1
        imported = [line for line in export_lines(other) if '"context_reset"' in line]
        assert imported == [reset[0].replace('"local"', '"me"')]
