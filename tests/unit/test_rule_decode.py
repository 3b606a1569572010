from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.error import PathError
from graph.layer.rule_decode import DecodedText, decode_rules

TEXT = "규칙: 탭을 쓴다.\nBe brief. 👍\n"


def decoded(data: bytes) -> DecodedText:
    return decode_rules(data, len(data))


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    ],
)
def test_utf_8_and_marked_utf_16_are_read(data: bytes) -> None:
    assert decoded(data) == DecodedText(TEXT, bad_count=0, unread_bytes=0)


@pytest.mark.parametrize("data", [b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE])
def test_nothing_is_read_of_nothing(data: bytes) -> None:
    assert decoded(data) == DecodedText("", bad_count=0, unread_bytes=0)


@pytest.mark.parametrize(
    "data", [b"\x7fELF\0", b"x" * 8_191 + b"\0", codecs.BOM_UTF16_LE + b"\0\0", b"\xff\xfe\0\0a\0\0\0"]
)
def test_nul_at_the_beginning_is_no_text(data: bytes) -> None:
    with pytest.raises(PathError) as raised:
        decoded(data)
    assert raised.value.reason == "binary"


def test_nul_behind_the_first_8_kib_is_replaced() -> None:
    assert decoded(b"x" * 8_192 + b"\0").text == "x" * 8_192 + "\ufffd"


@pytest.mark.parametrize(
    ("data", "text", "bad_count"),
    [
        (b"a\xffb\xc3", "a\ufffdb\ufffd", 2),
        ("a\ufffdb".encode(), "a\ufffdb", 0),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", 3),
        (codecs.BOM_UTF16_LE + "a".encode("utf-16-le") + b"\x00\xd8x", "a\ufffd", 1),
        ("규칙".encode("cp949"), "\ufffd\ufffd\u0122", 2),
    ],
)
def test_bad_bytes_are_replaced_and_counted(data: bytes, text: str, bad_count: int) -> None:
    assert (decoded(data).text, decoded(data).bad_count) == (text, bad_count)


def test_line_that_is_not_whole_is_left_out_of_the_head_of_a_longer_file() -> None:
    data = "첫 줄\n둘째 줄".encode()
    assert decode_rules(data[:-1], len(data)) == DecodedText(
        "첫 줄\n", bad_count=0, unread_bytes=len("둘째 줄".encode())
    )
    assert decode_rules(b"no line end", 20) == DecodedText("", bad_count=0, unread_bytes=20)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_half_a_line_end_ends_no_line(codec: str) -> None:
    mark = codecs.BOM_UTF16_LE if codec == "utf-16-le" else codecs.BOM_UTF16_BE
    text = "a\n\u0a00\u000b\u000a\u0a0a\u0a00\u0a00"
    head = mark + text.encode(codec)
    assert decode_rules(head, len(head) + 10).text == "a\n\u0a00\u000b\n"


@given(st.binary(max_size=300), st.integers(0, 50))
def test_every_byte_is_in_the_text_or_unread(data: bytes, more: int) -> None:
    try:
        text = decode_rules(data, len(data) + more)
    except PathError:
        return
    assert more <= text.unread_bytes <= len(data) + more
    assert text.text.encode().decode() == text.text
    assert text.bad_count <= text.text.count("\ufffd")
