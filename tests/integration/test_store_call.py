from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from graph.core.manifest import LONGEST_CHAIN, Manifest
from graph.store.call import ModelCall
from graph.store.schema import call_table, session_table
from graph.store.transfer import export_lines, import_lines
from graph.value.error import DatabaseError, LeaseLostError
from tests.fake.store import OWNER, SESSION, StoreSet, open_store_set

pytestmark = pytest.mark.both_engines


def test_calls_of_an_attempt_are_numbered_as_they_come_and_found_by_what_they_are(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    stores.run_turn(lease, "two")
    assert (stores.calls.last_answered(SESSION), stores.calls.unsent_tokens(SESSION)) == (None, 0)
    made = [
        stores.make_call("a", 1, usage_input_tokens=10, usage_output_tokens=2),
        stores.make_call("b", 2, error_code="context_length"),
        stores.make_call("c", 2, full_tokens=150, usage_input_tokens=110, usage_cached_tokens=3),
        stores.make_call("d", 2, kind="reasoning"),
        stores.make_call("e", 2, kind="reasoning", error_code="deadline"),
        stores.make_call("f", 2, usage_input_tokens=120),
        stores.make_call("g", 2, attempt=2, error_code="provider"),
    ]
    retained = [stores.calls.add(lease, call, OWNER) for call in made]
    assert [call.ordinal for call in retained] == [1, 1, 2, 3, 4, 5, 1]
    assert retained == [replace(call, ordinal=stored.ordinal) for call, stored in zip(made, retained, strict=True)]
    assert [
        stores.calls.add(lease, call, OWNER) for call in made
    ] == retained  # as behind a commit that nobody heard of
    assert stores.calls.of_turn(SESSION, 2) == retained[1:]
    assert stores.calls.last_answered(SESSION) == (SESSION, 100, 120)
    assert stores.calls.unsent_tokens(SESSION) == 200 + 50 + 200
    costs = stores.calls.costs(SESSION, 2, 1)
    assert [(cost.kind, cost.usage_input_tokens, cost.usage_cached_tokens) for cost in costs] == [
        ("answer", 110, 3),
        ("reasoning", None, None),
        ("answer", 120, None),
    ]
    assert stores.calls.costs(SESSION, 2, 2) == []
    stores.leases.release(lease)
    with pytest.raises(LeaseLostError):
        stores.calls.add(lease, stores.make_call("late", 2), OWNER)
    assert stores.calls.of_turn(SESSION, 2) == retained[1:]


def manifest(turn: int) -> Manifest:
    """What a chat sends whose older turns are one record each."""
    records = [("record", f"rec-{number}", 1, 90 + number) for number in range(1, turn)]
    return (("system", "chat", 1, 70 + turn), *records, ("message", f"user-{turn}", 1, 40), ("tools", "t", 1, 300))


def test_every_call_of_a_long_session_comes_back_whole_beside_other_sessions(stores: StoreSet) -> None:
    holds = {name: stores.make_session(name) for name in ("one", "two")}
    calls: dict[str, list[ModelCall]] = {"one": [], "two": []}
    for turn in range(1, LONGEST_CHAIN + 3):
        for name, lease in holds.items():
            shifted = turn if name == "one" else turn + 5
            call = stores.make_call(f"{name}-{turn}", turn, session_id=name, manifest=manifest(shifted))
            calls[name].append(stores.calls.add(lease, call, OWNER))
            side_request = stores.make_call(f"{name}-{turn}-aside", turn, session_id=name, kind="reasoning")
            stores.calls.add(lease, side_request, OWNER)
    stores.sessions.delete("two", OWNER)
    assert [stores.calls.of_turn("one", call.turn)[0] for call in calls["one"]] == calls["one"]
    assert stores.calls.of_turn("two", 1) == []


def test_a_call_whose_row_could_not_be_written_is_no_base_of_the_next(stores: StoreSet) -> None:
    lease = stores.make_session()
    for name in ("one", "two", "three"):
        stores.run_turn(lease, name)
    retained = [stores.calls.add(lease, stores.make_call("c1", 1, manifest=manifest(1)), OWNER)]
    with pytest.raises(DatabaseError):
        stores.calls.add(lease, stores.make_call("c2", 2, model=None, manifest=manifest(2)), OWNER)
    retained.append(stores.calls.add(lease, stores.make_call("c3", 3, manifest=manifest(3)), OWNER))
    assert [call for turn in (1, 2, 3) for call in stores.calls.of_turn(SESSION, turn)] == retained


def test_rows_of_an_older_database_are_read_and_gone_on_from(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    stores.run_turn(lease, "two")
    stores.calls.add(lease, stores.make_call("c1", 1, manifest=manifest(1)), OWNER)
    stores.calls.add(lease, stores.make_call("c2", 1, manifest=manifest(1)), OWNER)
    with stores.database.write() as connection:
        # As the first version left it: both tries after a context-length error under one ordinal.
        connection.execute(update(call_table).values(ordinal=1, manifest=json.dumps(manifest(1))))
    stores.calls.add(lease, stores.make_call("c3", 2, manifest=manifest(2)), OWNER)
    stores.calls.add(lease, stores.make_call("c4", 2, manifest=manifest(3)), OWNER)
    read = [call.manifest for turn in (1, 2) for call in stores.calls.of_turn(SESSION, turn)]
    assert read == [manifest(1), manifest(1), manifest(2), manifest(3)]


def test_an_import_reads_the_lists_of_an_export(stores: StoreSet, tmp_path: Path) -> None:
    lease = stores.make_session()
    for turn in range(1, 6):
        stores.run_turn(lease, f"turn-{turn}")
        stores.calls.add(lease, stores.make_call(f"c{9 - turn}", turn, manifest=manifest(turn)), OWNER)
    lines = list(export_lines(stores.database))
    with open_store_set(tmp_path / "other") as other:
        import_lines(other.database, lines, owner=OWNER)
        assert [other.calls.of_turn(SESSION, turn)[0].manifest for turn in range(1, 6)] == [
            manifest(turn) for turn in range(1, 6)
        ]


def test_a_list_that_somebody_spoilt_is_told_and_harms_no_later_call(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    stores.calls.add(lease, stores.make_call("c1", 1, manifest=manifest(5)), OWNER)
    stores.calls.add(lease, stores.make_call("c2", 1, manifest=manifest(6)), OWNER)
    with stores.database.write() as connection:
        connection.execute(update(call_table).where(call_table.c.id == "c1").values(manifest="[0]"))
    with pytest.raises(DatabaseError, match="c2"):
        stores.calls.of_turn(SESSION, 1)
    later = [stores.calls.add(lease, stores.make_call(f"c{n}", 2, manifest=manifest(n)), OWNER) for n in (7, 8)]
    assert stores.calls.of_turn(SESSION, 2) == later


def test_series_has_the_last_answer_call_of_each_present_attempt(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    stores.run_turn(lease, "two")
    stores.turns.begin_attempt(lease, 2, model="m")
    calls = [
        stores.make_call("first", 1, sent_tokens=20, full_tokens=20),
        stores.make_call("old", 2, sent_tokens=1, full_tokens=1),
        stores.make_call("too-long", 2, attempt=2, sent_tokens=50, full_tokens=80, error_code="context_length"),
        stores.make_call("b", 2, attempt=2, sent_tokens=60, full_tokens=90),
        stores.make_call("aside", 2, attempt=2, kind="reasoning", sent_tokens=7, full_tokens=7),
    ]
    for call in calls:
        stores.calls.add(lease, call, OWNER)
    assert stores.calls.series(SESSION) == [(1, 20, 20), (2, 60, 90)]


def test_correction_is_taken_from_the_last_twenty_reports(stores: StoreSet) -> None:
    lease = stores.make_session()
    assert stores.calls.recent(SESSION, is_branch=False).ratio == 1.0
    stores.run_turn(lease, "one")
    stores.calls.add(lease, stores.make_call("silent", 1), OWNER)
    assert stores.calls.recent(SESSION, is_branch=False).ratio == 1.0
    # A report of less than was sent makes no room, and one of less than half takes none away.
    for number, usage in enumerate((10, 90, 160)):
        stores.calls.add(lease, stores.make_call(f"old{number}", 1, usage_input_tokens=usage), OWNER)
        assert stores.calls.recent(SESSION, is_branch=False).ratio == (1.0, 1.0, 1.25)[number]
    stores.calls.add(lease, stores.make_call("cached", 1, usage_input_tokens=1), OWNER)
    assert stores.calls.recent(SESSION, is_branch=False).ratio == 1.25
    for number in range(2, 22):
        stores.calls.add(lease, stores.make_call(f"c{number}", 1, usage_input_tokens=120), OWNER)
    assert stores.calls.recent(SESSION, is_branch=False).ratio == pytest.approx(1.2)
    stores.calls.add(lease, stores.make_call("wild", 1, usage_input_tokens=1_000_000), OWNER)
    assert stores.calls.recent(SESSION, is_branch=False).ratio == 2.0


@pytest.mark.parametrize(
    ("ratio", "offset", "at_once", "within"),
    [
        (1.2, -490, 6_000 * 1.2 - 490, (6_000 + 490) / 1.2),  # tools that the template leaves out
        (1.0, 300, 6_300, 5_700),  # a template
        (0.5, 0, 6_000, 6_000),  # what was counted less makes no room for what wasn't counted yet
        (5.0, 0, 12_000, 3_000),
    ],
)
def test_an_offset_is_told_from_a_ratio(
    stores: StoreSet, ratio: float, offset: int, at_once: float, within: float
) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    for number, sent in enumerate((700, 1_200, 1_900, 2_500)):
        usage = round(offset + ratio * sent)
        call = stores.make_call(f"c{number}", 1, sent_tokens=sent, usage_input_tokens=usage)
        stores.calls.add(lease, call, OWNER)
    fit = stores.calls.recent(SESSION, is_branch=False).correction
    assert fit.tokens(6_000) == pytest.approx(at_once, abs=2)
    assert fit.sent_within(6_000) == pytest.approx(within, abs=2)


def test_a_branch_begins_with_what_its_origin_has_learned(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    stores.calls.add(lease, stores.make_call("c1", 1, usage_input_tokens=120), OWNER)
    for name, origin in (("branch", SESSION), ("twig", "branch"), ("left", "right"), ("right", "left")):
        stores.make_session(name)
        with stores.database.write() as connection:
            of_name = session_table.c.session_id == name
            connection.execute(update(session_table).where(of_name).values(forked_from=origin))
    assert [stores.calls.recent(name, is_branch=True).ratio for name in (SESSION, "branch", "twig")] == [
        pytest.approx(1.2)
    ] * 3
    assert stores.calls.recent("left", is_branch=True).ratio == 1.0
    with stores.database.write() as connection:
        another = update(session_table).where(session_table.c.session_id == SESSION)
        connection.execute(another.values(owner="another"))
    assert stores.calls.recent("twig", is_branch=True).ratio == 1.0
