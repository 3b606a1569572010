"""`make attack` sees what a server does that doesn't stand an attack."""

from __future__ import annotations

import os
from pathlib import Path

import httpx2
import pytest

from bench.attack.row import Bounds, Row
from bench.attack.run import Attack, Attempt, attacked
from bench.attack.watch import deleted_bytes
from tests.fake.attacked_server import serving
from tests.fake.openai_server import FakeOpenAI

pytestmark = pytest.mark.slow
BOUNDS = Bounds(held=40, peak=50)


def attack_that_has_it(endpoint: FakeOpenAI, folder: Path, what: str) -> Row:
    def run(attempt: Attempt) -> str:
        httpx2.post(f"{attempt.target.address}/do/{what}", timeout=4, trust_env=False)
        attempt.gauge.hold(0.5)
        return what

    with serving(folder, endpoint) as target:
        row = attacked(Attack(what, run, bounds=BOUNDS), target, is_short=True)
        assert target.is_alive is not bool(row.ended)
    return row


@pytest.mark.parametrize(
    ("what", "problems"),
    [
        ("nothing", []),
        ("keep", ["peak over 50 MB", "holds over 40 MB"]),
        ("wait", ["/health over 2 s"]),
        ("forget", ["turns lost"]),
        ("stop", ["hangs", "/health over 2 s", "others' turns failed"]),
        ("die", ["the server died", "others' turns failed"]),
    ],
)
def test_a_server_that_does_not_stand_an_attack_is_told(
    endpoint: FakeOpenAI, tmp_path: Path, what: str, problems: list[str]
) -> None:
    row = attack_that_has_it(endpoint, tmp_path, what)
    assert row.turns + len(row.failed) > 0
    for problem in problems:
        assert any(problem in found for found in row.problems), (problem, row)
    if not problems:
        assert row.verdict == "holds"


def test_files_that_no_folder_has_any_more_count_as_memory(tmp_path: Path) -> None:
    before = deleted_bytes(os.getpid())
    with (tmp_path / "spooled").open("wb") as file:
        file.write(bytes(1_000))
        file.flush()
        assert deleted_bytes(os.getpid()) == before
        (tmp_path / "spooled").unlink()
        assert deleted_bytes(os.getpid()) == before + 1_000
