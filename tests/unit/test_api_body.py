from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from api.body import BODY_BYTES, read_body
from api.problem import ProblemError


def read(pieces: Iterable[bytes | None], headers: Mapping[str, str] | None = None, seconds: float = 20.0) -> bytes:
    # None is a client that leaves; one that says nothing more hangs.
    waiting = iter(pieces)
    sent = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]

    async def receive() -> Message:
        for piece in waiting:
            if piece is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": piece, "more_body": piece != b""}
        await asyncio.Event().wait()
        raise AssertionError

    request = Request({"type": "http", "headers": sent}, receive)
    return asyncio.run(read_body(request, most_bytes=10, seconds=seconds))


def refusal(
    pieces: Iterable[bytes | None], headers: Mapping[str, str] | None = None, seconds: float = 20.0
) -> tuple[int, str]:
    with pytest.raises(ProblemError) as refused:
        read(pieces, headers, seconds)
    return refused.value.problem.status, refused.value.problem.code


def test_a_body_comes_in_pieces() -> None:
    assert read([b"12345", b"67890", b""]) == b"1234567890"
    with pytest.raises(ClientDisconnect):  # a client that leaves gets no answer
        read([b"123", None])


def test_a_body_that_is_too_large_or_does_not_come_or_is_compressed_is_read_no_further() -> None:
    for length in ("11", "9" * 5000):
        assert refusal([], {"content-length": length}) == (413, "request_too_large")
    for headers in ({}, {"content-length": "5"}, {"content-length": "many"}):
        assert refusal([b"12345", b"678901"], headers) == (413, "request_too_large")
    assert refusal([b"12345"], seconds=0.01) == (408, "request_timeout")
    assert refusal([b""], {"content-encoding": "gzip"}) == (415, "unsupported_encoding")


class _ByteClock(asyncio.SelectorEventLoop):
    """A loop whose time is set by what it reads, not by waiting."""

    read_seconds = 0.0

    def time(self) -> float:
        return super().time() + self.read_seconds


def test_a_body_of_a_byte_a_second_is_read_for_thirty_seconds() -> None:
    loop = _ByteClock()

    async def receive() -> Message:
        loop.read_seconds += 1
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def read_by_default() -> None:
        await read_body(Request({"type": "http", "headers": []}, receive))

    with asyncio.Runner(loop_factory=lambda: loop) as runner, pytest.raises(ProblemError) as refused:
        runner.run(read_by_default())
    assert (refused.value.problem.status, refused.value.problem.code) == (408, "request_timeout")
    assert 30 <= loop.read_seconds <= 31


def test_a_body_of_a_gigabyte_is_held_no_further_than_its_limit() -> None:
    piece, pieces_read = bytes(2**20), 0

    async def receive() -> Message:
        nonlocal pieces_read
        pieces_read += 1
        return {"type": "http.request", "body": piece, "more_body": True}

    with pytest.raises(ProblemError) as refused:
        asyncio.run(read_body(Request({"type": "http", "headers": []}, receive)))
    assert refused.value.problem.status == 413
    assert pieces_read == BODY_BYTES // len(piece) + 1
