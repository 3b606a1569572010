"""Lays the history that a program sends beside the turns of a session, by what was said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from graph.core.anchor import SaidTurn
from graph.core.client_chain import Link

_FLOOR_PAIRS: Final = 2
_FLOOR_CHARS: Final = 200


@dataclass(frozen=True)
class Exchange:
    """What users said in a row, and the answer to it, in canonical texts.

    Attributes:
        first: The place of its first message among the request's.
        last: The place of its last message that counts.
        question: "" if the history was cut before it.
    """

    first: int
    last: int
    question: str
    answer: str


def exchanges_of(links: Sequence[Link]) -> list[Exchange]:
    """Splits a history that ends with an assistant's message into exchanges, oldest first."""
    bounds = pairwise([0, *_starts(links), len(links)]) if links else ()
    return [_exchange(links[first:end]) for first, end in bounds]


def count_exchanges(links: Sequence[Link]) -> int:
    """Returns how many exchanges `exchanges_of` returns."""
    return len(_starts(links)) + 1 if links else 0


def align_backwards(exchanges: Sequence[Exchange], turns: Sequence[SaidTurn]) -> int:
    """Returns how many of the newest exchanges are the newest of these turns, one behind the other.

    Turns that the program never saw, or that gave no answer, may stand between them.
    """
    aligned = 0
    earlier = reversed(turns)
    for exchange in reversed(exchanges):
        for turn in earlier:
            if is_same(exchange, turn):
                aligned += 1
                break
            if not _may_be_missing(turn):
                return aligned
        else:
            return aligned
    return aligned


def align_forwards(exchanges: Sequence[Exchange], turns: Sequence[SaidTurn]) -> tuple[int, int]:
    """Follows exchanges from a known place on.

    All of them may have turns between them that the program no longer sends, because it shortens what it resends.

    Args:
        exchanges: What the request says behind that place.
        turns: What the session has behind it.

    Returns:
        How many of the oldest exchanges are turns of the session in the same order, and the last such turn, 0 for none.
    """
    with_gaps = _follow(exchanges, turns, has_gaps=True)
    if with_gaps[0] == len(exchanges):
        return with_gaps
    return _follow(exchanges, turns, has_gaps=False)


def is_enough(exchanges: Sequence[Exchange]) -> bool:
    """Whether these exchanges, known to be of one session, are too much to be of another by chance."""
    pairs = [exchange for exchange in exchanges if exchange.question]
    return len(pairs) >= _FLOOR_PAIRS or any(len(exchange.answer) >= _FLOOR_CHARS for exchange in exchanges)


def is_same(exchange: Exchange, turn: SaidTurn) -> bool:
    """Whether an exchange is this turn: the answer is ours, and one question contains the other.

    Front ends add found documents to a question and resend it without them. A stopped answer may have been received in
    part.
    """
    theirs, ours = _squeeze(exchange.answer), _squeeze(turn.answer)
    if not theirs or not (theirs == ours or (turn.status != "finished" and ours.startswith(theirs))):
        return False
    asked, said = _squeeze(exchange.question), _squeeze(turn.question)
    return asked in said or (bool(said) and said in asked)


def is_begun_by(answer: str, part: str) -> bool:
    """Whether a text that isn't empty is the beginning of an answer."""
    begun = _squeeze(part)
    return bool(begun) and _squeeze(answer).startswith(begun)


def _follow(exchanges: Iterable[Exchange], turns: Iterable[SaidTurn], *, has_gaps: bool) -> tuple[int, int]:
    aligned, number = 0, 0
    later = iter(turns)
    for exchange in exchanges:
        for turn in later:
            if is_same(exchange, turn):
                aligned, number = aligned + 1, turn.number
                break
            if not has_gaps and not _may_be_missing(turn):
                return aligned, number
        else:
            break
    return aligned, number


def _may_be_missing(turn: SaidTurn) -> bool:
    return turn.is_elsewhere or not turn.answer


def _starts(links: Sequence[Link]) -> list[int]:
    """Returns where exchanges begin behind the first one."""
    roles = [link.role for link in links]
    return [index for index, pair in enumerate(pairwise(roles), 1) if pair == ("assistant", "user")]


def _exchange(links: Sequence[Link]) -> Exchange:
    questions = [link.text for link in links if link.role == "user"]
    answers = [link.text for link in links if link.role == "assistant"]
    return Exchange(links[0].at, links[-1].at, "\n".join(questions), "\n".join(answers))


def _squeeze(text: str) -> str:
    """Drops white space: front ends join the parts of an answer in their own ways."""
    return "".join(text.split())
