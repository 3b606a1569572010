"""Compares the first words of an answer through the door with those of the same request sent straight."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from bench.door.program import Message, Program, answer, question
from bench.page.endpoint import AT_ONCE

# A user reads before the next message; until then the door has ended the turn, and has made its folds.
_PAUSE_SECONDS = 0.3


class Pair(NamedTuple):
    """Medians in milliseconds."""

    straight: float
    door: float

    @property
    def more(self) -> float:
        """How much later the first words come through the door."""
        return self.door - self.straight


def compare_second_turns(straight: Program, door: Program, samples: int) -> Pair:
    """Asks the second question of as many chats as there are samples, and of one more that warms up."""
    return _medians(_ask_both(straight, door, _held(door, f"s{number}", 1), number) for number in range(samples + 1))


def compare_long_chat(straight: Program, door: Program, samples: int, *, history: int) -> Pair:
    """Goes on with one chat of so many messages; each sample makes its history longer by two."""

    def taken() -> Iterator[tuple[float, float]]:
        said = _held(door, "long", history // 2)
        for number in range(samples + 1):
            yield _ask_both(straight, door, said, number)

    return _medians(taken())


def _held(door: Program, name: str, turns: int) -> list[Message]:
    """Holds a chat through the door; returns all that was said."""
    said: list[Message] = []
    for turn in range(turns):
        said.append(question(f"{AT_ONCE}{name}-{turn} 다음 단계와 남은 예산을 정리해 주세요."))
        said.append(answer(door.ask(said).text))
    return said


def _ask_both(straight: Program, door: Program, said: list[Message], number: int) -> tuple[float, float]:
    """Asks the next question of a chat on both ways, each first every other time, and adds it to what was said."""
    said.append(question(f"{AT_ONCE}t{number} 지금까지의 일을 알려 주세요."))
    timed = {}
    for program in (straight, door) if number % 2 else (door, straight):
        time.sleep(_PAUSE_SECONDS)
        timed[program] = program.ask(said)
    said.append(answer(timed[door].text))
    return timed[straight].first_words, timed[door].first_words


def _medians(taken: Iterator[tuple[float, float]]) -> Pair:
    next(taken)  # the first one makes connections and reads modules
    straight, door = zip(*taken, strict=True)
    return Pair(median(straight), median(door))
