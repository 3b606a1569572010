from __future__ import annotations

import unicodedata

import pytest
from sqlalchemy import func, insert, inspect, select

from graph.error import NotFoundError
from graph.store.pin import PinStore
from graph.store.reset import ResetStore
from graph.store.schema import METADATA, anchor_table, image_table
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = pytest.mark.both_engines


def make(stores: StoreSet, *titles: str) -> None:
    for title in titles:
        stores.sessions.create(title, OWNER, compression_rate=0.3, strategy="interval", title=title)
        lease = stores.leases.acquire(title)
        stores.run_turn(lease, "one")
        stores.leases.release(lease)
        stores.clock.move(1)


def found(stores: StoreSet, search: str) -> list[str]:
    return [row.title for row in stores.sessions.list(OWNER, search=search)]


def test_create_is_idempotent(stores: StoreSet) -> None:
    first = stores.sessions.create(SESSION, OWNER, compression_rate=0.3, strategy="interval", title="first")
    stores.clock.move(5)
    again = stores.sessions.create(SESSION, OWNER, compression_rate=0.5, strategy="other", title="second")
    assert again == first
    assert (first.title, first.compression_rate, first.turn_count, first.is_open) == ("first", 0.3, 0, False)


def test_session_is_its_owners_alone(stores: StoreSet) -> None:
    make(stores, "mine")
    with pytest.raises(NotFoundError):
        stores.sessions.create("mine", "mallory", compression_rate=0.3, strategy="interval")
    with pytest.raises(NotFoundError):
        stores.sessions.get("mine", "mallory")
    with pytest.raises(NotFoundError):
        stores.sessions.rename("mine", "mallory", "stolen")
    with pytest.raises(NotFoundError):
        stores.sessions.update("mine", "mallory", compression_rate=0.5)
    with pytest.raises(NotFoundError):
        stores.sessions.delete("mine", "mallory")
    assert stores.sessions.list("mallory") == ()
    assert found(stores, "") == ["mine"]


def test_list_is_by_last_turn_and_bounded(stores: StoreSet) -> None:
    make(stores, "a", "b", "c")
    stores.begin(stores.leases.acquire("a"), "q1")
    stores.clock.move(1)
    stores.sessions.rename("b", OWNER, "b, renamed")
    assert found(stores, "") == ["a", "c", "b, renamed"]
    assert [row.title for row in stores.sessions.list(OWNER, limit=1)] == ["a"]


def test_list_has_the_session_asked_for_though_it_is_behind_the_limit(stores: StoreSet) -> None:
    make(stores, "a", "b", "c", "d")

    def listed(also: str, *, owner: str = OWNER, search: str = "") -> list[str]:
        return [row.title for row in stores.sessions.list(owner, search=search, limit=2, also=also)]

    assert listed("a") == ["d", "c", "a"]
    assert listed("c") == listed("no-such-session") == ["d", "c"]
    assert listed("a", search="b") == ["b"]
    assert listed("a", owner="mallory") == []


def test_sessions_without_a_turn_take_no_place_in_the_list(stores: StoreSet) -> None:
    make(stores, "old", "older")
    for number in range(5):
        stores.sessions.create(f"refused-{number}", OWNER, compression_rate=0.3, strategy="", title="old, refused")
    assert [row.title for row in stores.sessions.list(OWNER, limit=2)] == ["older", "old"]
    assert (stores.sessions.count(OWNER), stores.sessions.count(OWNER, search="old")) == (2, 2)
    assert (stores.sessions.count(OWNER, search="older"), stores.sessions.count("mallory")) == (1, 0)


