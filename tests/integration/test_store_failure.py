from __future__ import annotations

from tests.fake.store import SESSION, StoreSet


def test_failures_count_since_the_block_last_worked_whatever_the_clock_says(stores: StoreSet) -> None:
    stores.make_session()
    assert stores.records.failures_in_a_row(SESSION, 1) == (0, "")
    stores.fail("f1", "provider")
    stores.clock.move(-3600)
    stores.fail("f2", "rate_limit")
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


def test_a_fold_that_fails_before_any_was_made_is_one_call(stores: StoreSet) -> None:
    stores.make_session()
    stores.fail("first", "summary_language")
    assert stores.records.failures_in_a_row(SESSION, 1) == (1, "summary_language")


def test_what_was_thrown_away_or_ended_with_its_server_is_no_failure(stores: StoreSet) -> None:
    stores.make_session()
    for number, code in enumerate(("discarded", "expired", "stopped")):
        stores.fail(f"r{number}", code)
    assert stores.records.failures_in_a_row(SESSION, 1) == (0, "")
    stores.fail("failed", "deadline")
    stores.fail("later", "expired")
    assert stores.records.failures_in_a_row(SESSION, 1) == (1, "deadline")
