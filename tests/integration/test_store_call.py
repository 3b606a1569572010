from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.error import LeaseLostError
from tests.fake.store import OWNER, SESSION, StoreSet, open_store_set


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[StoreSet]:
    with open_store_set(tmp_path) as opened:
        yield opened


def test_newest_answered_call_comes_back_as_it_was(stores: StoreSet) -> None:
    hold = stores.make_session()
    stores.run_turn(hold, "one")
    assert stores.calls.last_answered(SESSION) is None
    answered = stores.make_call("c2", 1, ordinal=2, usage_input_tokens=110, usage_cached_tokens=64)
    stores.calls.add(hold, answered, OWNER)
    stores.calls.add(hold, stores.make_call("c1", 1), OWNER)
    stores.calls.add(hold, stores.make_call("c3", 1, ordinal=3, error_code="provider"), OWNER)
    stores.calls.add(hold, stores.make_call("c4", 1, ordinal=4, kind="reasoning"), OWNER)
    assert stores.calls.last_answered(SESSION) == answered


def test_call_needs_the_lease(stores: StoreSet) -> None:
    hold = stores.make_session()
    stores.run_turn(hold, "one")
    stores.leases.release(hold)
    with pytest.raises(LeaseLostError):
        stores.calls.add(hold, stores.make_call("c1", 1), OWNER)
    assert stores.calls.series(SESSION) == []


def test_series_has_the_last_answer_call_of_each_present_attempt(stores: StoreSet) -> None:
    hold = stores.make_session()
    stores.run_turn(hold, "one")
    stores.run_turn(hold, "two")
    stores.turns.begin_attempt(hold, 2, model="m")
    calls = [
        stores.make_call("old", 2, ordinal=9, sent_tokens=1, full_tokens=1),
        stores.make_call("b", 2, attempt=2, ordinal=2, sent_tokens=60, full_tokens=90),
        stores.make_call("a", 2, attempt=2, ordinal=1, sent_tokens=50, full_tokens=80),
        stores.make_call("aside", 2, attempt=2, ordinal=3, kind="reasoning", sent_tokens=7, full_tokens=7),
        stores.make_call("first", 1, sent_tokens=20, full_tokens=20),
    ]
    for call in calls:
        stores.calls.add(hold, call, OWNER)
    assert stores.calls.series(SESSION) == [(1, 20, 20), (2, 60, 90)]


def test_unsent_is_over_all_answer_calls_that_worked(stores: StoreSet) -> None:
    hold = stores.make_session()
    assert stores.calls.unsent_tokens(SESSION) == 0
    stores.run_turn(hold, "one")
    stores.calls.add(hold, stores.make_call("a", 1, sent_tokens=100, full_tokens=300), OWNER)
    stores.calls.add(hold, stores.make_call("b", 1, ordinal=2, sent_tokens=100, full_tokens=150), OWNER)
    stores.calls.add(hold, stores.make_call("c", 1, ordinal=3, error_code="provider"), OWNER)
    stores.calls.add(hold, stores.make_call("d", 1, ordinal=4, kind="reasoning"), OWNER)
    assert stores.calls.unsent_tokens(SESSION) == 250


def test_correction_is_taken_from_the_last_twenty_reports(stores: StoreSet) -> None:
    hold = stores.make_session()
    assert stores.calls.correction(SESSION) == 1.0
    stores.run_turn(hold, "one")
    stores.calls.add(hold, stores.make_call("silent", 1, ordinal=0), OWNER)
    assert stores.calls.correction(SESSION) == 1.0
    stores.calls.add(hold, stores.make_call("old", 1, usage_input_tokens=10), OWNER)
    assert stores.calls.correction(SESSION) == 0.5
    for number in range(2, 22):
        stores.calls.add(hold, stores.make_call(f"c{number}", 1, ordinal=number, usage_input_tokens=120), OWNER)
    assert stores.calls.correction(SESSION) == pytest.approx(1.2)
    stores.calls.add(hold, stores.make_call("wild", 1, ordinal=99, usage_input_tokens=1_000_000), OWNER)
    assert stores.calls.correction(SESSION) == 2.0
