"""A chat as its user knows it: what was asked and answered, in which time, and what went wrong."""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

PAUSE_SECONDS: Final = 10.0


class Sample(NamedTuple):
    """Milliseconds of one answer that were the product's own: until its first words, and until all of it was there."""

    first_words: float
    whole: float


class BrokenAnswerError(Exception):
    """An answer without its beginning or its end."""


@dataclass
class HeldChat:
    """One user's chat.

    Attributes:
        name: No other chat's.
        token: What reads the chat back.
        session_ids: What it is called on the servers; more than one is a mistake of theirs.
        said: Each question, and what the stored answer has to end with.
        errors: What was raised, in the order of the turns.
    """

    name: str
    token: str
    session_ids: set[str] = field(default_factory=set)
    said: list[tuple[str, str]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def question(self, turn: int) -> str:
        """Returns the question of a turn."""
        return f"{self.name}t{turn} 지금까지의 일과 남은 예산을 정리해 주세요."

    def note(self, turn: int, text: str, *, first_words: float, whole: float) -> None:
        """Takes the milliseconds from the question to the sights of its answer less those that the endpoint took.

        Raises:
            BrokenAnswerError: The text isn't a whole answer to the question.
        """
        begin, end = (re.search(rf"{word}-{self.name}t{turn}-(\d+)", text) for word in ("begin", "end"))
        if begin is None or end is None:
            raise BrokenAnswerError(text[-80:])
        self.samples.append(Sample(first_words - int(begin[1]), whole - int(end[1])))


class Pauses:
    """How long a user reads and thinks: the same for the same user in every run.

    Args:
        seconds: On average; each is between half of it and half more.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._random = random.Random(name)  # noqa: S311  # no secret
        self._seconds = seconds

    async def begin(self) -> None:
        """Waits before the first question, so that not all users begin at once."""
        await asyncio.sleep(self._random.uniform(0, self._seconds))

    async def think(self) -> None:
        """Waits before the next question."""
        await asyncio.sleep(self._random.uniform(0.5, 1.5) * self._seconds)
