"""Finds where a request's history ends in the known sessions: as a whole, or by likeness among one person's chats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Final

from graph.core.attached import is_reference, reference_of
from graph.core.language import is_casual
from graph.recognise.client_chain import (
    FRAME_BYTES,
    ArchivedTurn,
    FingerprintHash,
    FingerprintRow,
    Known,
    Link,
    RequestChain,
    canonical,
    is_chat_id,
    squeezed,
)
from graph.recognise.client_turns import CALL_ID
from graph.value.client import ClientMessage, ClientRequest

_FLOOR_PAIRS: Final = 2
_FLOOR_CHARS: Final = 170
_TELLING_CHARS: Final = 20
# What agents and front ends add to an answer or drop from it: marks of Markdown, and what stands for the rest.
_MARKS: Final = re.compile(r"[*_`#>~|…]|\.{3}")
_ADDED_CHARS: Final = 60
_SUMMARY: Final = re.compile(r"(?i)summar|요약")  # put in place of the turns before, it is no other beginning
# A decorated answer is looked for in so many exchanges before those that are known, and is no longer than this.
_NEAR: Final = 3
_DECORATED_CHARS: Final = 100_000
# Exchanges with one and the same answer, of which a turn may be any.
_ALIKE: Final = 100
_NEWEST_TURN: Final = 2**31 - 1
_CANDIDATES: Final = 8
_WORDS: Final = 1  # their place in `OpenFingerprint.frame`
_MISSING_TURNS: Final = 20


@dataclass(frozen=True)
class Exchange:
    """Consecutive messages of users with the answer; `links` are those that count, `asked` is "" if it was cut off."""

    links: Sequence[Link]
    messages: Sequence[ClientMessage]

    @property
    def last(self) -> int:
        return self.links[-1].at

    @cached_property
    def asked(self) -> str:
        return "".join(squeezed(link.text) for link in self.links if link.role == "user")

    @cached_property
    def answered(self) -> str:
        return "".join(squeezed(link.text) for link in self.links if link.role == "assistant")

    @cached_property
    def bare(self) -> str:
        return _MARKS.sub("", self.answered)

    @cached_property
    def calls(self) -> frozenset[str]:
        """The ids of our calls in its texts: some agents tell calls and their results as text."""
        return frozenset(name for each in self.messages for name in CALL_ID.findall(each.text))

    @cached_property
    def beside(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """What stands beside the words: pictures, results of tools, and ids of calls."""
        asked = (each for each in self.messages if each.role == "user")
        pictures = frozenset(reference_of(url) for each in asked for url in each.images)
        results = frozenset(canonical("tool", each.text) for each in self.messages if each.role == "tool")
        return pictures, results, frozenset(call.id for each in self.messages for call in each.calls)

    @property
    def is_joined(self) -> bool:
        """Whether the user speaks more than once: what is said first may have been left without an answer."""
        return [link.role for link in self.links[:2]] == ["user", "user"]

    @cached_property
    def is_telling(self) -> bool:
        """Whether not everybody could have said this: greetings, thanks, "Continue" and "Ok." count for nothing."""
        question = "\n".join(link.text for link in self.links if link.role == "user")
        is_long = len(self.asked) + len(self.answered) >= _TELLING_CHARS
        return bool(self.calls) or (is_long and not is_casual(question))


@dataclass(frozen=True)
class Case:
    """A request and what is known of it; `previous` is the response that it names as the one it follows."""

    request: ClientRequest
    chain: RequestChain
    known: Known
    default_model: str = ""
    previous: FingerprintRow | None = None

    @property
    def messages(self) -> tuple[ClientMessage, ...]:
        return self.request.messages

    @cached_property
    def history(self) -> Sequence[Link]:
        links = self.chain.links
        last = next((index for index in reversed(range(len(links))) if links[index].role == "assistant"), -1)
        return links[: last + 1]

    @cached_property
    def exchanges(self) -> Sequence[Exchange]:
        roles = [link.role for link in self.history]
        starts = [index for index, pair in enumerate(pairwise(roles), 1) if pair == ("assistant", "user")]
        bounds = pairwise([0, *starts, len(roles)]) if roles else ()
        parts = [self.history[first:end] for first, end in bounds]
        return [Exchange(links, self.messages[links[0].at : links[-1].at + 1]) for links in parts]

    @property
    def unanswered(self) -> Sequence[Link]:
        """The users' messages after the history, without the question."""
        return self.chain.links[len(self.history) : -1]

    def find(self, kind: FingerprintHash, hashes: Sequence[bytes]) -> list[FingerprintRow]:
        """Returns the fingerprints with these hashes of sessions that the request may mean, newest first."""
        rows = self.known.find(kind, hashes) if hashes else ()
        if self.previous:
            return [*rows]  # behind a named response the hashes are of no other chat, but of the session's forks
        if self.request.session:
            return [row for row in rows if row.session_id == self.request.session]
        return [row for row in rows if not self._has_other_frame(row)]

    def _has_other_frame(self, row: FingerprintRow) -> bool:
        """Whether the system message excludes a chat: together with the tools, or unless one person is known to ask."""
        system, words, tools = (self.differs_in(row, part) for part in (0, _WORDS, 2))
        return (words and tools) if self.is_same_person(row) else words or (system and tools)

    def differs_in(self, row: FingerprintRow, part: int) -> bool:
        """Returns True if the request's system message, `_WORDS` of it without dates and numbers, or tools differ."""
        place = slice(part * FRAME_BYTES, (part + 1) * FRAME_BYTES)
        is_known = bool(row.frame) and self.request.options.system is not None
        return is_known and self.chain.fingerprint.frame[place] != (row.frame or b"")[place]

    def is_in_group(self, row: FingerprintRow) -> bool:
        return bool(self.chain.group) and row.group == self.chain.group

    def is_pinned(self, row: FingerprintRow) -> bool:
        """Returns True if the request names the row's chat."""
        return bool(self.request.session) or (is_chat_id(self.chain.group) and self.is_in_group(row))

    def is_same_person(self, row: FingerprintRow) -> bool:
        """True if likeness may lead to the row's chat: an id names it, or one person, without ids, asked both."""
        if self.is_pinned(row):
            return True
        if is_chat_id(self.chain.group) or is_chat_id(row.group):
            return False
        return bool(self.request.user) or (self.request.is_personal and self.request.options.name == row.client)

    @property
    def names_someone(self) -> bool:
        """Returns True if likeness may lead to a chat at all: with an id of the chat, or by one person."""
        named = self.request.session or self.request.user or self.request.is_personal
        return bool(named) or is_chat_id(self.chain.group)

    def stands_in(self, row: FingerprintRow, exact: bytes) -> bool:
        """Returns True if all turns before a row's answer stand in the request, whose hash at this place is `exact`.

        Of another person with other numbers in his instructions that isn't certain: our own tools may have been told.
        """
        return row.whole == exact and (self.is_same_person(row) or not self.differs_in(row, 0))

    def has_images_of(self, row: FingerprintRow) -> bool:
        """Returns True if the question has the row's images; hashes cover words only, as clients leave images out."""
        sent = tuple(map(reference_of, self.messages[-1].images))
        asked = self.known.turns(row.session_id, row.turn, row.turn)
        return (not sent and self.is_same_person(row)) or any(turn.images == sent for turn in asked)

    def is_told_otherwise(self, row: FingerprintRow) -> bool:
        """Returns True if a turn has pictures or results of tools, and the request others beside the same words."""
        if self.is_pinned(row) or not any(each.beside[0] or each.beside[1] for each in self.exchanges):
            return False
        turns = self.known.turns(row.session_id, max(1, row.turn - _MISSING_TURNS), row.turn)
        pairs = [(turn, self.exchanges[at]) for at, turn in align(self.exchanges, turns).pairs]
        # The same picture may have another address each time.
        said = [({*filter(is_reference, turn.images)}, {*filter(is_reference, told.beside[0])}) for turn, told in pairs]
        said += [({*turn.results}, {*told.beside[1]}) for turn, told in pairs]
        return any(archived and here and archived.isdisjoint(here) for archived, here in said)


