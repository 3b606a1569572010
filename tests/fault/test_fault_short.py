from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
OVER_POSTGRES = [pytest.param(part, marks=pytest.mark.postgres) for part in ("postgres", "outage", "stall")]


@pytest.mark.parametrize("part", ["kill", "write", "single", "crowd", "load", "project", *OVER_POSTGRES])
def test_nothing_acknowledged_is_lost_doubled_or_hidden(part: str, tmp_path: Path) -> None:
    words = ["--short", "--parts", part, "--folder", str(tmp_path)]
    run = subprocess.run(  # a process without threads, as it forks
        [sys.executable, "-m", "tests.fault", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1].startswith("OK")
