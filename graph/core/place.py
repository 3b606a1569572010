"""Finds where in the sessions that are known the history of a program's request ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from graph.client import ClientMessage, ClientRequest
from graph.core.alignment import (
    Exchange,
    align_backwards,
    align_forwards,
    count_exchanges,
    exchanges_of,
    is_begun_by,
    is_enough,
)
from graph.core.anchor import AnchorHash, AnchorRow, Known
from graph.core.client_chain import Link, RequestChain
from graph.core.image import reference_of

NEWEST_TURN: Final = 2**31 - 1
_CANDIDATES: Final = 8
_MISSING_TURNS: Final = 20


@dataclass(frozen=True)
class Case:
    """A request beside what is known.

    Attributes:
        default_model: What "" as the name of a model means.
    """

    request: ClientRequest
    chain: RequestChain
    known: Known
    default_model: str = ""

    @property
    def messages(self) -> tuple[ClientMessage, ...]:
        """The request's messages."""
        return self.request.messages

    @cached_property
    def history(self) -> Sequence[Link]:
        """The links up to the last assistant's message."""
        links = self.chain.links
        last = next((index for index in reversed(range(len(links))) if links[index].role == "assistant"), -1)
        return links[: last + 1]

    @property
    def unanswered(self) -> Sequence[Link]:
        """The users' messages behind the history, but for the question."""
        return self.chain.links[len(self.history) : -1]

    def find(self, kind: AnchorHash, hashes: Sequence[bytes]) -> list[AnchorRow]:
        """Returns the anchors with these hashes, newest first; those of the named session alone, if one is named."""
        rows = self.known.find(kind, hashes) if hashes else ()
        return [row for row in rows if self.request.session in ("", row.session_id)]

    def is_in_family(self, row: AnchorRow) -> bool:
        """Whether the row's session is of the chat that the client's own id means."""
        return bool(self.chain.family) and row.family == self.chain.family

    def is_pinned(self, row: AnchorRow) -> bool:
        """Whether the request says by more than its history that it means the row's session."""
        return bool(self.request.session) or self.is_in_family(row)

    def has_images_of(self, row: AnchorRow) -> bool:
        """Whether the question has the images of the row's; hashes are of words alone, as programs leave images out."""
        sent = tuple(map(reference_of, self.messages[-1].images))
        return not sent or any(turn.images == sent for turn in self.known.turns(row.session_id, row.turn, row.turn))

    def is_same_model(self, name: str) -> bool:
        """Whether the request asks for this model."""
        return (self.request.model or self.default_model) == (name or self.default_model)


@dataclass(frozen=True)
class Place:
    """Where the history of a request ends.

    Attributes:
        row: Its session.
        turn: The last turn that the history has.
        index: Where that turn's last message stands among the request's.
        lead_end: How many messages stand in front of the history that is known.
        is_tail: Whether the history was shortened in front.
        is_replaced: Whether the answer is of an attempt that another one has replaced.
        is_running: Whether the turn runs, although the program goes on.
    """

    row: AnchorRow
    turn: int
    index: int
    lead_end: int = 0
    is_tail: bool = False
    is_replaced: bool = False
    is_running: bool = False


def find_place(case: Case) -> Place | None:
    """Returns where the request's history ends; None if no session is known by it for certain."""
    if not case.history:
        place = None
    else:
        exact = _by_chain(case)
        is_whole = exact is not None and exact.index == case.history[-1].at
        place = exact if is_whole else (_by_beginning(case) or exact)
        place = _by_words(case) if place is None else _with_lead(case, _further(case, place))
    return _past_unanswered(case, place)


def _by_chain(case: Case) -> Place | None:
    """Returns the place of the newest answer up to which every word is known."""
    answers = [link for link in case.history if link.role == "assistant"]
    last = answers[-1]
    rows = case.find("chain", [last.chain])
    if not rows:
        rows = case.find("chain", [link.chain for link in answers[:-1]])
        found = {row.chain for row in rows}
        last = next((link for link in reversed(answers) if link.chain in found), last)
        rows = [row for row in rows if row.chain == last.chain]
    if not rows:
        return None
    row = max(rows, key=lambda row: (row.is_live, case.is_in_family(row), row.is_head))
    return Place(row, row.turn, last.at, is_replaced=not row.is_live)


def _by_beginning(case: Case) -> Place | None:
    """Returns the place of the last answer if the program kept only the beginning of what it was sent."""
    last = case.history[-1]
    before = case.history[-2] if len(case.history) > 1 else None
    if before is None or before.role != "user":
        return None
    rows = [row for row in case.find("asked", [before.chain]) if row.is_live]
    for row in sorted(rows, key=lambda row: (not case.is_in_family(row), row.status == "finished")):
        for turn in case.known.turns(row.session_id, row.turn, row.turn):
            if is_begun_by(turn.answer, last.text):
                return Place(row, row.turn, last.at, is_running=turn.status == "running")
    return None