@dataclass(frozen=True)
class Alignment:
    """Turns of a session that stand in a request, newest first.

    Attributes:
        pairs: Index of the exchange, and its turn.
        start: How many of the pairs stand behind a turn that the request has otherwise: there it left the session.
        near: How many of the pairs follow each other without a missing turn.
    """

    pairs: tuple[tuple[int, ArchivedTurn], ...]
    start: int
    near: int


def align(exchanges: Sequence[Exchange], turns: Sequence[ArchivedTurn]) -> Alignment:
    """Finds the turns among the exchanges, from the newest on.

    Programs put exchanges of their own between turns, and leave turns out. Only if one of our turns is missing and
    other exchanges stand in its place, the request is another branch from there on.
    """
    places: dict[str, list[int]] = {}
    for index, exchange in enumerate(exchanges):
        for name in (exchange.answered, *exchange.calls):
            places.setdefault(name, []).append(index)
    pairs: list[tuple[int, ArchivedTurn]] = []
    end, start, near, has_gap = len(exchanges), 0, 0, False
    for turn in reversed(turns):
        if (at := _find(turn, exchanges, places, end)) is None:
            has_gap = has_gap or not _may_be_missing(turn)
            continue
        if has_gap and pairs:
            near = near or len(pairs)
            start = len(pairs) if at < end - 1 and not turn.is_imported else start
        pairs.append((at, turn))
        end, has_gap = at, False
        if end == 0:
            break
    return Alignment(tuple(pairs), start, near or len(pairs))


