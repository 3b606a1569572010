from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.fake.timed_function import FUNCTIONS

MOST_SECONDS = 1.5


QUICK = "review_drafts,strict_words,has_visible,clean_title"


@pytest.mark.parametrize(
    ("together", "names"),
    [
        pytest.param(list(FUNCTIONS), "", marks=[pytest.mark.slow, pytest.mark.timeout(900)], id="all"),
        pytest.param([QUICK], "different wishes,Han,Hangul,newlines,invisible", id="some"),
    ],
)
def test_200000_characters_take_no_function_long(together: list[str], names: str) -> None:
    found: list[tuple[str, float]] = []
    for functions in together:
        command = [sys.executable, "-m", "tests.fake.timed_function", functions, names]
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        assert child.returncode == 0, (lines[-1:], child.stderr)
        found += [(name, seconds) for name, seconds in lines if seconds > MOST_SECONDS]
    assert found == []
