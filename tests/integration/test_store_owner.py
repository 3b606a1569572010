from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.core.text import plain_text
from graph.store.owner import WithdrawnOwner
from tests.fake.store import OWNER, StoreSet


def test_nobody_is_withdrawn_at_first(stores: StoreSet) -> None:
    assert not stores.owners.is_withdrawn(OWNER)
    assert stores.owners.withdrawn() == []


def test_a_withdrawal_counts_until_it_is_taken_back(stores: StoreSet) -> None:
    stores.owners.withdraw(OWNER)
    assert stores.owners.is_withdrawn(OWNER)
    assert not stores.owners.is_withdrawn("mallory")
    assert stores.owners.readmit(OWNER)
    assert not stores.owners.is_withdrawn(OWNER)
    assert not stores.owners.readmit(OWNER)


def test_a_second_withdrawal_changes_nothing(stores: StoreSet) -> None:
    stores.owners.withdraw(OWNER)
    since = stores.clock()
    stores.clock.move(60)
    stores.owners.withdraw(OWNER)
    assert stores.owners.withdrawn() == [WithdrawnOwner(OWNER, since)]


def test_sessions_of_a_withdrawn_owner_stay(stores: StoreSet) -> None:
    stores.make_session()
    stores.owners.withdraw(OWNER)
    assert stores.sessions.get("s1", OWNER).owner == OWNER


@pytest.mark.parametrize("owner", ["", "김민수", "https://id.example|한 사람", "a" * 10_000])
def test_any_owner_can_be_withdrawn(stores: StoreSet, owner: str) -> None:
    stores.owners.withdraw(owner)
    assert [kept.owner for kept in stores.owners.withdrawn()] == [owner]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(st.text())
def test_whoever_is_withdrawn_is_found_again_whatever_the_text(stores: StoreSet, owner: str) -> None:
    stores.owners.withdraw(owner)
    assert stores.owners.is_withdrawn(owner)
    assert plain_text(owner) in {kept.owner for kept in stores.owners.withdrawn()}
    assert stores.owners.readmit(owner)