def _find(turn: ArchivedTurn, exchanges: Sequence[Exchange], places: Mapping[str, list[int]], end: int) -> int | None:
    """Returns the newest exchange before `end` that may be a turn's: by a call, or by its answer and question.

    Front ends add found documents to a question and send it again without them. They decorate and cut answers, and may
    have received a stopped one in part. The first question may be a summary of those before.
    """
    if called := _newest(turn.calls, places, end):
        return called[0]
    alike = _newest(turn.answers, places, end)
    near = range(end - 1, max(-1, end - 1 - _NEAR), -1)
    for at in chain(alike, near):
        each, is_alike = exchanges[at], at in alike
        ends = each.asked[:_DECORATED_CHARS] + each.asked[-_DECORATED_CHARS:]  # of documents around a question
        is_within = each.asked in turn.question or (bool(turn.question) and turn.question in ends)
        if is_within and (is_alike or _is_decorated(each, turn)):
            return at
        if is_alike and at == 0 and len(each.answered) >= _TELLING_CHARS:
            return at
    return None


def _newest(names: Iterable[str], places: Mapping[str, list[int]], end: int) -> list[int]:
    """Returns where the names stand before `end`, the newest first; what is behind it is dropped for good."""
    found = set[int]()
    for name in names:
        indexes = places.get(name, [])
        while indexes and indexes[-1] >= end:
            indexes.pop()
        found.update(indexes[-_ALIKE:])
    return sorted(found, reverse=True)


def _is_decorated(exchange: Exchange, turn: ArchivedTurn) -> bool:
    """Whether an answer is a turn's in part, or but for marks and words around it; a short one stands at either end."""
    is_asked = exchange.asked == turn.question
    for form in turn.answers:
        if form.startswith(exchange.answered) and (is_asked or turn.status != "finished"):
            return True
        short, long = sorted((exchange.bare, _MARKS.sub("", form)), key=len)
        # Behind the words beside a call stands another's answer to its results.
        if turn.status != "finished" or len(long) > _DECORATED_CHARS:
            continue
        is_end = is_asked and bool(short) and (long.startswith(short) or long.endswith(short))
        if (is_end and len(long) - len(short) <= _ADDED_CHARS) or (len(short) >= _TELLING_CHARS and short in long):
            return True
    return False


def _may_be_missing(turn: ArchivedTurn) -> bool:
    return turn.is_elsewhere or turn.is_imported or not turn.answers


@dataclass(frozen=True)
class Match:
    """End of a request's history in a session.

    Attributes:
        row: Fingerprint that identifies the session.
        index: Index of the turn's last message in the request.
        preamble: Messages of the client's own before and between the known ones.
        is_tail: The beginning of the history is missing.
        is_replaced: The answer is from a replaced attempt.
        is_running: The turn is running although the client sent the next message.
        stands: All turns up to this one stand in the request.
    """

    row: FingerprintRow
    turn: int
    index: int
    preamble: tuple[ClientMessage, ...] = ()
    is_tail: bool = False
    is_replaced: bool = False
    is_running: bool = False
    stands: bool = False


