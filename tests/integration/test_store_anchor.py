from __future__ import annotations

import multiprocessing

import pytest
from langchain_core.messages import HumanMessage

from graph.recognise.client_chain import ChainKey, OpenAnchor
from graph.store.anchor import AnchorStore
from graph.store.database import Lease
from graph.store.stores import KEY_BYTES, ServerKeyStore
from graph.store.turn import TurnEnd
from graph.value.client import ClientMessage, ClientOptions, ClientRequest
from graph.value.error import LeaseLostError
from tests.fake.store import OWNER, SESSION, StoreSet, open_location

pytestmark = pytest.mark.both_engines

KEY = ChainKey(bytes(32))


def anchor_of(*texts: str, once: str = "") -> OpenAnchor:
    messages = tuple(ClientMessage("assistant" if index % 2 else "user", text) for index, text in enumerate(texts))
    return KEY.read(ClientRequest(messages, ClientOptions("editor"), idempotency_key=once), owner=OWNER).anchor


@pytest.fixture
def anchors(stores: StoreSet) -> AnchorStore:
    return AnchorStore(stores.database)


def begin(stores: StoreSet, lease: Lease, anchor: OpenAnchor) -> None:
    message = HumanMessage("Hi", id="q1")
    stores.turns.begin(lease, owner=OWNER, message=message, model="m", is_casual=False, anchor=anchor)


def test_anchor_is_written_with_its_turn_and_completed_with_its_first_end(
    stores: StoreSet, anchors: AnchorStore
) -> None:
    lease = stores.make_session()
    anchor = anchor_of("Hi", once="try")
    begin(stores, lease, anchor)
    assert anchor.idempotency is not None
    (asked,) = anchors.find(anchor.scope, "asked", [anchor.asked], limit=9)
    assert anchors.find(anchor.scope, "idempotency", [anchor.idempotency], limit=9) == (asked,)
    assert (asked.session_id, asked.turn, asked.attempt, asked.chain, asked.status) == (SESSION, 1, 1, None, "running")
    assert (asked.is_live, asked.is_last, asked.is_head) == (True, True, True)
    assert stores.clock.has_told(asked.created_at)
    ended = anchor.ended("Hello")
    stores.turns.finish(lease, 1, "finished", anchor=ended)
    stores.turns.finish(lease, 1, "stopped", anchor=anchor.ended("Hel"))
    found = [
        anchors.find(anchor.scope, "chain", [ended.chain or b""], limit=9),
        anchors.find(anchor.scope, "answer", [ended.answer or b""], limit=9),
    ]
    assert [(row.chain, row.status) for rows in found for row in rows] == [(ended.chain, "finished")] * 2


@pytest.mark.parametrize("status", ["stopped", "requires_action"])
def test_what_was_sent_of_an_unfinished_turn_is_known(stores: StoreSet, anchors: AnchorStore, status: TurnEnd) -> None:
    lease, anchor = stores.make_session(), anchor_of("Hi")
    begin(stores, lease, anchor)
    ended = anchor.ended("Hel")
    stores.turns.finish(lease, 1, status, partial_text="Hel", anchor=ended)
    assert ended.chain is not None
    assert [row.turn for row in anchors.find(anchor.scope, "chain", [ended.chain], limit=9)] == [1]


def test_attempt_before_is_live_no_more(stores: StoreSet, anchors: AnchorStore) -> None:
    lease, anchor = stores.make_session(), anchor_of("Hi")
    begin(stores, lease, anchor)
    stores.turns.finish(lease, 1, "finished", anchor=anchor.ended("Hello"))
    stores.turns.begin_attempt(lease, 1, model="m", anchor=anchor)
    stores.turns.finish(lease, 1, "finished", anchor=anchor.ended("Good day"))
    newest, oldest = anchors.find(anchor.scope, "asked", [anchor.asked], limit=9)
    assert (newest.attempt, newest.is_live, newest.chain) == (2, True, anchor.ended("Good day").chain)
    assert (oldest.attempt, oldest.is_live, oldest.chain) == (1, False, anchor.ended("Hello").chain)


def test_anchor_is_found_among_many_hashes_in_its_scope_until_its_session_is_deleted(
    stores: StoreSet, anchors: AnchorStore
) -> None:
    lease, anchor = stores.make_session(), anchor_of("Hi")
    others = [number.to_bytes(16, "big") for number in range(1_200)]  # more than one query takes
    stores.leases.release(lease)
    with pytest.raises(LeaseLostError):
        begin(stores, lease, anchor)
    assert anchors.find(anchor.scope, "asked", [*others, anchor.asked], limit=9) == ()
    begin(stores, stores.leases.acquire(SESSION), anchor)
    assert len(anchors.find(anchor.scope, "asked", [*others, anchor.asked], limit=9)) == 1
    assert anchors.find(b"elsewhere", "asked", [anchor.asked], limit=9) == ()
    assert anchors.turns(SESSION, anchor.scope) == {1}
    assert anchors.scopes(SESSION) == {anchor.scope}
    stores.sessions.delete(SESSION, OWNER)
    assert anchors.find(anchor.scope, "asked", [anchor.asked], limit=9) == ()


def get_key(location: tuple[str, str]) -> bytes:
    with open_location(*location) as stores:
        return ServerKeyStore(stores.database).get("anchor")


@pytest.mark.slow
def test_two_processes_at_once_make_one_key(stores: StoreSet) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        keys = pool.map(get_key, [stores.location] * 4, chunksize=1)
    assert len(set(keys)) == 1
    assert len(keys[0]) == KEY_BYTES
    assert ServerKeyStore(stores.database).get("other") != keys[0]
