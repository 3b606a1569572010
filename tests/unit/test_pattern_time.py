from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest

from tests.fake.pattern import hidden_patterns, pattern_uses, uncounted_patterns
from tests.fake.slow_text import slow_texts
from tests.fake.timed_pattern import PatternUse


def test_each_pattern_stands_in_a_name_of_its_module() -> None:
    assert hidden_patterns() == []
    assert uncounted_patterns() == []


@pytest.mark.parametrize(("size", "most"), [(600, 6), pytest.param(2_500, 40, marks=pytest.mark.slow)])
@pytest.mark.timeout(900)
def test_no_text_takes_a_pattern_more_time_than_its_length_is_worth(size: int, most: int) -> None:
    assert slow_ones(pattern_uses(), size, most) == []


@pytest.mark.slow
def test_patterns_that_take_long_are_found() -> None:
    slow = {
        r"\s*\(\d": "scan",
        r"“[^”\n]*”": "scan",
        r"^\s*>": "scan",
        r"<(?=\s*/?\s*rule)": "scan",
        r"(?:[0-9]{1,3}(?:,[0-9]{3})++|[0-9]++)원": "scan",
        r"<think>.*?</think>": "scan",
        r"a\s+가(?:지\s[가-힣\s]+)?[\s?]*$": "match",
        r"(?:[A-Z]{0,6}[a-z]{2,}|[A-Z]{2,6})+": "fullmatch",
    }
    uses = [PatternUse(text, text, re.MULTILINE, is_bytes=False, methods=(method,)) for text, method in slow.items()]

    found = slow_ones(uses, 600, 6)

    assert all(line.startswith(text) for line, text in zip(found, slow, strict=True))
    assert found[-1].endswith("hangs")


def test_a_text_is_made_of_what_leads_to_a_loop_what_it_takes_and_an_end_that_fails() -> None:
    made = {text.of(6) for text in slow_texts(r"<b>(?:x|yz){5,}!", 0)}

    assert {"<b>xxxxxx\x00", "<b>yzyzyz\x00", "<b><b>", "      "} <= made


def slow_ones(uses: list[PatternUse], size: int, most: int) -> list[str]:
    """Returns what takes long, each as a line; a pattern that hangs ends its process, and another goes on behind it."""
    found: list[str] = []
    while uses:
        command = [sys.executable, "-W", "ignore", "-m", "tests.fake.timed_pattern", str(size), str(most)]
        child = subprocess.run(command, input=json.dumps(uses), capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        found += [" ".join(map(str, line)) for line in lines if isinstance(line, list)]
        if child.returncode == 0:
            break
        assert child.returncode in (-signal.SIGXCPU, -signal.SIGKILL), child.stderr
        started = [line for line in lines if isinstance(line, str)]
        found.append(f"{started[-1]} hangs")
        uses = uses[len(started) :]
    return found