def find_match(case: Case) -> Match | None:
    """Returns the end of the request's history, behind a response that it names; None if no session is certain."""
    if case.previous is not None:
        # An answer that another attempt replaced is told again in the messages.
        turn = case.previous.turn if case.previous.is_live else case.previous.turn - 1
        return _further(case, Match(case.previous, turn, -1))
    match = _by_chain(case) if case.history else None
    is_certain = match is not None and match.index == case.history[-1].at and case.is_same_person(match.row)
    if case.history and case.names_someone and not is_certain:
        match, alike = match and _further(case, match), _by_words(case)
        # Of as much, what another session has in a row counts more, and so does one's own chat.
        is_other = alike is not None and (match is None or alike.row.session_id != match.row.session_id)
        if alike and (match is None or (alike.index, is_other) > (match.index, False)):
            match = alike
    if match is not None and not match.is_tail and not match.preamble:
        match = replace(match, preamble=own_context(case, match.row.session_id, match.turn, match.index))
    return _past_unanswered(case, match)


def _by_chain(case: Case) -> Match | None:
    """Returns the match at the newest answer up to which the whole history is known."""
    answers = {link.chain: link for link in case.history if link.role == "assistant"}
    newest = case.history[-1].chain
    rows = case.find("chain", [newest]) or case.find("chain", [chain for chain in answers if chain != newest])

    def rank(row: FingerprintRow) -> tuple[int, ...]:
        is_else = not case.is_in_group(row), not row.is_live, case.differs_in(row, _WORDS), not row.is_last
        return -answers[row.chain or b""].at, *is_else

    rows.sort(key=rank)
    found = [match for row in rows[:_CANDIDATES] if (match := _at_row(case, row, answers[row.chain or b""]))]
    best = [match for match in found if match.index == max(each.index for each in found)]
    certain = [match for match in best if match.stands or case.is_pinned(match.row)]
    best = certain or best
    # Of one person's chats of which each stands whole any will do. Of several people's one is another's.
    is_any = bool(certain) and case.is_same_person(best[0].row)
    return best[0] if is_any or len({match.row.session_id for match in best}) == 1 else None


def _at_row(case: Case, row: FingerprintRow, link: Link) -> Match | None:
    """Returns the match at an answer of the same words; of another person's chat, at the last turn that stands here."""
    stands = case.stands_in(row, link.exact) and not case.messages[link.at].calls  # behind these the turn goes on
    match = Match(row, row.turn, link.at, is_replaced=not row.is_live, stands=stands)
    if match.stands:
        return match
    if case.is_same_person(row):
        return None if row.is_live and case.is_told_otherwise(row) else match
    turn, index = [(0, -1), *_run(case, row.session_id, row.turn)][-1]
    return Match(row, turn, index, stands=True) if turn else None


def _run(case: Case, session_id: str, last: int) -> Iterator[tuple[int, int]]:
    """Yields those turns of a session, from the first on, that stand whole in the request, and where they end."""
    exchanges, unanswered = iter(case.exchanges), ""
    for turn in case.known.turns(session_id, 1, last):
        asked = unanswered + turn.question
        if not turn.answers and turn.status != "running":
            unanswered = asked  # clients join a question with the next one
            continue
        found = next((each for each in exchanges if each.asked == asked and each.answered in turn.answers), None)
        if turn.status != "finished" or found is None:
            return
        if not all(map(frozenset.issuperset, found.beside, (turn.images, turn.results, turn.calls))):
            return
        unanswered = ""
        yield turn.number, found.last


def stands_before(case: Case, row: FingerprintRow) -> bool:
    """Returns True if the request has all turns before a row's question: the same request, or turn by turn."""
    if row.turn == 1 or case.stands_in(row, case.chain.links[-1].exact):
        return True
    return [0, *(turn for turn, _ in _run(case, row.session_id, row.turn - 1))][-1] == row.turn - 1


