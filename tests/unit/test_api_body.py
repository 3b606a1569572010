from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from api.body import BODY_BYTES, JSON_PARTS, Budget, parse_object, read_body, read_json
from api.middleware import ApiClient
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
    return bytes(asyncio.run(read_body(request, Budget().share("kim"), most_bytes=10, seconds=seconds)))


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


def request_of(receive: Receive, owner: str = "kim") -> Request:
    return Request({"type": "http", "headers": [], "state": {"client": ApiClient("editor", owner, None)}}, receive)


def test_a_body_of_a_byte_a_second_is_read_for_thirty_seconds() -> None:
    loop, budget = _ByteClock(), Budget()

    async def receive() -> Message:
        loop.read_seconds += 1
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def read_by_default() -> None:
        await read_json(request_of(receive), dict, most_bytes=BODY_BYTES, budget=budget)

    with asyncio.Runner(loop_factory=lambda: loop) as runner, pytest.raises(ProblemError) as refused:
        runner.run(read_by_default())
    assert (refused.value.problem.status, refused.value.problem.code) == (408, "request_timeout")
    assert 30 <= loop.read_seconds <= 31
    assert budget.held == 0


def test_a_body_of_a_gigabyte_is_held_no_further_than_its_limit() -> None:
    piece, pieces_read = bytes(2**20), 0

    async def receive() -> Message:
        nonlocal pieces_read
        pieces_read += 1
        return {"type": "http.request", "body": piece, "more_body": True}

    with pytest.raises(ProblemError) as refused:
        asyncio.run(read_body(Request({"type": "http", "headers": []}, receive), Budget().share("kim")))
    assert refused.value.problem.status == 413
    assert pieces_read == BODY_BYTES // len(piece) + 1


def test_unfinished_bodies_hold_no_more_than_the_budget_and_give_it_back() -> None:
    budget, hanging, ended = Budget(400), asyncio.Semaphore(0), asyncio.Event()

    async def unfinished(owner: str) -> str:
        sent = iter([b"[" * 50, b"[" * 50])

        async def receive() -> Message:
            if (piece := next(sent, None)) is None:
                hanging.release()
                await ended.wait()
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": piece, "more_body": True}

        try:
            await read_json(request_of(receive, owner), dict, most_bytes=1_000, budget=budget)
        except ProblemError as error:
            return error.problem.code
        except ClientDisconnect:
            return "left"
        return ""

    async def all_of_them() -> list[str]:
        reading = [asyncio.create_task(unfinished(owner)) for owner in ("kim", "kim", "kim", "lee", "lee", "lee")]
        for _ in range(4):
            await hanging.acquire()
        assert budget.held == 400
        ended.set()
        return await asyncio.gather(*reading)

    assert sorted(asyncio.run(all_of_them())) == ["left"] * 4 + ["server_full"] * 2
    assert budget.held == 0


@pytest.mark.parametrize(
    ("pieces", "outcome"),
    [
        ([b'{"a": "', b"b" * 70_000, b'"}', b""], "taken"),
        ([b'{"a": 1}', b""], "taken"),
        ([b'{"a": ', b""], "invalid_json"),
        ([b'{"a": "' + b"b" * 70_000, b""], "invalid_json"),
        ([b"a" * 100_001], "request_too_large"),
    ],
    ids=["large", "small", "cut off", "large and cut off", "too large"],
)
def test_a_body_is_held_until_it_is_taken_or_refused(pieces: list[bytes], outcome: str) -> None:
    budget, waiting, held = Budget(), iter(pieces), 0

    async def receive() -> Message:
        piece = next(waiting)
        return {"type": "http.request", "body": piece, "more_body": piece != b""}

    def take(_: dict[str, object]) -> str:
        nonlocal held
        held = budget.held
        return "taken"

    try:
        told = asyncio.run(read_json(request_of(receive), take, most_bytes=100_000, budget=budget))
    except ProblemError as error:
        told = error.problem.code
    assert told == outcome
    assert held == (sum(map(len, pieces)) if outcome == "taken" else 0)
    assert budget.held == 0


def test_what_would_take_much_memory_is_refused_before_it_is_parsed() -> None:
    longest = b'{"messages":[' + b",".join([b'{"role":"user","content":"a, [b], {c}"}'] * 20_000) + b"]}"
    assert len(parse_object(longest)["messages"]) == 20_000
    for body in (
        b'{"x":[' + b"[]," * JSON_PARTS + b"[]]}",
        b'{"x":[' + b'{"":0},' * JSON_PARTS + b"0]}",
        b'"" ' * (JSON_PARTS + 1),
    ):
        with pytest.raises(ProblemError) as refused:
            parse_object(body)
        assert (refused.value.problem.status, refused.value.problem.code) == (413, "request_too_large"), body[:10]


def test_signs_within_a_text_count_for_nothing() -> None:
    for text in ("[" * 600_000, '"[\\' * 200_000, "\\", '\\"' * 100_000, "카나리아,[" * 100_000):
        assert parse_object(json.dumps({"a": text}).encode()) == {"a": text}
        assert parse_object(json.dumps({"a": text}, ensure_ascii=False).encode()) == {"a": text}


def test_no_other_encoding_hides_how_deep_a_body_is() -> None:
    hidden = '{"a":"\u2200","b":' + "[" * 100 + "]" * 100 + "}"
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        with pytest.raises(ProblemError) as refused:
            parse_object(hidden.encode(encoding))
        assert refused.value.problem.code == "invalid_json"
