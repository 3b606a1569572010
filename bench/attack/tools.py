"""Attacks by a server of tools on the server that uses it, and on the other servers of tools."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.attack.bystander import code_of
from bench.attack.run import Attempt
from bench.attack.server import ATTACKER, OTHER, TOOL
from tests.fake.mcp_tools import entry_of

MOST_SECONDS = 1.0  # that a call of another server takes longer, with the turn around it
_AT_ONCE = 2


def servers_in(folder: Path) -> Path:
    """Writes the file of two servers, a hostile one and one that answers, and returns its path."""
    (folder / "wild").mkdir()
    (folder / "notes").mkdir()
    path = folder / "mcp.json"
    entries = {"wild": entry_of(folder / "wild", "mcp_hostile"), "notes": entry_of(folder / "notes")}
    path.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    return path


def quadratic_schemas(attempt: Attempt) -> str:
    """Schemas whose check compares all of 7,000 values with each other, others at each change of the list."""
    (attempt.target.folder / "wild" / "quadratic").touch()
    return _beside(attempt, "listing", "lists of ten schemas of 45 KB, changed 200 times a call")


def many_parts(attempt: Attempt) -> str:
    """Results of 250,000 parts, and of as many as are read."""
    return _beside(attempt, "parts", "results of 250,000 parts") + "; " + _beside(attempt, "most_parts", "of 19,000")


def _beside(attempt: Attempt, tool: str, what: str) -> str:
    """Calls a tool of the hostile server without a pause, two at once, and meanwhile one of the other server."""
    is_over, count = threading.Event(), [0]
    _call(attempt, OTHER, "notes__look")  # starts it
    alone = max(_call(attempt, OTHER, "notes__look") for _ in range(3))

    def insist() -> None:
        while not is_over.is_set():
            _call(attempt, ATTACKER, f"wild__{tool}")
            count[0] += 1

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        insisting = [pool.submit(insist) for _ in range(_AT_ONCE)]
        times = []
        until = time.monotonic() + attempt.many(4, 15)
        while time.monotonic() < until:
            times.append(_call(attempt, OTHER, "notes__look"))
            attempt.gauge.hold(0.2)
        is_over.set()
        for each in insisting:
            each.result()
    if max(times) > alone + MOST_SECONDS:
        attempt.wrong.append(f"another server's call takes {max(times):.1f} s, alone {alone:.1f} s")
    return f"{count[0]} {what}; another server's call {max(times):.2f} s, alone {alone:.2f} s"


def _call(attempt: Attempt, token: str, tool: str) -> float:
    """Has a new chat call a tool, and returns the seconds of its turn."""
    began = time.monotonic()
    with attempt.program(token) as program:
        body: dict[str, Any] = {"message": f"{TOOL}{tool} {time.monotonic_ns()} Look it up."}
        answer = program.post("/chat", json=body)
    if answer.is_error:
        attempt.wrong.append(f"a turn that calls {tool} is refused: {code_of(answer)}")
    return time.monotonic() - began