def _further(case: Case, match: Match) -> Match:
    """Matches further turns by their words: a front end changes some messages when it sends them again."""
    rest = [exchange for exchange in case.exchanges if exchange.last > match.index]
    if not rest or match.is_replaced or not case.is_same_person(match.row):
        return match
    # A turn of which only what was said beside its calls is known counts as one that the request may have otherwise.
    is_whole = rest[0].links[0].at > match.index
    turns = case.known.turns(match.row.session_id, match.turn + is_whole, _NEWEST_TURN)
    alignment = align(rest, turns)
    first, oldest = alignment.pairs[-1] if alignment.pairs else (0, None)
    # With others in place of the turn behind those that are known, the request left the session there.
    if oldest is None or (first and any(not _may_be_missing(each) for each in turns if each.number < oldest.number)):
        return match
    at, turn = alignment.pairs[alignment.start]
    is_running = turn.status == "running"
    return replace(match, turn=turn.number, index=rest[at].last, is_running=is_running, stands=False)


def own_context(case: Case, session_id: str, turn: int, end: int) -> tuple[ClientMessage, ...]:
    """Returns the messages before those of a turn, at `end`, that are no turns: the client's own context."""
    exchanges = [exchange for exchange in case.exchanges if exchange.last < end]
    if not exchanges or case.known.seen(session_id, turn) == (len(exchanges) + 1, False):
        return ()
    return _left_over(case, exchanges, _aligned(case, exchanges, session_id, turn - 1))


def _left_over(case: Case, exchanges: Sequence[Exchange], alignment: Alignment) -> tuple[ClientMessage, ...]:
    """Returns the messages of the exchanges, the first ones of the request, that are no turns."""
    known = {index for index, _ in alignment.pairs}
    begins = [0, *(exchange.last + 1 for exchange in exchanges)]
    own = [case.messages[first:last] for at, (first, last) in enumerate(pairwise(begins)) if at not in known]
    return tuple(chain.from_iterable(own))


def _aligned(case: Case, exchanges: Sequence[Exchange], session_id: str, last: int) -> Alignment:
    """Aligns exchanges with a session's turns up to `last`: with the newest, and if some are left over with all."""
    first = max(1, last - len(exchanges) - _MISSING_TURNS)
    alignment = align(exchanges, case.known.turns(session_id, first, last))
    if first > 1 and len(alignment.pairs) < len(exchanges):
        alignment = align(exchanges, case.known.turns(session_id, 1, last))
    return alignment


def _by_words(case: Case) -> Match | None:
    """Returns the match of a history that the client shortened or changed, at the newest known answer.

    Of two sessions that have as much of the history, one would be wrong: None.
    """
    found: list[tuple[tuple[int, ...], Alignment, FingerprintRow]] = []
    count = len(case.exchanges)
    for row in _candidates(case):
        alignment = _aligned(case, case.exchanges, row.session_id, row.turn + count)
        near = alignment.pairs[: alignment.near]
        # Imported turns alone prove nothing: examples are the same in many chats.
        is_ours = any(not turn.is_imported for _, turn in near)
        is_certain = _is_enough(case, [at for at, _ in near]) and not _is_contradicted(case, alignment, row)
        is_certain = is_certain or case.is_pinned(row) or row.asked == _asked_last(case)
        if is_ours and is_certain and not case.is_told_otherwise(row):
            known = case.is_pinned(row), alignment.near, len(alignment.pairs)
            found.append(((*known, case.is_in_group(row), row.status != "finished"), alignment, row))
    best = [each for each in found if each[0] == max(rank for rank, *_ in found)]
    if len(best) != 1:
        return None
    _, alignment, row = best[0]
    if (edited := _edited(case, alignment, row)) is not None:
        return edited
    at, turn = alignment.pairs[alignment.start]
    is_tail = len(alignment.pairs) < case.known.seen(row.session_id, turn.number)[0]
    own, is_running = _left_over(case, case.exchanges[:at], alignment), turn.status == "running"
    return Match(row, turn.number, case.exchanges[at].last, own, is_tail=is_tail, is_running=is_running)


