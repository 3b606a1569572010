from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import func, insert, inspect, select

from graph.store.archive import PinStore
from graph.store.call import SideCall, TitleStore
from graph.store.reset import ResetStore
from graph.store.schema import METADATA, anchor_table, image_table
from graph.store.session import SessionStore
from graph.value.error import NotFoundError
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = pytest.mark.both_engines


def make(stores: StoreSet, *titles: str) -> None:
    for title in titles:
        stores.sessions.create(title, OWNER, compression_rate=0.3, strategy="interval", title=title)
        lease = stores.leases.acquire(title)
        stores.run_turn(lease, "one")
        stores.leases.release(lease)
        stores.clock.move(1)


def found(stores: StoreSet, search: str, owner: str = OWNER, **limits: object) -> list[str]:
    return [row.title for row in stores.sessions.list(owner, search=search, **limits)]  # type: ignore[arg-type]  # limit and also, as a test names them


def test_create_is_idempotent_and_update_changes_only_what_is_given(stores: StoreSet) -> None:
    first = stores.sessions.create(SESSION, OWNER, compression_rate=0.3, strategy="interval", title="first")
    stores.clock.move(5)
    assert stores.sessions.create(SESSION, OWNER, compression_rate=0.5, strategy="other", title="second") == first
    assert (first.title, first.compression_rate, first.turn_count, first.is_open) == ("first", 0.3, 0, False)
    assert (first.project_root, first.has_memory) == ("", True)
    stores.sessions.update(SESSION, OWNER, compression_rate=0.5)
    stores.sessions.update(SESSION, OWNER, model="big")
    row = stores.sessions.get(SESSION, OWNER)
    assert (row.compression_rate, row.strategy, row.model) == (0.5, "interval", "big")


def test_an_unknown_level_of_thinking_counts_as_none(stores: StoreSet) -> None:
    make(stores, "mine")
    for stored, read in (("high", "high"), ("much", "")):
        stores.sessions.update("mine", OWNER, thinking=stored)
        assert stores.sessions.get("mine", OWNER).thinking == read
        assert [row.thinking for row in stores.sessions.list(OWNER)] == [read]


@pytest.mark.parametrize(
    "act",
    [
        lambda sessions: sessions.create("mine", "mallory", compression_rate=0.3, strategy="interval"),
        lambda sessions: sessions.get("mine", "mallory"),
        lambda sessions: sessions.rename("mine", "mallory", "stolen"),
        lambda sessions: sessions.update("mine", "mallory", compression_rate=0.5),
        lambda sessions: sessions.delete("mine", "mallory"),
    ],
)
def test_session_is_its_owners_alone(stores: StoreSet, act: Callable[[SessionStore], object]) -> None:
    make(stores, "mine")
    with pytest.raises(NotFoundError):
        act(stores.sessions)
    assert (found(stores, "", "mallory"), found(stores, "")) == ([], ["mine"])


def test_list_is_by_last_turn_and_bounded_but_for_the_session_asked_for(stores: StoreSet) -> None:
    make(stores, "a", "b", "c", "d")
    stores.begin(stores.leases.acquire("b"), "q1")
    stores.clock.move(1)
    stores.sessions.rename("c", OWNER, "c, renamed")
    assert found(stores, "") == ["b", "d", "c, renamed", "a"]
    assert found(stores, "", limit=1) == ["b"]
    assert found(stores, "", limit=2, also="a") == ["b", "d", "a"]
    assert found(stores, "", limit=2, also="d") == found(stores, "", limit=2, also="no-such-session") == ["b", "d"]
    assert found(stores, "b", limit=2, also="a") == ["b"]
    assert found(stores, "", "mallory", limit=2, also="a") == []


def test_sessions_without_a_turn_take_no_place_in_the_list(stores: StoreSet) -> None:
    make(stores, "old", "older")
    for number in range(5):
        stores.sessions.create(f"refused-{number}", OWNER, compression_rate=0.3, strategy="", title="old, refused")
    assert found(stores, "", limit=2) == ["older", "old"]
    assert (stores.sessions.count(OWNER), stores.sessions.count(OWNER, search="old")) == (2, 2)
    assert (stores.sessions.count(OWNER, search="older"), stores.sessions.count("mallory")) == (1, 0)


def test_search_takes_any_case_and_script_and_means_signs_literally(stores: StoreSet) -> None:
    make(stores, "Hello World", "100% sure", "snake_case", "back\\slash", "새 사용자 안내", "école")
    for search, titles in {
        "hello": ["Hello World"],
        "WORLD": ["Hello World"],
        "%": ["100% sure"],
        "_": ["snake_case"],
        "\\": ["back\\slash"],
        "사용자": ["새 사용자 안내"],
        unicodedata.normalize("NFD", "사용자"): ["새 사용자 안내"],
        "ÉCOLE": ["école"],
        "nothing like it": [],
    }.items():
        assert found(stores, search) == titles, search
    for search in ("가" * 60_000, "%" * 60_000, "ß" * 2_000):
        assert found(stores, search) == []
    stores.sessions.rename("école", OWNER, "lycée")
    assert (found(stores, "école"), found(stores, "lycée")) == ([], ["lycée"])


