from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise

import pytest

MOST_SECONDS = 1.5


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], marks=[pytest.mark.slow, pytest.mark.timeout(900)], id="all"),
        pytest.param(["review_drafts", "--", "different wishes,different rules,Han"], id="a draft that doesn't end"),
        pytest.param(["strict_words", "broad_words", "--", "Hangul"], id="a query of one word"),
        pytest.param(["has_visible", "title_of", "clean_title", "--", "newlines,invisible"], id="nothing to see"),
    ],
)
def test_200000_characters_take_no_function_long(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "tests.fake.timed_function", *arguments]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    assert child.returncode == 0, (lines[-1], child.stderr)
    assert [
        (which, seconds) for which, seconds in pairwise(lines) if isinstance(seconds, float) and seconds > MOST_SECONDS
    ] == []