def _edited(case: Case, alignment: Alignment, row: FingerprintRow) -> Match | None:
    """Returns the match at the first turn that has another answer in the request, in front of all that is known."""
    at, oldest = alignment.pairs[-1]
    front = {each.asked: number for number, each in reversed([*enumerate(case.exchanges[:at])])}
    for turn in case.known.turns(row.session_id, 1, oldest.number - 1) if front else ():
        if turn.answers and (number := front.get(turn.question)) is not None:
            own = _left_over(case, case.exchanges[:number], alignment)
            return Match(row, turn.number, case.exchanges[number].last, own, is_replaced=True)
    return None


def _asked_last(case: Case) -> bytes:
    """Returns the hash of the history up to the question whose answer it has last, or a part of it."""
    return next((link.chain for link in reversed(case.history) if link.role == "user"), b"")


def _is_enough(case: Case, known: Collection[int]) -> bool:
    """Returns True if what is known says more than another chat may, of whose examples one may be a turn."""
    telling = [at for at in known if case.exchanges[at].is_telling]
    is_long = any(len(case.exchanges[at].answered) >= _FLOOR_CHARS for at in telling)
    return is_long or len(telling) >= _FLOOR_PAIRS or (bool(telling) and len(case.exchanges) - 1 in known)


def _is_contradicted(case: Case, alignment: Alignment, row: FingerprintRow) -> bool:
    """Whether the request begins as another chat: with exchanges of its own where the session has others.

    Not in a session whose program sends messages of its own among the turns.
    """
    at, oldest = alignment.pairs[alignment.near - 1]
    known = {index for index, _ in alignment.pairs}
    front = [each for index, each in enumerate(case.exchanges[:at]) if index not in known and each.is_telling]
    own = [each for each in front if not _SUMMARY.search(each.asked[:_FLOOR_CHARS])]
    if all(len(each.answered) < _TELLING_CHARS for each in own) or case.known.seen(row.session_id, row.turn)[1]:
        return False
    return any(not _may_be_missing(turn) for turn in case.known.turns(row.session_id, 1, oldest.number - 1))


def _candidates(case: Case) -> Sequence[FingerprintRow]:
    """Returns the newest known answer of those sessions that know most of it, those of the client's own chat first."""
    key, scope = case.chain.fingerprint.key, case.chain.fingerprint.scope
    answers = {key.answer(scope, link.text) for link in case.history if link.role == "assistant"}
    calls = {key.call(scope, name) for exchange in case.exchanges for name in exchange.calls}
    asked = {case.chain.links[0].chain, _asked_last(case)}
    rows = [*case.find("answer", [*answers, *calls]), *case.find("asked", [*asked])]
    rows = [row for row in rows if row.is_live and case.is_same_person(row)]
    counts = Counter(row.session_id for row in rows)
    newest = {row.session_id: row for row in sorted(rows, key=lambda row: row.turn)}
    ranked = sorted(newest.values(), key=lambda row: (case.is_pinned(row), counts[row.session_id]), reverse=True)
    return ranked[:_CANDIDATES]


def _past_unanswered(case: Case, match: Match | None) -> Match | None:
    """Skips questions without an answer, whose turns failed or were stopped, or whose answer the client lost."""
    end = case.history[-1].at + 1 if case.history else 0
    links = {link.chain: link for link in case.unanswered}
    rows = [row for row in case.find("asked", [*links]) if row.is_live]
    for row in sorted(rows, key=lambda row: links[row.asked].at):
        stands = case.stands_in(row, links[row.asked].exact)
        is_next = row.session_id == match.row.session_id if match else case.is_pinned(row)
        # What was said of another person's answer doesn't stand in the request.
        turns = case.known.turns(row.session_id, row.turn, row.turn) if row.status in {"failed", "stopped"} else ()
        is_open = case.is_same_person(row) or (stands and bool(turns) and not turns[0].answers)
        if is_next and is_open and row.turn > (match.turn if match else 0):
            # What the client put behind the known turns stands before the questions, too.
            own = (*match.preamble, *case.messages[match.index + 1 : end]) if match else ()
            place = replace(match or Match(row, 0, -1), row=row, turn=row.turn, index=links[row.asked].at)
            match = replace(place, preamble=own, is_running=row.status == "running", stands=stands)
    return match
