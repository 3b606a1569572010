"""Attacks on what stands around a server: the proxy before it, and the database behind it."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

from bench.attack.bystander import SentQuestion, lost_of, program, read_answer
from bench.attack.run import Attempt, LeftOutError
from bench.attack.server import ATTACKER, LEASE_SECONDS, LONG
from bench.attack.watch import MEGABYTE
from bench.attack.wire import count_open, head, opened
from bench.server import started
from tests.fake.proxy import held_bytes, proxied

_SYSTEM_FOLDERS = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
_BODY_BYTES = 31 * MEGABYTE
_STREAMS = 6  # of each of two servers
_STALL_SECONDS = LEASE_SECONDS + 4  # all answers end meanwhile


def spooled_bodies(attempt: Attempt) -> str:
    """Bodies without a token that stop before their end, at the proxy with the product's own configuration."""
    if shutil.which("nginx", path=_SYSTEM_FOLDERS) is None:
        raise LeftOutError("no nginx")
    count = attempt.many(12, 16)
    body = bytes(_BODY_BYTES)
    folder = attempt.target.folder / f"nginx{time.monotonic_ns()}"
    with proxied(folder, [attempt.target.port]) as port:
        attempt.gauge.add(lambda: held_bytes(folder) if (folder / "nginx.pid").exists() else 0)
        asked = [
            head("POST", path, f"Content-Length: {_BODY_BYTES + 1_000}", host=f"127.0.0.1:{port}")
            for path in ("/v1/chat/completions", "/") * (count // 2)
        ]
        with opened(port, count, lambda wire: wire.send(asked.pop(), body)) as wires:
            attempt.hold()
            held = count_open(wires)
            size = held_bytes(folder) / MEGABYTE
    return f"{count} bodies of 31 MB to nginx, no token; {held} still held, {size:.0f} MB in its files"


def stalled_database(attempt: Attempt) -> str:
    """All processes of Postgres stand still for longer than a lease lasts, while two servers answer."""
    target = attempt.target
    said = [SentQuestion(f"{LONG}{number} What did we decide?") for number in range(2 * _STREAMS)]

    def read(address: str, each: SentQuestion) -> str:
        with program(address, ATTACKER) as client:
            return max(read_answer(client, each), default="")

    with started(target.folder / "second", target.settings) as app, ThreadPoolExecutor(len(said)) as pool:
        addresses = [target.address, f"http://127.0.0.1:{app.port}"] * _STREAMS
        reading = [pool.submit(read, address, each) for address, each in zip(addresses, said, strict=True)]
        while not all(each.read or each.problem for each in said):
            attempt.gauge.hold(0.1)
        with target.database.standing_still():
            attempt.gauge.hold(_STALL_SECONDS)
        sessions = [each.result() for each in reading]
        lost = 0
        with attempt.program(ATTACKER) as client:
            for session_id, each in zip(sessions, said, strict=True):
                if session_id:
                    turns = client.get(f"/sessions/{session_id}/turns").raise_for_status().json()["turns"]
                    lost += lost_of([each], turns)
    problems = [each.problem for each in said]
    if lost:
        attempt.wrong.append(f"{lost} of {len(said)} streams aren't stored as they were read")
    if taken := sum(problem in ("session_taken_over", "lease_lost") for problem in problems):
        attempt.wrong.append(f"{taken} turns are said to have been taken over")
    counts = ", ".join(f"{problems.count(problem)} {problem or 'whole'}" for problem in sorted({*problems}))
    return f"Postgres stands still for {_STALL_SECONDS:g} s under {len(said)} streams: {counts}"
