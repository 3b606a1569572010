from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.fold.listing import Row, read_pairs, read_rows
from prompt.system.framing import note_cut


def test_records_are_rows_and_plain_objects_are_part_of_the_record_around_them() -> None:
    text = json.dumps(
        {
            "id": "R-1",
            "name": {"first": "Mina", "last": "Seo"},
            "cards": {"card_7": {"kind": "visa", "id": "card_7"}, "gift_9": {"kind": "gift"}},
            "seats": ["12A", "12B"],
            "legs": [[{"from": "ICN", "late": True}], [{"from": "GMP", "late": False}]],
            "note": None,
        }
    )
    assert read_rows(text) == [
        Row("", ("id", "first", "last"), ("R-1", "Mina", "Seo")),
        Row("cards", ("kind", "id"), ("visa", "card_7")),
        Row("cards", ("", "kind"), ("gift_9", "gift")),
        Row("seats", (), ("12A", "12B")),
        Row("legs", ("from", "late"), ("ICN", "true")),
        Row("legs", ("from", "late"), ("GMP", "false")),
    ]


def test_names_that_stand_twice_keep_their_object_and_long_texts_stay_texts() -> None:
    text = '{"free": {"economy": 7}, "price": {"economy": 120}, "day": 3}'
    assert read_rows(text) == [Row("", ("economy", "price.economy", "day"), ("7", "120", "3"))]
    long = "A sentence of a page. " * 10
    assert read_rows(json.dumps({"title": "Page", "body": long})) == [Row("", ("title",), ("Page",)), long]


def test_other_text_has_no_rows() -> None:
    others = ["", "plain words", "{not json}", "[1턴] a summary", "[" * 5_000, "3", "{}", "[]", "[null]"]
    assert [text for text in others if read_rows(text)] == []


def test_heads_name_the_list_and_its_keys() -> None:
    rows = read_rows(
        '{"legs": [{"from": "ICN", "to": "CJU"}], "cards": {"c1": {"kind": "gift"}, "c2": {"kind": "visa"}}}'
    )
    assert [(row.head, row.text) for row in rows if isinstance(row, Row)] == [
        ("legs (from, to)", "legs: ICN, CJU"),
        ("cards (key, kind)", "cards: c1, gift"),
        ("cards (key, kind)", "cards: c2, visa"),
    ]


ROWS = [{"id": 41, "path": "/srv/it's.csv", "owner": None}, {"id": 42, "path": "/srv/b.csv", "owner": None}]
READ = [Row("", ("id", "path"), ("41", "/srv/it's.csv")), Row("", ("id", "path"), ("42", "/srv/b.csv"))]


def test_values_of_python_are_read_as_those_of_json() -> None:
    assert read_rows(str(ROWS)) == read_rows(json.dumps(ROWS)) == READ
    assert read_rows(str([(1, "a"), (2, "b")])) == [Row("", (), ("1", "a")), Row("", (), ("2", "b"))]
    assert [text for text in ("{1, 2}", "[b'bytes']", "[open('/etc/passwd')]", "[1j]") if read_rows(text)] == []


def test_values_stand_between_words_and_one_a_line() -> None:
    text = "Found 2 rows:\n" + "\n".join(json.dumps(row, indent=2) for row in ROWS) + "\nNo more."
    assert read_rows(text) == ["Found 2 rows:", *READ, "No more."]
    assert read_rows("[1] a footnote\n[ ] a task\n[x] a task that is done") == []


@pytest.mark.parametrize(
    "text", [json.dumps(ROWS), str(ROWS), json.dumps(ROWS, indent=2)], ids=["json", "python", "indented"]
)
def test_a_value_that_is_cut_off_is_read_as_far_as_it_goes(text: str) -> None:
    cut = note_cut(text, text.index("42") + 4, why="are shown", language="ko")
    assert read_rows(cut)[:2] == [READ[0], Row("", ("id",), ("42",))]
    assert read_rows(cut.partition("\n\n[cut")[0]) == read_rows(cut)


def test_a_long_text_that_is_cut_off_is_the_text() -> None:
    page = "The order is ORD-20394. " * 10
    cut = note_cut(json.dumps({"title": "Page", "body": page}), 150, why="are shown", language="en")
    assert read_rows(cut)[0] == Row("", ("title",), ("Page",))
    assert "".join(row for row in read_rows(cut) if isinstance(row, str)).startswith(
        "The order is ORD-20394. The order"
    )


def test_lines_of_keys_and_values_are_records() -> None:
    log = "Commit history:\nCommit: 4f2a9c1\nAuthor: Mina\n\nCommit: 9b07d3e\nAuthor: Jun\n- note: one\n- note: two"
    assert [part for part in read_pairs(log) if part] == [
        "Commit history:",
        Row("", ("Commit", "Author"), ("4f2a9c1", "Mina")),
        Row("", ("Commit", "Author"), ("9b07d3e", "Jun")),
        "- note: one",
        "- note: two",
    ]
    assert read_pairs("id: 1\nname: a\nid: 2\nname: b")[:2] == [
        Row("", ("id", "name"), ("1", "a")),
        Row("", ("id", "name"), ("2", "b")),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for entry in value.values() for leaf in leaves(entry)]
    if isinstance(value, list):
        return [leaf for entry in value for leaf in leaves(entry)]
    if value is None:
        return []
    return [value if isinstance(value, str) else json.dumps(value)]


@given(st.lists(JSON, max_size=5) | st.dictionaries(st.text(max_size=5), JSON, max_size=5))
def test_no_value_is_lost(value: object) -> None:
    rows = read_rows(json.dumps(value))
    said = [part for row in rows for part in (row.values if isinstance(row, Row) else [row])]
    for leaf in leaves(value):
        assert leaf in said


@given(st.text(alphabet="[]{}()'\",:\\ \n1ab", max_size=80))
def test_any_text_is_read_without_an_error(text: str) -> None:
    rows = [*read_rows(text), *read_pairs(text)]
    assert all(isinstance(row, str) or row.values for row in rows)