@pytest.mark.parametrize(
    ("search", "titles"),
    [
        ("hello", ["Hello World"]),
        ("WORLD", ["Hello World"]),
        ("%", ["100% sure"]),
        ("_", ["snake_case"]),
        ("\\", ["back\\slash"]),
        ("사용자", ["새 사용자 안내"]),
        (unicodedata.normalize("NFD", "사용자"), ["새 사용자 안내"]),
        ("ÉCOLE", ["école"]),
        ("nothing like it", []),
    ],
)
def test_search_takes_any_case_and_script_and_means_signs_literally(
    stores: StoreSet, search: str, titles: list[str]
) -> None:
    make(stores, "Hello World", "100% sure", "snake_case", "back\\slash", "새 사용자 안내", "école")
    assert found(stores, search) == titles


def test_rename_changes_what_search_finds(stores: StoreSet) -> None:
    make(stores, "before")
    stores.sessions.rename("before", OWNER, "after")
    assert (found(stores, "before"), found(stores, "after")) == ([], ["after"])


def test_update_changes_only_what_is_given(stores: StoreSet) -> None:
    make(stores, SESSION)
    stores.sessions.update(SESSION, OWNER, compression_rate=0.5)
    stores.sessions.update(SESSION, OWNER, model="big")
    row = stores.sessions.get(SESSION, OWNER)
    assert (row.compression_rate, row.strategy, row.model) == (0.5, "interval", "big")


def test_session_runs_while_its_last_turn_does(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    assert not stores.sessions.get(SESSION, OWNER).is_open
    turn = stores.begin(lease, "q2")
    assert [row.is_open for row in stores.sessions.list(OWNER)] == [True]
    stores.turns.finish(lease, turn.number, "stopped")
    assert not stores.sessions.get(SESSION, OWNER).is_open


def _mark(stores: StoreSet, session_id: str, number: int) -> None:
    """Adds the rows that only a program's turns have."""
    hashes = {"scope": b"s", "asked": b"a"}
    with stores.database.write() as connection:
        place = {"session_id": session_id, "owner": OWNER}
        connection.execute(
            insert(anchor_table),
            {
                **place,
                **hashes,
                "sequence": number,
                "turn": 1,
                "attempt": 1,
                "created_at": stores.clock(),
                "first_position": 1,
                "first_call": 1,
            },
        )
        connection.execute(insert(image_table), {**place, "hash": "h", "data_url": "data:,"})


def test_delete_takes_everything_of_the_session_and_nothing_else(stores: StoreSet) -> None:
    for number, name in enumerate((SESSION, "kept")):
        lease = stores.make_session(name)
        stores.run_turn(lease, "one")
        _mark(stores, name, number)
        record = stores.make_record(f"record-{name}").with_changes(thread_id=name)
        stores.records.start(record, owner=OWNER, expires_after_seconds=60)
        stores.calls.add(lease, stores.make_call(f"call-{name}", 1, session_id=name), OWNER)
        ResetStore(stores.database).begin_context(lease, 2)
        stores.blocks.keep(lease, "front", f"front of {name}", owner=OWNER)
        PinStore(stores.database).add(name, f"message-of-{name}", owner=OWNER)
    stores.sessions.delete(SESSION, OWNER)
    with pytest.raises(NotFoundError):
        stores.sessions.get(SESSION, OWNER)
    with stores.database.read() as connection:
        names = inspect(connection).get_table_names()
        left = {
            table.name: connection.execute(select(table.c.session_id, func.count()).group_by(table.c.session_id)).all()
            for table in METADATA.tables.values()
            if "session_id" in table.c and table.name in names
        }
    all_left = {
        "session": [("kept", 1)],
        "turn": [("kept", 1)],
        "message": [("kept", 2)],
        "search_session": [("kept", 1)],
        "record": [("kept", 1)],
        "context_reset": [("kept", 1)],
        "model_call": [("kept", 1)],
        "context_block": [("kept", 1)],
        "lease": [("kept", 1)],
        "anchor": [("kept", 1)],
        "image": [("kept", 1)],
        "pin": [("kept", 1)],
    }
    kept = {name: count for name, count in all_left.items() if name in names}
    assert {name: [tuple(row) for row in rows] for name, rows in left.items()} == kept
