from __future__ import annotations

import uuid
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.core.pin import BlockKind, ContextBlock
from graph.core.text import plain_text
from graph.store.schema import context_block_table
from graph.value.error import LeaseLostError, NotFoundError
from tests.fake.drawn import at_most
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = pytest.mark.both_engines

TEXTS = st.sampled_from(["a", "", "앞\x00뒤", "반쪽 \ud83d", "\ud83d\ude00 둘"]) | st.text()


def test_each_change_is_a_version_that_stays_readable(stores: StoreSet) -> None:
    lease = stores.make_session()
    for text in ("one", "two", *["two"] * 10, "one"):
        stores.blocks.keep(lease, "front", text, owner=OWNER)
    with stores.database.read() as connection:
        assert len(connection.execute(context_block_table.select()).all()) == 3
    stores.blocks.keep(lease, "volatile", "here", owner=OWNER)
    assert [stores.blocks.get(SESSION, "front", version).text for version in (1, 2, 3)] == ["one", "two", "one"]
    assert stores.blocks.newest(SESSION, "front") == ContextBlock("front", 3, "one")
    assert stores.blocks.get(SESSION, "volatile", 1).text == "here"
    with pytest.raises(NotFoundError):
        stores.blocks.get(SESSION, "front", 4)
    with pytest.raises(NotFoundError):
        stores.blocks.get(SESSION, "volatile", 2)
    retained = stores.blocks.newest(SESSION, "front")
    stores.sessions.update(SESSION, OWNER, strategy="rolling", compression_rate=0.5)
    stores.run_turn(lease, "one")
    assert stores.blocks.newest(SESSION, "front") == retained
    stores.leases.release(lease)
    with pytest.raises(LeaseLostError):
        stores.blocks.keep(lease, "front", "late", owner=OWNER)
    assert stores.blocks.newest(SESSION, "front") == retained


def test_sessions_have_blocks_of_their_own(stores: StoreSet) -> None:
    for name in ("one", "two"):
        stores.blocks.keep(stores.make_session(name), "front", f"front of {name}", owner=OWNER)
    assert stores.blocks.newest("two", "front") == ContextBlock("front", 1, "front of two")
    stores.sessions.delete("two", OWNER)
    assert stores.blocks.newest("two", "front") is None
    assert stores.blocks.newest("one", "front") is not None


@settings(max_examples=at_most(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(get_args(BlockKind)), TEXTS)))
def test_whatever_is_kept_comes_back_by_its_version(stores: StoreSet, retained: list[tuple[BlockKind, str]]) -> None:
    lease = stores.make_session(uuid.uuid4().hex)
    said: dict[BlockKind, list[str]] = {kind: [""] for kind in get_args(BlockKind)}
    for kind, text in retained:
        block = stores.blocks.keep(lease, kind, text, owner=OWNER)
        if said[kind][-1] != plain_text(text):
            said[kind].append(plain_text(text))
        assert block == (ContextBlock(kind, len(said[kind]) - 1, plain_text(text)) if text else None)
        assert stores.blocks.newest(lease.session_id, kind) == block
    for kind, texts in said.items():
        found = [stores.blocks.get(lease.session_id, kind, version).text for version in range(1, len(texts))]
        assert found == texts[1:]


def test_another_project_ends_the_front_and_what_was_sent_stays(stores: StoreSet) -> None:
    lease = stores.make_session()
    changes: tuple[dict[str, object], ...] = (
        {"project_root": ""},  # chosen anew, though it is the same
        {"project_root": "/srv/other"},
        {"has_memory": False},
    )
    for number, change in enumerate(changes):
        retained = stores.blocks.keep(lease, "front", "the first", owner=OWNER)
        assert retained == ContextBlock("front", 2 * number + 1, "the first")
        for _ in range(2):
            stores.sessions.update(SESSION, OWNER, **change)
            assert stores.blocks.newest(SESSION, "front") is None
    assert stores.blocks.get(SESSION, "front", 1).text == "the first"


def test_a_project_chosen_with_a_message_ends_the_front_in_its_transaction(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.blocks.keep(lease, "front", "the first", owner=OWNER)
    turn = stores.run_turn(lease, "one")
    stores.turns.begin_attempt(lease, turn.number, model="m", settings={"project_root": "/srv/app"})
    assert stores.blocks.newest(SESSION, "front") is None
    assert stores.sessions.get(SESSION, OWNER).project_root == "/srv/app"
