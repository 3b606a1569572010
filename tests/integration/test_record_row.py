from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graph.core.text import plain_text
from graph.store.row import pack_facts, unpack_facts
from graph.store.transfer import export_lines, import_lines
from graph.value.error import InputError
from tests.fake.store import OWNER, SESSION, open_store_set

FACTS = st.lists(st.text(max_size=20), max_size=12)
SUMMARY = "티켓은 OPS-4711이고 예산은 180만 원이며 담당자는 김민수입니다. 야간버스는 절대 타지 않습니다. src/main.py"
KEPT, MISSING = ("OPS-4711", "180만 원", "야간버스는 절대", "src/main.py"), ("K7QX2M",)


@given(FACTS, FACTS, st.text(max_size=200))
@example([""], [], "")
@example(["a\0b", "\ud800"], ["줄\n바꿈"], "\ud800\0")
@example([], ["only missing"], SUMMARY)
def test_facts_come_back_in_their_order(retained: list[str], missing: list[str], summary: str) -> None:
    expected = tuple(plain_text(fact) for fact in retained), tuple(plain_text(fact) for fact in missing)
    assert unpack_facts(pack_facts(retained, missing, summary), plain_text(summary)) == expected


def test_a_fact_that_stands_in_the_summary_takes_a_few_bytes_and_what_is_no_list_is_none() -> None:
    packed = pack_facts(KEPT, (), SUMMARY)
    assert packed is not None
    assert len(packed) < len("".join(KEPT).encode()) * 0.6
    assert pack_facts((), (), SUMMARY) is None
    for spoilt in (b"", b"no stream", zlib.compress(b"x\0y"), zlib.compress(b"\xff")):
        assert unpack_facts(spoilt, SUMMARY) == ((), ())


def test_facts_of_a_text_that_somebody_changed_are_not_known_and_keep_nothing_from_being_read(tmp_path: Path) -> None:
    with open_store_set(tmp_path) as stores:
        lease = stores.make_session()
        for number in (1, 2, 3):
            stores.run_turn(lease, f"t{number}")
        stores.complete(stores.make_record("r1").with_changes(kept_facts=KEPT, missing_facts=MISSING), SUMMARY)
        assert stores.records.get(SESSION, "r1").kept_facts == KEPT
        with closing(sqlite3.connect(stores.path)) as connection, connection:
            connection.execute("UPDATE record SET summary = 'another text'")
        record = stores.records.get(SESSION, "r1")
        assert (record.summary, record.kept_facts, record.missing_facts) == ("another text", (), ())


def test_an_export_spells_facts_out_and_an_import_packs_them(tmp_path: Path) -> None:
    with open_store_set(tmp_path / "one") as stores:
        stores.make_session()
        done = stores.complete(stores.make_record("r1").with_changes(kept_facts=KEPT, missing_facts=MISSING), SUMMARY)
        lines = list(export_lines(stores.database))
    (row,) = [line for line in lines if '"table": "record"' in line]
    assert '"kept_facts": "[\\"OPS-4711\\", ' in row
    assert '"missing_facts": "[\\"K7QX2M\\"]"' in row
    with open_store_set(tmp_path / "two") as other:
        import_lines(other.database, lines, owner=OWNER)
        assert other.records.get(SESSION, "r1") == done
        assert list(export_lines(other.database)) == lines
    spoilt = [line.replace('\\"K7QX2M\\"', "7") for line in lines]
    with open_store_set(tmp_path / "three") as third:
        with pytest.raises(InputError) as caught:
            import_lines(third.database, spoilt, owner=OWNER)
        assert (caught.value.reason, caught.value.detail) == ("not_an_export", str(lines.index(row) + 1))
        assert len(list(export_lines(third.database))) == 1
