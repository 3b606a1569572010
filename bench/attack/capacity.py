"""Attacks on what a server has: memory for what never ends, connections, turns, its log."""

from __future__ import annotations

import itertools
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpx2

from bench.attack.bystander import code_of
from bench.attack.run import Attempt
from bench.attack.server import ATTACKER, HANGING, OTHER
from bench.attack.watch import MEGABYTE
from bench.attack.wire import (
    BINARY,
    CONTINUATION,
    TEXT,
    Wire,
    count_open,
    drip,
    frame,
    head,
    opened,
    stream_head,
    upload_head,
)
from graph.attachment import MAX_BYTES, MAX_FILES
from tests.fake.upload import TAKEN, form_of, opened_tab

_MESSAGE_BYTES = 19_900_000  # just below what a page's message may have
_BODY_BYTES = 31 * MEGABYTE
_COMPLETIONS = "/v1/chat/completions"
_REST = 10


def deflate_bombs(attempt: Attempt) -> str:
    """Websocket messages of a few KB that unpack to 20 MB each and don't end."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(_MESSAGE_BYTES)) + packer.flush(zlib.Z_SYNC_FLUSH)
    bomb = frame(packed.removesuffix(b"\0\0\xff\xff"), BINARY, is_last=False, is_compressed=True)
    return _unfinished(attempt, [bomb], attempt.many(15, 40), is_compressed=True)


def unfinished_messages(attempt: Attempt) -> str:
    """The same without compression."""
    return _unfinished(attempt, [frame(bytes(_MESSAGE_BYTES), BINARY, is_last=False)], attempt.many(10, 25))


def empty_fragments(attempt: Attempt) -> str:
    """A message of fragments that hold nothing."""
    empty = frame(b"", CONTINUATION, is_last=False) * attempt.many(100_000, 400_000)
    return _unfinished(attempt, [frame(b"a", BINARY, is_last=False), empty], attempt.many(4, 5))


def _unfinished(attempt: Attempt, frames: list[bytes], count: int, *, is_compressed: bool = False) -> str:
    port = attempt.target.port

    def begin(wire: Wire) -> None:
        if wire.begin(stream_head(port, is_compressed=is_compressed)):
            wire.send(*frames)

    with opened(port, count, begin) as wires:
        attempt.hold()
        held = count_open(wires)
    size = sum(map(len, frames)) * count / MEGABYTE
    return f"{count} sockets, {size:.1f} MB, no message ends; {held} still held"


def wide_json(attempt: Attempt) -> str:
    """Bodies of nothing but small lists."""
    count, size = attempt.many(2, 3), attempt.many(8, 32) * MEGABYTE
    body = b'{"model":"turnfold","messages":[],"x":[' + b"[]," * (size // 3 - 20) + b"[]]}"
    return f"{count} bodies of {size / MEGABYTE:.0f} MB of lists: {_posted(attempt, body, count)}"


def deep_json(attempt: Attempt) -> str:
    """Bodies that are nested a million times."""
    count = attempt.many(5, 20)
    statuses = [_posted(attempt, body, count) for body in (b"[" * 1_000_000, b'{"a":' * 1_000_000)]
    return f"{2 * count} bodies nested 1,000,000 deep: {', '.join(statuses)}"


def _posted(attempt: Attempt, body: bytes, count: int) -> str:
    """Sends a body so many times at once; returns the statuses of the answers."""
    asked = head("POST", _COMPLETIONS, f"Content-Length: {len(body)}", "Connection: close", token=ATTACKER)
    statuses: list[int] = []

    def post(wire: Wire) -> None:
        wire.socket.settimeout(120)
        wire.send(asked, body)
        statuses.append(wire.status())

    with opened(attempt.target.port, count, post):
        attempt.hold()
    return " ".join(f"{statuses.count(status)}×{status or 'closed'}" for status in sorted({*statuses}))


def unfinished_bodies(attempt: Attempt) -> str:
    """Bodies of 31 MB that stop before their end."""
    count = attempt.many(14, 24)
    asked = head("POST", _COMPLETIONS, f"Content-Length: {_BODY_BYTES + 1_000}", token=ATTACKER)
    body = bytes(_BODY_BYTES)
    with opened(attempt.target.port, count, lambda wire: wire.send(asked, body)) as wires:
        attempt.hold()
        return f"{count} bodies of 31 MB stop before their end; {count_open(wires)} still held"


def unfinished_uploads(attempt: Attempt) -> str:
    """Files into one tab, all at once: all but their last bytes, then the rest."""
    count, target = attempt.many(40, 60), attempt.target
    form = form_of(bytes(MAX_BYTES - 1_000))
    first, rest = form[:-_REST], form[-_REST:]
    with ExitStack() as stack:
        tab = stack.enter_context(opened_tab(target.address, {}))
        asked = [upload_head(f"127.0.0.1:{target.port}", tab.id, len(form)) for _ in range(count)]
        wires = stack.enter_context(opened(target.port, count, lambda wire: wire.send(asked.pop(), first)))
        attempt.hold()
        held = count_open(wires)
        for wire in wires:
            wire.send(rest)
        taken = sum(wire.status() == TAKEN for wire in wires)
        attempt.hold()
    if taken > MAX_FILES:
        attempt.wrong.append(f"{taken} files were taken for one tab, which may have {MAX_FILES}")
    return f"{count} files of 10 MB into one tab at once; {held} held unfinished, {taken} taken"


def floods(attempt: Attempt) -> str:
    """Connections on which nothing comes, heads that never end, and pages that say nothing."""
    count, port = attempt.many(200, 500), attempt.target.port
    slow = head("GET", "/", "X-Name: ")[:-4]
    with ExitStack() as stack:
        stack.enter_context(opened(port, count, lambda _: None))
        heads = stack.enter_context(opened(port, count, lambda wire: wire.send(slow)))
        pages = stack.enter_context(opened(port, count, lambda wire: wire.begin(stream_head(port))))
        drip(heads, attempt.many(2, 10))
        attempt.hold()
        held = count_open(pages)
    return f"{count} idle connections, {count} slow heads, {count} idle websockets ({held} held)"


def filled_log(attempt: Attempt) -> str:
    """What a visitor whom nobody knows can have the log say."""
    port, log, count = attempt.target.port, attempt.target.folder / "log", attempt.many(20, 100)
    most = 2_048 * count  # what a line of a log may have at most, each time
    word = b"A" * 60_000

    def say(wire: Wire) -> None:
        if wire.begin(stream_head(port)):
            wire.send(frame(b"anything", TEXT, is_last=True))
            wire.socket.settimeout(1)
            wire.status()

    def call_back(wire: Wire) -> None:
        wire.send(head("GET", f"/oauth2callback?error={word.decode()}", "Connection: close", host=f"127.0.0.1:{port}"))
        wire.status()

    sizes = [log.stat().st_size]
    for begin in (say, call_back):
        with opened(port, count, begin):
            attempt.gauge.hold(0.5)
        sizes.append(log.stat().st_size)
    grown = [after - before for before, after in itertools.pairwise(sizes)]
    attempt.wrong += [f"the log grew by {size // count:,} bytes each time" for size in grown if size > most]
    each = " and ".join(f"{size // count:,}" for size in grown)
    return f"{count} text frames, {count} callbacks of 60 KB: log +{each} bytes each"


def all_turns(attempt: Attempt) -> str:
    """One token begins as many turns as it can, none of which ends; somebody else's have to begin meanwhile."""
    count = attempt.many(24, 60)
    statuses: list[int] = []
    is_over = threading.Event()

    def insist(number: int) -> None:
        body = {
            "model": "turnfold",
            "stream": True,
            "messages": [{"role": "user", "content": f"{HANGING}{number} Go on."}],
        }
        with attempt.program(ATTACKER) as program, suppress(httpx2.HTTPError):
            while not is_over.is_set():
                with program.stream("POST", "/v1/chat/completions", json=body) as answer:
                    statuses.append(answer.status_code)
                    for _ in answer.iter_raw():
                        pass
                is_over.wait(0.1)  # whatever the refusal says of when to try again

    with ThreadPoolExecutor(count) as pool:
        insisting = [pool.submit(insist, number) for number in range(count)]
        until = time.monotonic() + 5
        while 429 not in statuses and time.monotonic() < until:
            attempt.gauge.hold(0.1)
        with attempt.program(OTHER) as program:  # one more than the one that the other has all the while
            answer = program.post("/chat", json={"message": "Is there room for me?"})
        if answer.is_error:
            attempt.wrong.append(f"somebody else's turn is refused: {code_of(answer)}")
        attempt.hold()
        is_over.set()
        started = statuses.count(200)
        while not all(each.done() for each in insisting):
            attempt.target.endpoint.end_hanging()
            time.sleep(0.1)
    return f"{count} turns of one token that don't end, asked for again and again: {started} begun"
