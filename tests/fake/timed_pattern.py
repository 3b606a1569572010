"""Runs regular expressions over texts made to be slow; a process of its own, which may hang in one of them.

    python -m tests.fake.timed_pattern 500 8 < patterns.json

Reads a list of `PatternUse`, and prints the name of each before it runs it, then what it found, as JSON lines. Over
`_DEADLINE` seconds of CPU for a text the system ends the process.
"""

from __future__ import annotations

import json
import math
import re
import resource
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from tests.fake.slow_text import SlowText, slow_texts

_DEADLINE: Final = 2
# The limit may count a long process's time a little otherwise than its own clock does.
_CLOCKS_DIFFER: Final = 1.2
# What takes less of the shortest text isn't looked at further.
_LEAST_SECONDS_A_CHAR: Final = 120e-9
# How much longer the texts are that decide.
_LONGER: Final = (4, 16, 64)
# By how much more the seconds may grow than the length does.
_MOST_GROWTH: Final = 2.0
_SECONDS_A_CHAR: Final = 3e-6
_CLOCK_SECONDS: Final = 0.012

AnyPattern = re.Pattern[Any]
"""A pattern of text or of bytes."""


class PatternUse(NamedTuple):
    """A pattern and the methods that it is used by."""

    name: str
    pattern: str
    flags: int
    is_bytes: bool
    methods: tuple[str, ...]


class Finding(NamedTuple):
    """A text for which a pattern takes too long, its characters, and the CPU seconds."""

    name: str
    method: str
    text: str
    chars: int
    seconds: float


def findings(use: PatternUse, size: int, most: int) -> Iterator[Finding]:
    """Yields for each method the first text that takes too long; longer ones are made of the `most` slowest alone."""
    pattern: AnyPattern = re.compile(use.pattern.encode("latin-1") if use.is_bytes else use.pattern, use.flags)
    texts = slow_texts(use.pattern, use.flags & ~re.UNICODE)
    for method in use.methods:
        for text in _slowest(pattern, method, texts, size)[:most]:
            if found := _seconds(pattern, method, text, size):
                yield Finding(use.name, method, _shown(text), *found)
                break


def _slowest(pattern: AnyPattern, method: str, texts: Iterable[SlowText], size: int) -> list[SlowText]:
    timed = [(_wall(pattern, method, text.of(size)), text) for text in texts]
    slow = [each for each in timed if each[0] > _LEAST_SECONDS_A_CHAR * size]
    return [text for _, text in sorted(slow, key=lambda each: -each[0])]


def _seconds(pattern: AnyPattern, method: str, text: SlowText, size: int) -> tuple[int, float] | None:
    """Returns the length of a text of this kind that takes too long, and the CPU seconds that it takes."""
    short = text.of(size)
    seconds = min(_wall(pattern, method, short) for _ in range(2)) / len(short)
    for factor in _LONGER:
        longer = text.of(size * factor)
        growth = _wall(pattern, method, longer) / len(longer) / seconds
        if growth < _MOST_GROWTH:
            return None
        if found := _too_long(pattern, method, longer):
            return found
    return None


def _too_long(pattern: AnyPattern, method: str, text: str) -> tuple[int, float] | None:
    began = time.process_time()
    _run(pattern, method, text)
    seconds = time.process_time() - began
    return (len(text), seconds) if seconds > _SECONDS_A_CHAR * len(text) + _CLOCK_SECONDS else None


def _wall(pattern: AnyPattern, method: str, text: str) -> float:
    """Returns the seconds on the wall, which are exact, but count what else runs; they decide what is run again."""
    began = time.perf_counter()
    _run(pattern, method, text)
    return time.perf_counter() - began


def _run(pattern: AnyPattern, method: str, text: str) -> None:
    given = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    resource.setrlimit(
        resource.RLIMIT_CPU, (math.ceil(time.process_time() * _CLOCKS_DIFFER) + _DEADLINE, resource.RLIM_INFINITY)
    )
    if method == "scan":
        deque(pattern.finditer(given), maxlen=0)
    else:
        getattr(pattern, method)(given)


def _shown(text: SlowText) -> str:
    return ascii(f"{text.before}({text.pump})*{text.end}")


def _tell(said: str | Finding) -> None:
    sys.stdout.write(f"{json.dumps(said)}\n")
    sys.stdout.flush()


def main() -> None:
    """Runs what stands in the input; the arguments are the size of the shortest texts and how many kinds are longer."""
    size, most = map(int, sys.argv[1:])
    for entry in json.load(sys.stdin):
        use = PatternUse(*entry)
        _tell(use.name)
        for finding in findings(use, size, most):
            _tell(finding)


if __name__ == "__main__":
    main()
