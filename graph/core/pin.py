"""Pinned messages: always sent word for word, under the record that covers them once they are folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from langchain_core.messages import AnyMessage

from graph.core.divider import labelled
from graph.core.token import estimate_tokens
from graph.core.turn import text_of
from graph.record import ArchivedMessage, HistoryEntry
from prompt.system.framing import PIN_LABEL, Language

PIN: Final = "pin"
_LARGEST_SHARE: Final = 8
_MOST_TOKENS: Final = 4_000


@dataclass(frozen=True)
class Pin:
    """A message that its user pinned.

    Attributes:
        position: Its place in the archive.
        role: "human" or "ai".
    """

    message_id: str
    position: int
    turn: int
    role: str
    text: str

    def line(self, language: Language) -> str:
        """Renders it behind its label; its further lines are indented, as those of a record are."""
        return labelled(PIN_LABEL[language][self.role].format(turn=self.turn), self.text)

    def tokens(self, language: Language) -> int:
        """Returns our estimate for its line."""
        return _tokens(self.line(language))


def pin_of(entry: ArchivedMessage) -> Pin:
    """Returns an archived message as a pin."""
    message = entry.message
    return Pin(str(message.id), entry.position, entry.turn, message.type, text_of(message).strip())


def budget_tokens(input_tokens: int) -> int:
    """Returns how many tokens a session's pins may take in all.

    Args:
        input_tokens: The largest whole input of the session's model.
    """
    return min(_MOST_TOKENS, input_tokens // _LARGEST_SHARE)


def fitting(pins: Sequence[Pin], most_tokens: int, language: Language) -> tuple[Pin, ...]:
    """Returns the pins that a model of so large a budget is sent, by position: the newest ones that it has room for.

    More may be pinned than that: with another model, or before the window was set to less.
    """
    kept: list[Pin] = []
    for pin in sorted(pins, key=lambda pin: pin.position, reverse=True):
        if (tokens := pin.tokens(language)) <= most_tokens:
            kept.append(pin)
            most_tokens -= tokens
    return tuple(reversed(kept))


def unsent(pins: Sequence[Pin], messages: Sequence[AnyMessage]) -> list[Pin]:
    """Returns the pins that aren't among these messages, by position."""
    if not pins:
        return []
    sent = {str(message.id) for message in messages}
    return sorted((pin for pin in pins if pin.message_id not in sent), key=lambda pin: pin.position)


def place_pins(history: Sequence[HistoryEntry], pins: Sequence[Pin]) -> list[HistoryEntry | Pin]:
    """Returns the records, each with the pins that it covers behind it; the other pins come last.

    Args:
        history: Records, oldest first.
        pins: Those that aren't sent otherwise, by position.
    """
    placed: list[HistoryEntry | Pin] = []
    left = list(pins)
    for entry in history:
        placed.append(entry)
        while left and left[0].position <= entry["to_position"]:
            placed.append(left.pop(0))
    return [*placed, *left]


@lru_cache(maxsize=64)
def _tokens(line: str) -> int:
    return estimate_tokens(line)
