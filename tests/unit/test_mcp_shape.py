from __future__ import annotations

import json

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.mcp.connection import LONGEST_CALL_SECONDS, Call
from graph.mcp.transport import Shape

MANY = b"[" + b"[]," * 100_000
WIDE = b"[" + b"1," * 100_001
DEEP = b'{"a":' * 301
DIGITS = b"9" * 5_000


def is_within(*pieces: bytes, is_events: bool = False) -> bool:
    shape = Shape(is_events=is_events)
    return all(shape.take(piece) for piece in pieces)


def split(message: bytes, *places: int) -> list[bytes]:
    ends = sorted(place % len(message) for place in places)
    return [message[start:end] for start, end in zip([0, *ends], [*ends, len(message)], strict=True)]


@pytest.mark.parametrize(
    "message",
    [
        MANY,
        WIDE,
        DEEP,
        b'["' + b'","' * 200_000,
        b'"\n' + MANY,
        b'{"a": "\\"", "b": ' + MANY,
        DIGITS,
        b'{"a": -1.' + DIGITS + b"}",
    ],
)
@pytest.mark.parametrize("size", [1_000_000, 4_096, 7])
def test_what_has_too_many_values_or_digits_or_lies_too_deep_is_out_of_bounds(message: bytes, size: int) -> None:
    assert not is_within(*(message[start : start + size] for start in range(0, len(message), size)))


@pytest.mark.parametrize(
    "message",
    [
        json.dumps({"text": MANY.decode() * 5 + '"\\' + DEEP.decode(), "more": [DEEP.decode()] * 9}).encode(),
        json.dumps([{"row": number, "name": f"n{number}"} for number in range(19_000)]).encode(),
        b"[" * 300 + b"]" * 300,
        "긴 글입니다, [그렇지요]".encode() * 10,
        json.dumps(["9" * 5_000, "9" * 5_000 + "가"]).encode(),
        b"[" + b"9" * 4_000 + b", " + b"8" * 4_000 + b"]",
    ],
)
def test_a_long_text_is_one_value(message: bytes) -> None:
    assert is_within(message)
    assert is_within(*split(message, *range(0, len(message), 4_099)))


@pytest.mark.parametrize("begin", [b': "', b'id: "', b'event: "\\', b'data: "\\', b"data: [", b'"'])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_no_mark_outside_of_json_hides_an_event(begin: bytes, end: bytes) -> None:
    event = b"data: " + MANY + b"]\n\n"
    assert not is_within(begin + end + event, is_events=True)
    assert not is_within(begin, end, event, is_events=True)


def test_an_empty_line_ends_an_event_and_nothing_else_does() -> None:
    event = b"data: " + b"[1," * 200 + b"\n"
    for end in (b"\n", b"\r\n", b"\r"):
        assert is_within(*[event + end] * 500, is_events=True)
        assert is_within(*[part for _ in range(500) for part in (event, end)], is_events=True)
    one_line = b"data: [" + b"1," * 1_000
    assert not is_within(*[part for _ in range(200) for part in (one_line + b"\r", b"\n")], is_events=True)
    assert not is_within(*[one_line + b"\n\n"] * 200)  # no event: white space in JSON


@given(st.text('ab"\\,[]{}:\n\r 1', max_size=40), st.lists(st.integers(0, 99), max_size=6), st.booleans())
def test_pieces_count_as_the_whole_does(text: str, places: list[int], is_events: bool) -> None:  # noqa: FBT001 - drawn
    message = b"[1," + text.encode()
    whole, parts = Shape(is_events=is_events), Shape(is_events=is_events)
    whole.take(message)
    for piece in split(message, *places):
        parts.take(piece)
    left = [sum(shape.take(b"1," * 5_000) for _ in range(30)) for shape in (whole, parts)]
    assert left[0] == left[1]


def test_progress_puts_the_end_of_a_call_off_for_an_hour_at_most() -> None:
    async def seconds() -> tuple[float, float]:
        began = anyio.current_time()
        call = Call(3 * LONGEST_CALL_SECONDS, lambda _: None, str)
        first = call.scope.deadline
        await call.hear_progress(1, 2, None)
        return first - began, call.scope.deadline - began

    first, second = anyio.run(seconds)
    assert LONGEST_CALL_SECONDS <= first <= second <= LONGEST_CALL_SECONDS + 1
