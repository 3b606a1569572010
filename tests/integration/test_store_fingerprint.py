from __future__ import annotations

import multiprocessing

import pytest
from langchain_core.messages import HumanMessage

from graph.recognise.client_chain import ChainKey, OpenFingerprint
from graph.store.database import Lease
from graph.store.fingerprint import FingerprintStore
from graph.store.stores import KEY_BYTES, ServerKeyStore
from graph.store.turn import TurnEnd
from graph.value.client import ClientMessage, ClientOptions, ClientRequest
from graph.value.error import LeaseLostError
from tests.fake.store import OWNER, SESSION, StoreSet, open_location

pytestmark = pytest.mark.both_engines

KEY = ChainKey(bytes(32))


def fingerprint_of(*texts: str, once: str = "") -> OpenFingerprint:
    messages = tuple(ClientMessage("assistant" if index % 2 else "user", text) for index, text in enumerate(texts))
    return KEY.read(ClientRequest(messages, ClientOptions("editor"), idempotency_key=once), owner=OWNER).fingerprint


@pytest.fixture
def fingerprints(stores: StoreSet) -> FingerprintStore:
    return FingerprintStore(stores.database)


def begin(stores: StoreSet, lease: Lease, fingerprint: OpenFingerprint) -> None:
    message = HumanMessage("Hi", id="q1")
    stores.turns.begin(lease, owner=OWNER, message=message, model="m", is_casual=False, fingerprint=fingerprint)


def test_fingerprint_is_written_with_its_turn_and_completed_with_its_first_end(
    stores: StoreSet, fingerprints: FingerprintStore
) -> None:
    lease = stores.make_session()
    fingerprint = fingerprint_of("Hi", once="try")
    begin(stores, lease, fingerprint)
    assert fingerprint.idempotency is not None
    (asked,) = fingerprints.find(fingerprint.scope, "asked", [fingerprint.asked], limit=9)
    assert fingerprints.find(fingerprint.scope, "idempotency", [fingerprint.idempotency], limit=9) == (asked,)
    assert (asked.session_id, asked.turn, asked.attempt, asked.chain, asked.status) == (SESSION, 1, 1, None, "running")
    assert (asked.is_live, asked.is_last) == (True, True)
    assert stores.clock.has_returned(asked.created_at)
    ended = fingerprint.ended("Hello")
    stores.turns.finish(lease, 1, "finished", fingerprint=ended)
    stores.turns.finish(lease, 1, "stopped", fingerprint=fingerprint.ended("Hel"))
    found = [
        fingerprints.find(fingerprint.scope, "chain", [ended.chain or b""], limit=9),
        fingerprints.find(fingerprint.scope, "answer", [ended.answer or b""], limit=9),
    ]
    assert [(row.chain, row.status) for rows in found for row in rows] == [(ended.chain, "finished")] * 2


@pytest.mark.parametrize("status", ["stopped", "requires_action"])
def test_what_was_sent_of_an_unfinished_turn_is_known(
    stores: StoreSet, fingerprints: FingerprintStore, status: TurnEnd
) -> None:
    lease, fingerprint = stores.make_session(), fingerprint_of("Hi")
    begin(stores, lease, fingerprint)
    ended = fingerprint.ended("Hel")
    stores.turns.finish(lease, 1, status, partial_text="Hel", fingerprint=ended)
    assert ended.chain is not None
    assert [row.turn for row in fingerprints.find(fingerprint.scope, "chain", [ended.chain], limit=9)] == [1]


def test_attempt_before_is_live_no_more(stores: StoreSet, fingerprints: FingerprintStore) -> None:
    lease, fingerprint = stores.make_session(), fingerprint_of("Hi")
    begin(stores, lease, fingerprint)
    stores.turns.finish(lease, 1, "finished", fingerprint=fingerprint.ended("Hello"))
    stores.turns.begin_attempt(lease, 1, model="m", fingerprint=fingerprint)
    stores.turns.finish(lease, 1, "finished", fingerprint=fingerprint.ended("Good day"))
    newest, oldest = fingerprints.find(fingerprint.scope, "asked", [fingerprint.asked], limit=9)
    assert (newest.attempt, newest.is_live, newest.chain) == (2, True, fingerprint.ended("Good day").chain)
    assert (oldest.attempt, oldest.is_live, oldest.chain) == (1, False, fingerprint.ended("Hello").chain)


def test_fingerprint_is_found_among_many_hashes_in_its_scope_until_its_session_is_deleted(
    stores: StoreSet, fingerprints: FingerprintStore
) -> None:
    lease, fingerprint = stores.make_session(), fingerprint_of("Hi")
    others = [number.to_bytes(16, "big") for number in range(1_200)]  # more than one query takes
    stores.leases.release(lease)
    with pytest.raises(LeaseLostError):
        begin(stores, lease, fingerprint)
    assert fingerprints.find(fingerprint.scope, "asked", [*others, fingerprint.asked], limit=9) == ()
    begin(stores, stores.leases.acquire(SESSION), fingerprint)
    assert len(fingerprints.find(fingerprint.scope, "asked", [*others, fingerprint.asked], limit=9)) == 1
    assert fingerprints.find(b"elsewhere", "asked", [fingerprint.asked], limit=9) == ()
    assert fingerprints.turns(SESSION, fingerprint.scope) == {1}
    assert fingerprints.scopes(SESSION) == {fingerprint.scope}
    stores.sessions.delete(SESSION, OWNER)
    assert fingerprints.find(fingerprint.scope, "asked", [fingerprint.asked], limit=9) == ()


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
