"""What a page is told of the sessions it shows, whoever has changed them, and what it costs while nothing happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from graph.service import ChatService
from graph.value.error import NotFoundError
from graph.worker.session_watcher import WATCH_SECONDS, Mark
from tests.fake.chat import Chat
from tests.fake.open_chat import OpenChat

pytestmark = [pytest.mark.both_engines]

SEEN_SECONDS = 10  # 1.5 where nothing else runs


class Tab:
    """A tab that looks at the session whenever it is told to."""

    def __init__(self, chat: Chat, name: str) -> None:
        self.name = name
        self.chat = chat
        self.told = threading.Event()
        self.is_there = True
        self.follow(chat.service.sessions.mark(chat.session_id))

    def follow(self, seen: Mark | None) -> None:
        self.chat.service.sessions.follow(self.chat.session_id, self.name, self._wake, seen=seen)

    def _wake(self) -> bool:
        self.told.set()
        if self.is_there:
            with suppress(NotFoundError):  # deleted: it shows another page
                self.follow(self.chat.service.sessions.mark(self.chat.session_id))
        return self.is_there

    def is_told(self, change: Callable[[], object]) -> bool:
        self.told.clear()
        change()
        return self.told.wait(SEEN_SECONDS)

    def leave(self) -> None:
        self.chat.service.sessions.leave(self.name)


@contextmanager
def noted_statements() -> Iterator[list[str]]:
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield seen
    event.remove(Engine, "before_cursor_execute", note)


def statements_while(seconds: float) -> list[str]:
    with noted_statements() as seen:
        time.sleep(seconds)
    return seen


def test_a_tab_is_told_of_every_change_of_its_session_and_of_the_list(open_chat: OpenChat) -> None:
    with open_chat() as chat:
        chat.say("두 탭에서 볼 말입니다.")
        service, session_id = chat.service, chat.session_id
        elsewhere = open_chat().service
        other = Chat(elsewhere)
        changes: dict[str, Callable[[ChatService], object]] = {
            "a setting": lambda by: by.sessions.configure(session_id, strategy="window"),
            "it back": lambda by: by.sessions.configure(session_id, strategy="interval"),
            "a title": lambda by: by.sessions.rename(session_id, "새 이름"),
            "a reset": lambda by: by.folds.reset(session_id),
            "its undo": lambda by: by.folds.undo_reset(session_id),
            "another session": lambda by: Chat(by, other.session_id).say("다른 대화의 말입니다."),
            "another title": lambda by: by.sessions.rename(other.session_id, "다른 이름"),
        }
        tab = Tab(chat, "a tab")
        missed = [
            (name, where)
            for where, by in {"here": service, "elsewhere": elsewhere}.items()
            for name, change in changes.items()
            if not tab.is_told(partial(change, by))
        ]
        assert tab.is_told(partial(elsewhere.sessions.delete, other.session_id))
        assert tab.is_told(partial(elsewhere.sessions.delete, session_id))
        tab.leave()
    assert not missed


def test_many_tabs_at_rest_cost_one_statement_a_second_and_none_costs_nothing(open_chat: OpenChat) -> None:
    with open_chat() as chat:
        chat.say("아무 일도 없을 대화입니다.")
        chat.wait_for_folds()
        chat.service.sessions.mark(chat.session_id)
        tabs = [Tab(chat, f"tab {number}") for number in range(20)]
        time.sleep(2 * WATCH_SECONDS)
        for tab in tabs:
            tab.told.clear()
        at_rest = statements_while(4 * WATCH_SECONDS)
        assert not any(tab.told.is_set() for tab in tabs)
        assert 1 <= len(at_rest) <= 8
        assert len({*at_rest}) == 1
        for tab in tabs:
            tab.is_there = False
            tab.follow(None)
        chat.wait_until(lambda: not statements_while(2 * WATCH_SECONDS))


def test_what_a_page_reads_at_once_shares_what_is_the_same(chat: Chat) -> None:
    chat.say("한 번만 읽을 대화입니다.")
    chat.wait_for_folds()
    service, session_id, known = chat.service, chat.session_id, dict[Hashable, Any]()
    reads: list[Callable[[], object]] = [
        partial(service.sessions.get, session_id),
        partial(service.folds.pins, session_id),
        partial(service.folds.next_fold, session_id, strategy="interval"),
        partial(service.folds.gauge, session_id),
    ]
    alone = [read() for read in reads]
    with service.sessions.sharing(known), noted_statements() as shared:
        assert [read() for read in reads] == alone
    assert len({*shared}) == len(shared)
    with noted_statements() as each:
        assert [read() for read in reads] == alone
    assert len(each) > len(shared)
