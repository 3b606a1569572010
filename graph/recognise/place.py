"""Finds where in the sessions that are known the history of a program's request ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

from graph.core.attached import reference_of
from graph.recognise.client_chain import AnchorHash, AnchorRow, Known, Link, RequestChain, SaidTurn
from graph.value.client import ClientMessage, ClientRequest

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