def _further(case: Case, place: Place) -> Place:
    """Follows the session from there by what was said: a front end changes some messages when it sends them again."""
    if place.is_replaced or place.index == case.history[-1].at:
        return place
    rest = exchanges_of([link for link in case.history if link.at > place.index])
    turns = case.known.turns(place.row.session_id, place.turn + 1, NEWEST_TURN)
    aligned, last = align_forwards(rest, turns)
    if aligned == 0:
        return place
    is_running = any(turn.number == last and turn.status == "running" for turn in turns)
    return replace(place, turn=last, index=rest[aligned - 1].last, is_running=is_running)


def _with_lead(case: Case, place: Place) -> Place:
    """Finds what of a known history was never archived: it was the program's own context before, too."""
    links = [link for link in case.history if link.at <= place.index]
    session_id = place.row.session_id
    if count_exchanges(links) == case.known.count_seen(session_id, place.turn):
        return place
    exchanges = exchanges_of(links)
    turns = case.known.turns(session_id, 1, place.turn)
    if align_forwards(exchanges, turns)[0] == len(exchanges):
        return place
    aligned = align_backwards(exchanges, turns)
    return replace(place, lead_end=exchanges[-aligned].first) if aligned else place


def _by_words(case: Case) -> Place | None:
    """Returns the place of a history of which the end is known: it was shortened in front, or wrapped in documents."""
    exchanges = exchanges_of(case.history)
    found: dict[str, tuple[int, AnchorRow]] = {}
    for row in _candidates(case):
        first = max(1, row.turn - len(exchanges) - _MISSING_TURNS)
        aligned = align_backwards(exchanges, case.known.turns(row.session_id, first, row.turn))
        is_certain = is_enough(exchanges[len(exchanges) - aligned :]) or case.is_pinned(row)
        if aligned and is_certain and aligned > found.get(row.session_id, (0, row))[0]:
            found[row.session_id] = (aligned, row)
    best = _only_best(case, found.values())
    return None if best is None else _place_of_tail(case, exchanges, *best)


def _candidates(case: Case) -> list[AnchorRow]:
    """Returns the newest anchors of the last answer, those of the client's own chat first.

    One of a chat with an id that isn't the request's is none, however much was said there word for word: it may be
    somebody else's.
    """
    last = case.history[-1]
    key, scope = case.chain.anchor.key, case.chain.anchor.scope
    rows = [row for row in case.find("answer", [key.answer(scope, last.text)]) if row.is_live]
    rows = [row for row in rows if not row.family or case.is_pinned(row)]
    return sorted(rows, key=lambda row: not case.is_pinned(row))[:_CANDIDATES]


def _only_best(case: Case, found: Iterable[tuple[int, AnchorRow]]) -> tuple[int, AnchorRow] | None:
    """Returns the session that has most of the history; None if two have as much, as one of them were wrong."""
    ranked = [((case.is_pinned(row), aligned), (aligned, row)) for aligned, row in found]
    most = max((rank for rank, _ in ranked), default=None)
    best = [item for rank, item in ranked if rank == most]
    return best[0] if len(best) == 1 else None


def _place_of_tail(case: Case, exchanges: Sequence[Exchange], aligned: int, row: AnchorRow) -> Place:
    last = exchanges[-1].last
    if aligned == len(exchanges):
        is_tail = aligned < case.known.count_seen(row.session_id, row.turn)
        return Place(row, row.turn, last, is_tail=is_tail)
    turns = case.known.turns(row.session_id, 1, row.turn)
    in_front, number = align_forwards(exchanges, turns)
    if any(turn.number == number and not turn.is_imported for turn in turns):
        # The beginning is known as well: something was changed between the two.
        return Place(row, number, exchanges[in_front - 1].last)
    return Place(row, row.turn, last, lead_end=exchanges[-aligned].first, is_tail=True)


def _past_unanswered(case: Case, place: Place | None) -> Place | None:
    """Goes on behind questions that got no answer, as the turn failed or was stopped."""
    for link in case.unanswered:
        for row in case.find("asked", [link.chain]):
            is_next = case.is_pinned(row) if place is None else row.session_id == place.row.session_id
            if is_next and row.is_live and (row.status != "finished" or row.chain is None):
                base = place or Place(row, 0, -1)
                if row.turn > base.turn:
                    place = replace(base, turn=row.turn, index=link.at, is_running=row.status == "running")
                break
    return place
