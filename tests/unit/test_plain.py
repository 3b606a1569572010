from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.core.text import plain_text, plain_value

ODD = st.text(st.sampled_from(["\x00", "\ud83d", "\ude00", "\udfff", "a", "가", "😀", "\n", "\ufffd"]), max_size=20)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("가나다 abc 😀 \u200d \u202e", "가나다 abc 😀 \u200d \u202e"),
        ("a\x00b", "a\ufffdb"),
        ("a\ud83db", "a\ufffdb"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
    ],
)
def test_only_what_no_database_takes_is_replaced(text: str, plain: str) -> None:
    assert plain_text(text) == plain


@settings(deadline=None)
@given(ODD)
def test_what_comes_out_can_be_written_and_stays_as_it_is(text: str) -> None:
    plain = plain_text(text)
    plain.encode()
    assert "\x00" not in plain
    assert plain_text(plain) == plain


@settings(deadline=None)
@given(
    st.recursive(
        ODD | st.none() | st.integers() | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(ODD, inner)
    )
)
def test_a_value_keeps_its_shape_and_all_its_texts_are_plain(value: object) -> None:
    plain = plain_value(value)
    json.dumps(plain, ensure_ascii=False).encode()
    assert plain_value(plain) == plain
    assert type(plain) is type(value)
