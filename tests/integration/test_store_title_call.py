from __future__ import annotations

from dataclasses import replace

import pytest

from graph.store.title_call import TitleCall, TitleStore
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = pytest.mark.both_engines


def call_of(stores: StoreSet, session_id: str = SESSION) -> TitleCall:
    return TitleCall(session_id, OWNER, "small", 120, 100, 9, None, 0.5, "", stores.clock())


def title_of(stores: StoreSet, session_id: str = SESSION) -> tuple[str, str]:
    row = stores.sessions.get(session_id, OWNER)
    return row.title, row.title_source


def test_a_title_is_kept_with_its_call(stores: StoreSet) -> None:
    stores.make_session()
    titles = TitleStore(stores.database)
    assert not titles.keep(replace(call_of(stores), error_code="deadline"), "")
    assert (titles.tries(SESSION), title_of(stores)) == (1, ("", ""))
    assert titles.keep(call_of(stores), "서버 이전")
    assert (titles.tries(SESSION), title_of(stores)) == (2, ("서버 이전", "model"))


@pytest.mark.parametrize("source", ["user", "model"])
def test_a_title_that_is_there_stays_and_the_call_counts(stores: StoreSet, source: str) -> None:
    stores.make_session()
    titles = TitleStore(stores.database)
    stores.sessions.rename(SESSION, OWNER, "내 제목", source=source)
    assert not titles.keep(call_of(stores), "서버 이전")
    assert (titles.tries(SESSION), title_of(stores)) == (1, ("내 제목", source))


def test_nothing_is_kept_of_a_session_that_is_gone_or_anothers(stores: StoreSet) -> None:
    stores.make_session()
    stores.make_session("other")
    titles = TitleStore(stores.database)
    assert not titles.keep(call_of(stores, "nowhere"), "서버 이전")
    assert not titles.keep(replace(call_of(stores), owner="mallory"), "서버 이전")
    titles.keep(call_of(stores, "other"), "다른 제목")
    assert (titles.tries(SESSION), titles.tries("nowhere"), title_of(stores)) == (0, 0, ("", ""))


def test_calls_for_titles_are_calls_of_no_turn(stores: StoreSet) -> None:
    lease = stores.make_session()
    titles = TitleStore(stores.database)
    stores.run_turn(lease, "one")
    stores.run_turn(lease, "two")
    stores.calls.add(lease, stores.make_call("a", 1, usage_input_tokens=90), OWNER)
    titles.keep(replace(call_of(stores), usage_input_tokens=1_000_000), "제목")
    stores.calls.add(lease, stores.make_call("b", 2, usage_input_tokens=90), OWNER)
    titles.keep(call_of(stores), "제목")
    calls = stores.calls
    assert calls.turns(SESSION) == (1, 2)
    assert [(call.id, call.ordinal) for turn in (1, 2) for call in calls.of_turn(SESSION, turn)] == [("a", 1), ("b", 1)]
    assert calls.correction(SESSION) < 1
    assert calls.unsent_tokens(SESSION) == sum(full - sent for _, sent, full in calls.series(SESSION))
    assert len(calls.sent(SESSION)) == 2
