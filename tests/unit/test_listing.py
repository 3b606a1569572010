from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from graph.fold.extract import Row, read_rows


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
