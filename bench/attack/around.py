"""Attacks on what stands around a server: the proxy before it, and the database behind it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx2

from bench.attack.bystander import Said, code_of, lost_of, pieces_of
from bench.attack.row import MEGABYTE
from bench.attack.run import Attempt, LeftOutError
from bench.attack.target import ATTACKER, LEASE_SECONDS, LONG, Target, bearer, running
from bench.attack.watch import deleted_bytes
from bench.attack.wire import count_open, head, opened
from tests.fake.port import free_port
from tests.fake.postgres import PostgresServer
from tests.fake.proxy import proxied

_SYSTEM_PLACES: Final = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
_BODY_BYTES: Final = 31 * MEGABYTE
_STREAMS: Final = 6  # of each of two servers
_STALL_SECONDS: Final = LEASE_SECONDS + 4  # all answers end meanwhile


def spooled_bodies(attempt: Attempt) -> str:
    """Bodies without a token that stop before their end, at the proxy with the product's own configuration."""
    if shutil.which("nginx", path=_SYSTEM_PLACES) is None:
        message = "no nginx"
        raise LeftOutError(message)
    count = attempt.many(12, 16)
    body = bytes(_BODY_BYTES)
    folder = attempt.target.folder / f"nginx{time.monotonic_ns()}"
    with proxied(folder, [attempt.target.port]) as port:
        master = int((folder / "nginx.pid").read_text())
        attempt.gauge.add(lambda: sum(map(deleted_bytes, _family(master))))
        asked = [
            head("POST", path, f"Content-Length: {_BODY_BYTES + 1_000}", host=f"127.0.0.1:{port}")
            for path in ("/v1/chat/completions", "/") * (count // 2)
        ]
        with opened(port, count, lambda wire: wire.send(asked.pop(), body)) as wires:
            attempt.hold()
            held = count_open(wires)
            size = sum(map(deleted_bytes, _family(master))) / MEGABYTE
    return f"{count} bodies of 31 MB to nginx, no token; {held} still held, {size:.0f} MB in its files"


def _family(pid: int) -> list[int]:
    """Returns a process and its children."""
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, check=False, text=True)  # noqa: S603, S607  # wherever the system has it
    return [pid, *map(int, told.stdout.split())]


def stalled_database(attempt: Attempt) -> str:
    """All processes of Postgres stand still for longer than a lease lasts, while two servers answer."""
    target = attempt.target
    if target.database is None:
        message = "no Postgres"
        raise LeftOutError(message)
    said = [Said(f"{LONG}{number} What did we decide?") for number in range(2 * _STREAMS)]
    with _second_server(target) as port, ThreadPoolExecutor(len(said)) as pool:
        addresses = [target.address, f"http://127.0.0.1:{port}"] * _STREAMS
        reading = [pool.submit(_read, address, each) for address, each in zip(addresses, said, strict=True)]
        while not all(each.read or each.problem for each in said):
            attempt.gauge.hold(0.1)
        with _standing_still(target.database):
            attempt.gauge.hold(_STALL_SECONDS)
        sessions = [each.result() for each in reading]
        lost = 0
        with httpx2.Client(base_url=target.address, headers=bearer(ATTACKER), timeout=60, trust_env=False) as program:
            for session_id, each in zip(sessions, said, strict=True):
                if session_id:
                    turns = program.get(f"/sessions/{session_id}/turns").raise_for_status().json()["turns"]
                    lost += lost_of([each], turns)
    problems = [each.problem for each in said]
    if lost:
        attempt.wrong.append(f"{lost} of {len(said)} streams aren't stored as they were read")
    if taken := sum(problem in ("session_taken_over", "lease_lost") for problem in problems):
        attempt.wrong.append(f"{taken} turns are said to have been taken over")
    told = ", ".join(f"{problems.count(problem)} {problem or 'whole'}" for problem in sorted({*problems}))
    return f"Postgres stands still for {_STALL_SECONDS:g} s under {len(said)} streams: {told}"


@contextmanager
def _second_server(target: Target) -> Iterator[int]:
    port = free_port()
    with running(target.folder / "second", target.settings, port):
        yield port


def _read(address: str, said: Said) -> str:
    """Reads the answer to a question into it; returns the session."""
    body: dict[str, Any] = {
        "model": "turnfold",
        "stream": True,
        "messages": [{"role": "user", "content": said.question}],
    }
    session_id = ""
    try:
        with (
            httpx2.Client(base_url=address, headers=bearer(ATTACKER), timeout=120, trust_env=False) as program,
            program.stream("POST", "/v1/chat/completions", json=body) as answer,
        ):
            if answer.is_error:
                answer.read()
                said.problem = code_of(answer.text) or str(answer.status_code)
                return ""
            session_id = answer.headers["x-turnfold-session"]
            for piece, problem in pieces_of(answer.iter_lines()):
                said.read += piece
                said.problem = said.problem or problem
    except httpx2.HTTPError as error:
        said.problem = type(error).__name__
    return session_id


@contextmanager
def _standing_still(server: PostgresServer) -> Iterator[None]:
    """Stops all processes of a Postgres while the block runs, without ending one."""
    ((folder,),) = server.execute("SHOW data_directory")
    processes = _family(int((Path(folder) / "postmaster.pid").read_text().split()[0]))
    try:
        for process in processes:
            _tell(process, signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            _tell(process, signal.SIGCONT)


def _tell(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)
