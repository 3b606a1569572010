"""The id of an event on `/chat`, from which a client goes on: `{turn}.{attempt}.{seq}`."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

# The place of the last event of a turn whose log is gone: nobody knows how many there were.
END: Final = "end"
_ID: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,16}|end)", re.ASCII)


class EventId(NamedTuple):
    """Where an event stands.

    Attributes:
        seq: Its place in the log of the attempt, from `TurnStream.first_place`; 0 for a snapshot of a turn whose log
            isn't here.
    """

    turn: int
    attempt: int
    seq: int | Literal["end"]

    def __str__(self) -> str:
        """Returns the id as it is sent."""
        return f"{self.turn}.{self.attempt}.{self.seq}"


def parse_event_id(text: str) -> EventId | None:
    """Returns the id, None if the text is none of ours.

    >>> parse_event_id("3.1.7")
    EventId(turn=3, attempt=1, seq=7)
    >>> parse_event_id("7") is None
    True
    """
    found = _ID.fullmatch(text)
    if found is None:
        return None
    turn, attempt, seq = found.groups()
    return EventId(int(turn), int(attempt), "end" if seq == END else int(seq))
