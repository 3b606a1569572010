from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graph.core.cost import FoldCounts
from graph.core.snapshot import without_overlap
from graph.store.active import DISCARDED_CODE
from graph.store.database import Lease
from graph.store.record import RecordStore, RecordSums, VersionStore
from graph.value.error import LeaseLostError, NotFoundError
from graph.value.record import Record
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = pytest.mark.both_engines

ROOT = Path(__file__).resolve().parents[2]
# Each of them lives until all have tried: a claim ends with its process.
EIGHT_START_THE_SAME = """
import os, sys, tempfile, time
from pathlib import Path
from tests.fake.crowd import run_crowd
from tests.fake.store import open_location

def work(number):
    with open_location(*sys.argv[1:]) as stores:
        is_mine = stores.start(stores.make_record(f"r{number}"))
        sys.stdout.write(f"{is_mine}\\n")
        Path(tried, str(number)).touch()
        while len(os.listdir(tried)) < 8:
            time.sleep(0.01)

with tempfile.TemporaryDirectory() as tried:
    run_crowd(8, work)
"""
ONE_STARTS = """
import os, sys
from tests.fake.store import open_location

with open_location(*sys.argv[1:]) as stores:
    stores.start(stores.make_record("dead"), seconds=600)
    os._exit(1)
"""


def uncovered(stores: StoreSet) -> list[Record]:
    standing = stores.records.standing(SESSION)
    return without_overlap(standing.set_aside, standing.active)


def ids(records: list[Record]) -> list[str]:
    return [record.id for record in records]


def test_record_comes_back_as_it_was_made(stores: StoreSet) -> None:
    stores.make_session()
    record = stores.make_record("r1").with_changes(
        input_tokens=900,
        output_tokens=120,
        is_usage=True,
        version=3,
        replaces="r0",
        sources=("ra", "rb"),
        seconds=1.5,
        kept_facts=("K7QX2M", "야간버스는 절대"),
        needed_rate=0.38,
        invented_facts=("990만 원",),
        missing_facts=("180만 원", '"python3.13t"'),
    )
    done = stores.complete(record, "요약\n'quoted'; 😀")
    assert stores.records.get(SESSION, "r1") == done
    with pytest.raises(NotFoundError):
        stores.records.get("s2", "r1")


def test_one_maker_at_a_time_for_the_same_sources(stores: StoreSet) -> None:
    stores.make_session()
    assert stores.start(stores.make_record("r1"))
    assert not stores.start(stores.make_record("r2"))
    assert stores.start(stores.make_record("other", 7, 12))
    assert [stores.records.get(SESSION, record_id).status for record_id in ("r1", "other")] == ["IN_PROGRESS"] * 2
    with pytest.raises(NotFoundError):
        stores.records.get(SESSION, "r2")


@pytest.mark.slow
def test_one_of_several_processes_gets_to_make_it(stores: StoreSet) -> None:
    stores.make_session()
    command = [sys.executable, "-c", EIGHT_START_THE_SAME, *stores.location]
    crowd = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert crowd.returncode == 0, crowd.stderr
    assert sorted(crowd.stdout.split()) == ["False"] * 7 + ["True"]


def test_maker_that_died_makes_room_when_its_time_is_up(stores: StoreSet) -> None:
    stores.make_session()
    assert stores.start(stores.make_record("slow", 7, 12), seconds=600)
    assert not stores.start(stores.make_record("hasty", 7, 12), seconds=10)
    assert stores.start(stores.make_record("dead"))
    key = stores.make_record("dead").source_key
    assert stores.records.in_progress(SESSION, key)
    stores.clock.move(60)
    assert not stores.records.in_progress(SESSION, key)
    assert stores.start(stores.make_record("next"))
    dead = stores.records.get(SESSION, "dead")
    assert (dead.status, dead.outcome, dead.error_code) == ("FAILED", "failed", "expired")
    assert stores.records.get(SESSION, "slow").status == "IN_PROGRESS"