def test_session_runs_while_its_last_turn_does(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    assert not stores.sessions.get(SESSION, OWNER).is_open
    turn = stores.begin(lease, "q2")
    assert [row.is_open for row in stores.sessions.list(OWNER)] == [True]
    stores.turns.finish(lease, turn.number, "stopped")
    assert not stores.sessions.get(SESSION, OWNER).is_open


def add_rows_of_a_program(stores: StoreSet, session_id: str, number: int) -> None:
    columns = {"session_id": session_id, "owner": OWNER}
    fingerprint = {
        "scope": b"s",
        "asked": b"a",
        "sequence": number,
        "turn": 1,
        "attempt": 1,
        "created_at": stores.clock(),
    }
    with stores.database.write() as connection:
        connection.execute(insert(anchor_table), {**columns, **fingerprint, "first_position": 1, "first_call": 1})
        connection.execute(insert(image_table), {**columns, "hash": "h", "data_url": "data:,"})


def test_delete_takes_everything_of_the_session_and_nothing_else(stores: StoreSet) -> None:
    for number, name in enumerate((SESSION, "kept")):
        lease = stores.make_session(name)
        stores.run_turn(lease, "one")
        stores.turns.begin_attempt(lease, 1, model="m")
        add_rows_of_a_program(stores, name, number)
        record = stores.make_record(f"record-{name}").with_changes(thread_id=name)
        stores.records.start(record, owner=OWNER, expires_after_seconds=60)
        stores.calls.add(lease, stores.make_call(f"call-{name}", 1, session_id=name), OWNER)
        ResetStore(stores.database).begin_context(lease, 2)
        stores.blocks.keep(lease, "front", f"front of {name}", owner=OWNER)
        PinStore(stores.database).add(name, f"message-of-{name}", owner=OWNER)
        stores.vectors.keep(name, "m", {1: b"1234"})
    stores.sessions.delete(SESSION, OWNER)
    with pytest.raises(NotFoundError):
        stores.sessions.get(SESSION, OWNER)
    with stores.database.read() as connection:
        names = inspect(connection).get_table_names()
        left = {
            table.name: [
                tuple(row)
                for row in connection.execute(select(table.c.session_id, func.count()).group_by(table.c.session_id))
            ]
            for table in METADATA.tables.values()
            if "session_id" in table.c and table.name in names
        }
    assert left == {name: [("kept", 2 if name == "message" else 1)] for name in left}
    assert len(left) >= 11


def call_of(stores: StoreSet) -> SideCall:
    return SideCall(OWNER, "small", 120, 100, 9, None, 0.5, "", stores.clock())


def title_of(stores: StoreSet, session_id: str = SESSION) -> tuple[str, str]:
    row = stores.sessions.get(session_id, OWNER)
    return row.title, row.title_source


@pytest.mark.parametrize("source", ["", "user", "model"])
def test_title_is_kept_with_its_call_unless_there_is_one(stores: StoreSet, source: str) -> None:
    stores.make_session()
    titles = TitleStore(stores.database)
    if source:
        stores.sessions.rename(SESSION, OWNER, "내 제목", source=source)
    before = title_of(stores)
    assert not titles.keep(SESSION, replace(call_of(stores), error_code="deadline"), "")
    assert (titles.tries(SESSION), title_of(stores)) == (1, before)
    assert titles.keep(SESSION, call_of(stores), "서버 이전") == (not source)
    assert (titles.tries(SESSION), title_of(stores)) == (2, before if source else ("서버 이전", "model"))


def test_no_title_is_kept_of_a_session_that_is_gone_or_anothers(stores: StoreSet) -> None:
    stores.make_session()
    stores.make_session("other")
    titles = TitleStore(stores.database)
    assert not titles.keep("nowhere", call_of(stores), "서버 이전")
    assert not titles.keep(SESSION, replace(call_of(stores), owner="mallory"), "서버 이전")
    titles.keep("other", call_of(stores), "다른 제목")
    assert (titles.tries(SESSION), titles.tries("nowhere"), title_of(stores)) == (0, 0, ("", ""))


def test_calls_for_titles_are_calls_of_no_turn(stores: StoreSet) -> None:
    lease = stores.make_session()
    titles, calls = TitleStore(stores.database), stores.calls
    for number, name in enumerate(("a", "b"), 1):
        stores.run_turn(lease, name)
        calls.add(lease, stores.make_call(name, number, usage_input_tokens=110), OWNER)
        titles.keep(SESSION, replace(call_of(stores), usage_input_tokens=1_000_000), "제목")
    assert calls.turns(SESSION) == (1, 2)
    assert [(call.id, call.ordinal) for turn in (1, 2) for call in calls.of_turn(SESSION, turn)] == [("a", 1), ("b", 1)]
    assert calls.recent(SESSION, is_branch=False).ratio == pytest.approx(1.1)
    assert calls.unsent_tokens(SESSION) == sum(full - sent for _, sent, full in calls.series(SESSION))
    assert len(calls.sent(SESSION)) == 2