def test_maker_whose_process_is_gone_makes_room_at_once(stores: StoreSet) -> None:
    stores.make_session()
    subprocess.run([sys.executable, "-c", ONE_STARTS, *stores.location], cwd=ROOT, timeout=60, check=False)
    dead = stores.records.get(SESSION, "dead")
    assert dead.status == "IN_PROGRESS"
    assert not stores.records.in_progress(SESSION, dead.source_key)
    assert stores.start(stores.make_record("next"))
    assert stores.records.in_progress(SESSION, dead.source_key)
    assert not stores.start(stores.make_record("third"))
    assert stores.records.get(SESSION, "dead").error_code == "expired"
    assert stores.records.failures_in_a_row(SESSION, 1) == (0, "")


@pytest.mark.sqlite
def test_maker_of_before_the_clock_was_set_back_makes_room_at_once(stores: StoreSet) -> None:
    stores.make_session()
    stores.clock.move(3_600)
    assert stores.start(stores.make_record("ahead"))
    stores.clock.move(-3_600)
    assert stores.start(stores.make_record("next"))
    assert not stores.start(stores.make_record("third"))
    assert stores.records.get(SESSION, "ahead").error_code == "expired"


def test_text_that_came_too_late_is_dropped_but_what_it_cost_counts(stores: StoreSet) -> None:
    stores.make_session()
    late = stores.make_record("late")
    assert stores.start(late)
    stores.clock.move(60)
    stores.complete(stores.make_record("next"))
    done = late.with_changes(status="COMPLETED", summary="too late", input_tokens=700, output_tokens=90, is_usage=True)
    assert not stores.records.end(done)
    retained = stores.records.get(SESSION, "late")
    assert (retained.status, retained.summary, retained.input_tokens, retained.is_usage) == ("FAILED", "", 700, True)
    assert stores.records.sums(SESSION).input_tokens == 700


def test_record_is_prepared_once_and_adopted_once(stores: StoreSet) -> None:
    lease, record = stores.make_session(), stores.make_record("r1")
    stores.fail("failed", "provider")
    assert stores.records.prepared(SESSION, record.source_key) is None
    done = stores.complete(record, "first")
    assert not stores.records.end(done.with_changes(summary="second", input_tokens=5))
    assert not stores.records.end(done.with_changes(status="FAILED"))
    assert stores.records.get(SESSION, "r1") == stores.records.prepared(SESSION, record.source_key) == done
    assert not stores.start(stores.make_record("r2"))
    assert not stores.records.adopt(stores.make_session("s2"), "r1")
    assert stores.records.active(SESSION) == []
    for _ in range(2):
        assert stores.records.adopt(lease, "r1")
    assert stores.records.prepared(SESSION, record.source_key) is None
    assert stores.records.active(SESSION) == [done]
    assert not stores.start(stores.make_record("r2"))


def test_adopt_needs_the_lease_and_a_completed_record(stores: StoreSet) -> None:
    lease = stores.make_session()
    assert stores.start(stores.make_record("running"))
    stores.fail("failed", "provider", from_position=7, to_position=12)
    stores.complete(stores.make_record("ready", 13, 18))
    for record_id in ("running", "failed", "unknown"):
        assert not stores.records.adopt(lease, record_id)
    stores.leases.release(lease)
    with pytest.raises(LeaseLostError):
        stores.records.adopt(lease, "ready")
    assert stores.records.active(SESSION) == []


def test_new_version_takes_the_place_of_the_old_one_which_stays_readable(stores: StoreSet) -> None:
    lease = stores.make_session()
    old = stores.complete(stores.make_record("v1"))
    stores.records.adopt(lease, "v1")
    stores.complete(stores.make_record("v2").with_changes(source_key="other rate", version=2, replaces="v1"))
    assert ids(stores.records.active(SESSION)) == ["v1"]
    stores.records.adopt(lease, "v2")
    assert ids(stores.records.active(SESSION)) == ["v2"]
    assert stores.records.get(SESSION, "v1") == old
    assert not stores.records.adopt(lease, "v1")


def test_what_is_covered_is_not_covered_twice(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.complete(stores.make_record("r1"))
    stores.complete(stores.make_record("same").with_changes(source_key="another rate"))
    stores.complete(stores.make_record("over", 6, 9))
    stores.records.adopt(lease, "r1")
    for record_id in ("same", "over"):
        assert not stores.records.adopt(lease, record_id)
    assert ids(stores.records.active(SESSION)) == ["r1"]


def test_in_force_goes_by_place_and_a_merge_takes_that_of_its_sources(
    stores: StoreSet,
) -> None:
    lease = stores.make_session()
    for number in (2, 0, 1):
        stores.complete(stores.make_record(f"r{number}", number * 6 + 1, number * 6 + 6))
        stores.records.adopt(lease, f"r{number}")
        assert stores.records.active(SESSION) == RecordStore(stores.database).active(SESSION)
    assert ids(stores.records.active(SESSION)) == ["r0", "r1", "r2"]
    assert ids(stores.records.newest(SESSION, 2)) == ["r1", "r2"]
    merge = stores.make_record("merge", 1, 12).with_changes(kind="merge", level=1, sources=("r0", "r1"))
    stores.complete(merge)
    stores.records.adopt(lease, "merge")
    assert ids(stores.records.active(SESSION)) == ["merge", "r2"]


def test_sums_are_over_records_in_force_and_costs_over_all(stores: StoreSet) -> None:
    lease = stores.make_session()
    assert stores.records.sums(SESSION) == RecordSums(0, 0, 0, 0, 0, 0, 0)
    for number in range(2):
        record = stores.make_record(f"r{number}", number * 6 + 1, number * 6 + 6)
        turns = (3 * number + 1, 3 * number + 2, 3 * number + 3)
        stores.complete(record.with_changes(turns=turns, input_tokens=100, output_tokens=10), "x" * 300)
        stores.records.adopt(lease, record.id)
    stores.complete(stores.make_record("thrown away", 13, 18).with_changes(input_tokens=50, output_tokens=5))
    assert stores.records.sums(SESSION) == RecordSums(2, 6, 3000, 600, 250, 25, 3)


def test_folds_are_counted_once_whatever_became_of_their_summaries(stores: StoreSet) -> None:
    lease = stores.make_session()
    assert stores.records.fold_counts(SESSION) == FoldCounts(0, 0, 0, 0, 0, 0, 0)
    for number in range(3):
        record = stores.make_record(f"r{number}", number * 6 + 1, number * 6 + 6)
        turns = tuple(range(3 * number + 1, 3 * number + 4))
        stores.complete(record.with_changes(turns=turns, source_tokens=905))
        if number < 2:
            stores.records.adopt(lease, record.id)
    ready = stores.records.get(SESSION, "r2")
    for number, code in enumerate(("stopped", DISCARDED_CODE, "provider", "stopped")):
        failed = stores.make_record(f"failed{number}", 19, 24)
        stores.start(failed)
        paid_tokens = 700 * (number < 3)
        stores.records.end(failed.with_changes(status="FAILED", error_code=code, input_tokens=paid_tokens))
    assert stores.records.fold_counts(SESSION) == FoldCounts(2, 2, 1800, 0, 6, 6, 2)
    assert stores.records.fold_counts(SESSION, ready=[ready]) == FoldCounts(3, 3, 2700, 900, 9, 9, 2)

    # Another version is the same fold, and a merge is none.
    other = stores.make_record("again", 1, 6).with_changes(source_key="again", source_tokens=905, summary_tokens=305)
    VersionStore(stores.database).add(other.with_changes(status="COMPLETED"), owner=OWNER, of="r0")
    assert stores.records.fold_counts(SESSION) == FoldCounts(2, 2, 1500, 0, 6, 6, 2)
    merge = stores.make_record("merge", 1, 12).with_changes(kind="merge", level=1, sources=("again", "r1"))
    stores.complete(merge.with_changes(turns=(1, 2, 3, 4, 5, 6)))
    stores.records.adopt(lease, "merge")
    assert stores.records.fold_counts(SESSION) == FoldCounts(2, 0, 0, 0, 6, 6, 2)


def text_records(stores: StoreSet, lease: Lease, turns: int) -> None:
    """Active records r1, r2, …: one for each turn of two messages."""
    for number in range(1, turns + 1):
        stores.run_turn(lease, f"t{number}")
        record = stores.make_record(f"r{number}", 2 * number - 1, 2 * number)
        stores.complete(record.with_changes(covered_until_message_id=f"t{number}-answer"))
        assert stores.records.adopt(lease, record.id)


def test_no_record_stands_behind_a_hole_or_over_an_answer_that_is_given_anew(stores: StoreSet) -> None:
    lease = stores.make_session()
    text_records(stores, lease, 1)
    stores.run_turn(lease, "t2")
    stores.run_turn(lease, "t3")
    stores.complete(stores.make_record("behind", 5, 6))
    assert not stores.records.adopt(lease, "behind")
    stores.turns.begin_attempt(lease, 3, model="m")
    stores.complete(stores.make_record("late", 3, 6).with_changes(covered_until_message_id="t3-answer"))
    assert not stores.records.adopt(lease, "late")
    assert ids(stores.records.active(SESSION)) == ["r1"]


def test_a_turn_that_is_run_again_takes_away_what_covers_it_and_brings_back_what_was_merged(stores: StoreSet) -> None:
    lease = stores.make_session()
    text_records(stores, lease, 2)
    stores.complete(stores.make_record("merge", 1, 4).with_changes(kind="merge", sources=("r1", "r2")))
    assert stores.records.adopt(lease, "merge")
    waiting = stores.complete(stores.make_record("waiting", 3, 4).with_changes(source_key="other rate"))
    stores.start(stores.make_record("running", 4, 4))
    stores.turns.begin_attempt(lease, 2, model="m")
    assert ids(stores.records.active(SESSION)) == ["r1"]
    assert stores.records.prepared(SESSION, waiting.source_key) is None
    assert stores.records.get(SESSION, "running").error_code == "discarded"


def test_a_restored_compaction_gives_way_to_its_sources_and_later_records_stay(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.sessions.update(SESSION, OWNER, restored_tokens=900)
    text_records(stores, lease, 2)
    assert stores.sessions.get(SESSION, OWNER).restored_tokens == 900
    stores.complete(stores.make_record("all", 1, 4).with_changes(kind="compaction", sources=("r1", "r2")))
    assert stores.records.adopt(lease, "all")
    assert stores.sessions.get(SESSION, OWNER).restored_tokens == 0
    stores.run_turn(lease, "t3")
    stores.complete(stores.make_record("r3", 5, 6))
    assert stores.records.adopt(lease, "r3")
    stores.complete(stores.make_record("waiting", 3, 4).with_changes(source_key="other rate"))
    stores.records.revert(lease, ["all"])
    assert ids(stores.records.active(SESSION)) == ["r1", "r2", "r3"]
    assert stores.records.prepared(SESSION, "other rate") is None
    with pytest.raises(NotFoundError):
        stores.records.revert(lease, ["all"])


def test_records_behind_a_hole_that_restoring_leaves_wait_until_it_is_folded(stores: StoreSet) -> None:
    lease, versions = stores.make_session(), VersionStore(stores.database)
    text_records(stores, lease, 3)
    changed = version_of(stores, "v3", 3).with_changes(from_position=5)
    assert versions.add(changed, owner=OWNER, of="r3") is not None
    stores.records.revert(lease, ["r1"])
    assert stores.records.active(SESSION) == []
    assert ids(stores.records.standing(SESSION).set_aside) == ["v3", "r2"]
    turns = stores.records.adoption_turns(SESSION, ["v3"])
    for name in ("t4", "t5"):
        stores.clock.move(1)
        stores.run_turn(lease, name)
    for record_id in ("v3", "r2"):  # neither is lost by being tried too early
        assert not stores.records.adopt(lease, record_id)
    again = stores.complete(stores.make_record("again", 1, 2).with_changes(covered_until_message_id="t1-answer"))
    assert all(stores.records.adopt(lease, record_id) for record_id in (again.id, "r2", "v3", "v3"))
    assert ids(stores.records.active(SESSION)) == ["again", "r2", "v3"]
    assert stores.records.standing(SESSION).set_aside == []
    assert ids(versions.of(SESSION, "v3")) == ["r3", "v3"]
    assert stores.records.adoption_turns(SESSION, ["v3"]) == turns


def test_a_record_that_waits_stands_over_no_answer_that_is_given_anew(stores: StoreSet) -> None:
    lease = stores.make_session()
    text_records(stores, lease, 3)
    stores.records.revert(lease, ["r1"])
    stores.turns.begin_attempt(lease, 3, model="m")
    assert ids(without_overlap(stores.records.standing(SESSION).set_aside, stores.records.active(SESSION))) == [
        "r3",
        "r2",
    ]
    again = stores.make_record("again", 1, 2).with_changes(covered_until_message_id="t1-answer", source_key="again")
    stores.complete(again)
    assert [stores.records.adopt(lease, record_id) for record_id in ("again", "r2", "r3")] == [True, True, False]
    assert ids(without_overlap(stores.records.standing(SESSION).set_aside, stores.records.active(SESSION))) == ["r3"]
    covering = stores.records.get(SESSION, "r3")
    assert without_overlap(stores.records.standing(SESSION).set_aside, [covering]) == []


def version_of(stores: StoreSet, record_id: str, turns: int) -> Record:
    """Returns a finished record of the first turns, to be stored as a version."""
    record = stores.make_record(record_id, 1, 2 * turns).with_changes(covered_until_message_id=f"t{turns}-answer")
    return record.with_changes(status="COMPLETED", outcome="compressed", summary="other", source_key=record_id)


def test_one_of_a_records_versions_is_active_and_a_merge_hides_them_until_it_is_undone(stores: StoreSet) -> None:
    lease, versions = stores.make_session(), VersionStore(stores.database)
    text_records(stores, lease, 2)
    for number, before in ((2, "r1"), (3, "v2")):
        added = versions.add(version_of(stores, f"v{number}", 1), owner=OWNER, of="r1")
        assert added is not None
        assert (added.version, added.replaces) == (number, before)
    assert ids(versions.of(SESSION, "v2")) == ["r1", "v2", "v3"]
    assert versions.use(SESSION, "v2")
    assert ids(stores.records.active(SESSION)) == ["v2", "r2"]
    waiting = stores.complete(stores.make_record("waiting", 1, 2).with_changes(source_key="waiting"))
    assert versions.of(SESSION, "waiting") == []
    merge = version_of(stores, "merge", 2).with_changes(kind="merge", sources=("v2", "r2"))
    assert stores.start(merge.with_changes(status="IN_PROGRESS"))
    assert stores.records.end(merge)
    assert stores.records.adopt(lease, "merge")
    assert not versions.use(SESSION, "r1")
    assert versions.adopt(waiting, of="r1") is None
    assert stores.records.prepared(SESSION, "waiting") is None
    assert versions.add(version_of(stores, "m2", 2), owner=OWNER, of="merge")
    assert ids(stores.records.active(SESSION)) == ["m2"]
    assert versions.undo_merge(SESSION, "m2")
    assert not versions.undo_merge(SESSION, "m2")
    assert ids(stores.records.active(SESSION)) == ["v2", "r2"]
    assert stores.records.standing(SESSION).undone == {(1, 4)}
    assert versions.use(SESSION, "merge")
    assert ids(stores.records.active(SESSION)) == ["merge"]


def test_an_undone_merge_does_not_come_back_over_a_larger_record(stores: StoreSet) -> None:
    lease, versions = stores.make_session(), VersionStore(stores.database)
    text_records(stores, lease, 3)
    for name, turns, sources in (("merge", 2, ("r1", "r2")), ("larger", 3, ("r1", "r2", "r3"))):
        merge = version_of(stores, name, turns).with_changes(kind="merge", sources=sources)
        assert stores.start(merge.with_changes(status="IN_PROGRESS"))
        assert stores.records.end(merge)
        assert stores.records.adopt(lease, name)
        if name == "merge":
            assert versions.undo_merge(SESSION, name)
    assert not versions.use(SESSION, "merge")
    assert versions.add(version_of(stores, "m2", 2), owner=OWNER, of="merge") is None
    assert ids(stores.records.active(SESSION)) == ["larger"]
    assert versions.undo_merge(SESSION, "larger")
    assert versions.use(SESSION, "merge")
    assert ids(stores.records.active(SESSION)) == ["merge", "r3"]


def test_a_record_that_was_taken_away_is_no_version_of_the_next_one_and_stays_away(stores: StoreSet) -> None:
    lease, versions = stores.make_session(), VersionStore(stores.database)
    text_records(stores, lease, 1)
    stores.records.revert(lease, ["r1"])
    again = version_of(stores, "again", 1)
    stores.start(again.with_changes(status="IN_PROGRESS"))
    stores.records.end(again)
    assert stores.records.adopt(lease, "again")
    assert ids(versions.of(SESSION, "again")) == ["again"]
    assert not versions.use(SESSION, "r1")


def test_failures_count_since_the_block_last_worked_whatever_the_clock_says(stores: StoreSet) -> None:
    stores.make_session()
    assert stores.records.failures_in_a_row(SESSION, 1) == (0, "")
    stores.fail("f1", "provider")
    for number, code in enumerate(("discarded", "expired", "stopped")):  # no failures
        stores.fail(f"r{number}", code)
    stores.clock.move(-3600)
    stores.fail("f2", "rate_limit")
    stores.fail("later", "expired")
    stores.fail("elsewhere", "quota", from_position=7, to_position=12)
    assert stores.records.failures_in_a_row(SESSION, 1) == (2, "rate_limit")
    stores.complete(stores.make_record("worked"))
    assert stores.records.failures_in_a_row(SESSION, 1) == (0, "")
    assert stores.records.failures_in_a_row(SESSION, 7) == (1, "quota")


def test_a_session_fails_from_its_first_failed_fold_until_a_model_makes_one(stores: StoreSet) -> None:
    stores.make_session()
    assert not stores.records.was_last_made(SESSION)
    stores.complete(stores.make_record("first"))
    assert stores.records.was_last_made(SESSION)
    stores.fail("mended", "summary_language", from_position=7, to_position=12)
    stores.fail("again", "summary_language", from_position=7, to_position=12)
    stores.fail("elsewhere", "summary_copy", from_position=13, to_position=18)
    # The draft of the first one that failed was mended: that were two calls.
    assert not stores.records.was_last_made(SESSION)
    assert stores.records.failures_in_a_row(SESSION, 7) == (3, "summary_language")
    assert stores.records.failures_in_a_row(SESSION, 13) == (1, "summary_copy")
    picked = stores.make_record("picked", 7, 12)
    assert stores.start(picked)
    assert stores.records.end(picked.with_changes(status="COMPLETED", outcome="picked", summary="x"))
    assert not stores.records.was_last_made(SESSION)
    assert stores.records.failures_in_a_row(SESSION, 7) == (0, "")
    stores.complete(stores.make_record("worked", 13, 18))
    assert stores.records.was_last_made(SESSION)
