"""Finds the end of a request's history in the known sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

from graph.core.attached import is_reference, reference_of
from graph.core.language import is_casual
from graph.recognise.client_chain import (
    ArchivedTurn,
    FingerprintHash,
    FingerprintRow,
    Known,
    Link,
    RequestChain,
    canonical,
)
from graph.value.client import ClientMessage, ClientRequest

_FLOOR_PAIRS: Final = 2
_FLOOR_CHARS: Final = 200
_TELLING_CHARS: Final = 20


@dataclass(frozen=True)
class Exchange:
    """Consecutive messages of users and the answer, in canonical texts.

    `question` is "" if the history was cut before it.
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
    return len(_starts(links)) + 1 if links else 0


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


def align(exchanges: Sequence[Exchange], turns: Sequence[ArchivedTurn], *, is_behind: bool = False) -> Alignment:
    """Finds the turns among the exchanges, from the newest on.

    Programs put exchanges of their own between turns, and leave turns out. Only if one of our turns is missing and
    other exchanges stand in its place, the request is another branch from there on. With `is_behind`, turns and
    exchanges stand behind others that are known to match.
    """
    said = [(_squeeze(exchange.question), _squeeze(exchange.answer)) for exchange in exchanges]
    places: dict[str, list[int]] = {}
    for index, (_, answered) in enumerate(said):
        places.setdefault(answered, []).append(index)
    pairs: list[tuple[int, ArchivedTurn]] = []
    end, start, near, has_gap = len(said), 0, 0, False
    for turn in reversed(turns):
        if (at := _find(turn, said, places, end)) is None:
            has_gap = has_gap or not _may_be_missing(turn)
            continue
        if has_gap and pairs:
            near = near or len(pairs)
            start = len(pairs) if at < end - 1 and not turn.is_imported else start
        pairs.append((at, turn))
        end, has_gap = at, False
        if end == 0:
            break
    if is_behind and has_gap and end > 0:
        start = len(pairs)
    return Alignment(tuple(pairs), start, near or len(pairs))


def _find(
    turn: ArchivedTurn, said: Sequence[tuple[str, str]], places: Mapping[str, Sequence[int]], end: int
) -> int | None:
    """Returns the newest exchange before `end` with an equal answer, and a question that contains the other's.

    Front ends add found documents to a question and send it again without them. A stopped answer may have been received
    in part.
    """
    question, answer, final = _squeeze(turn.question), _squeeze(turn.answer), _squeeze(turn.final)
    if turn.status == "finished":
        indexes = sorted({*places.get(answer, ()), *places.get(final, ())})
    else:
        indexes = [index for index in range(end) if answer.startswith(said[index][1]) or said[index][1] == final]
    for index in reversed(indexes):
        asked, answered = said[index]
        if index < end and answered and (asked in question or (bool(question) and question in asked)):
            return index
    return None


def is_enough(exchanges: Sequence[Exchange]) -> bool:
    """Returns True if these exchanges, known to be of one session, are too many to match another by chance."""
    own = [exchange for exchange in exchanges if not is_casual(exchange.question)]
    pairs = [exchange for exchange in own if exchange.question and _is_telling(exchange)]
    return len(pairs) >= _FLOOR_PAIRS or any(len(exchange.answer) >= _FLOOR_CHARS for exchange in own)


def _is_telling(exchange: Exchange) -> bool:
    """Whether not everybody could have said this: greetings, thanks, "Continue" and "Ok." count for nothing."""
    chars = len(_squeeze(exchange.question)) + len(_squeeze(exchange.answer))
    return bool(exchange.answer) and chars >= _TELLING_CHARS and not is_casual(exchange.question)


def is_same_question(sent: str, stored: str) -> bool:
    """Returns True if one of the questions contains the other; an unknown one ("") is in any."""
    sent, stored = _squeeze(sent), _squeeze(stored)
    return sent in stored or (bool(stored) and stored in sent)


def _is_substantial(exchange: Exchange) -> bool:
    """Whether an exchange isn't just something that a program says and its model accepts ("Ok.")."""
    return _is_telling(exchange) and len(_squeeze(exchange.answer)) >= _TELLING_CHARS


def is_started_by(answer: str, part: str) -> bool:
    started = _squeeze(part)
    return bool(started) and _squeeze(answer).startswith(started)


def _may_be_missing(turn: ArchivedTurn) -> bool:
    return turn.is_elsewhere or turn.is_imported or not turn.answer


def _starts(links: Sequence[Link]) -> list[int]:
    roles = [link.role for link in links]
    return [index for index, pair in enumerate(pairwise(roles), 1) if pair == ("assistant", "user")]


def _exchange(links: Sequence[Link]) -> Exchange:
    questions = [link.text for link in links if link.role == "user"]
    answers = [link.text for link in links if link.role == "assistant"]
    return Exchange(links[0].at, links[-1].at, "\n".join(questions), "\n".join(answers))


def _squeeze(text: str) -> str:
    """Drops white space: front ends join the parts of an answer in different ways."""
    return "".join(text.split())


NEWEST_TURN: Final = 2**31 - 1
_CANDIDATES: Final = 8
_MISSING_TURNS: Final = 20


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

    @property
    def unanswered(self) -> Sequence[Link]:
        """The users' messages after the history, without the question."""
        return self.chain.links[len(self.history) : -1]

    def find(self, kind: FingerprintHash, hashes: Sequence[bytes]) -> list[FingerprintRow]:
        """Returns the fingerprints with these hashes, newest first, of the named session only if there is one."""
        rows = self.known.find(kind, hashes) if hashes else ()
        # Behind a named response the hashes are of no other chat, but of the session's forks.
        return [row for row in rows if self.previous or self.request.session in ("", row.session_id)]

    @cached_property
    def _told(self) -> Sequence[tuple[Exchange, frozenset[str], frozenset[str]]]:
        """The exchanges of the history with their pictures and results of tools; empty if it has none at all."""
        told = []
        for exchange in exchanges_of(self.history):
            messages = self.messages[exchange.first : exchange.last + 1]
            pictures = _whole(reference_of(url) for each in messages for url in each.images)
            results = [(each.call_id, canonical("tool", each.text)) for each in messages if each.role == "tool"]
            told.append((exchange, pictures, frozenset(part for result in results for part in result)))
        return told if any(pictures or results for _, pictures, results in told) else ()

    def agreeing(self, rows: Sequence[FingerprintRow]) -> Sequence[FingerprintRow]:
        """Returns the rows that the request's pictures and results of tools don't contradict; of many the newest."""
        return [row for row in rows[:_CANDIDATES] if not self._is_told_otherwise(row)] if self._told else rows

    def _is_told_otherwise(self, row: FingerprintRow) -> bool:
        """Whether a turn has pictures or results of tools, and the request quite other ones beside the same words."""
        if not self._told or not row.is_live or self.is_pinned(row):
            return False
        turns = self._turns_before(row)
        seen = _whole(url for turn in turns for url in turn.images)
        got = {part for turn in turns for result in turn.results for part in result}
        for at, turn in align([exchange for exchange, _, _ in self._told], turns).pairs:
            _, pictures, results = self._told[at]
            if pictures and _whole(turn.images) and not pictures & seen:
                return True
            if results and turn.results and not results & got:
                return True
        return False

    def told_apart(self, rows: Sequence[FingerprintRow]) -> Sequence[FingerprintRow]:
        """Returns those of several rows of equal words that have what the request has beside its words.

        None of them if they differ in it and the request doesn't tell: they may be chats of different people.
        """
        if len({row.session_id for row in rows}) <= 1 or self.is_pinned(rows[0]):
            return rows
        told = {part for _, pictures, results in self._told for part in (*pictures, *results)}
        turns = [self._turns_before(row) for row in rows]
        common = [len(told & _beside(each, has_ids=True)) for each in turns]
        best = [at for at, count in enumerate(common) if count == max(common)]
        return [rows[at] for at in best] if len({_beside(turns[at]) for at in best}) == 1 else ()

    def _turns_before(self, row: FingerprintRow) -> Sequence[ArchivedTurn]:
        """Returns the newest turns up to a row's."""
        key = row.session_id, row.turn
        if key not in self._turns:
            self._turns[key] = self.known.turns(row.session_id, max(1, row.turn - _MISSING_TURNS), row.turn)
        return self._turns[key]

    @cached_property
    def _turns(self) -> dict[tuple[str, int], Sequence[ArchivedTurn]]:
        return {}

    def is_in_group(self, row: FingerprintRow) -> bool:
        return bool(self.chain.group) and row.group == self.chain.group

    def is_pinned(self, row: FingerprintRow) -> bool:
        """Returns True if the request identifies the row's session by more than its history."""
        return bool(self.request.session) or self.is_in_group(row)

    def has_images_of(self, row: FingerprintRow) -> bool:
        """Returns True if the question has the row's images; hashes cover words only, as clients leave images out."""
        sent = tuple(map(reference_of, self.messages[-1].images))
        return not sent or any(turn.images == sent for turn in self.known.turns(row.session_id, row.turn, row.turn))

    def has_system_of(self, row: FingerprintRow) -> bool:
        """Returns True if the session's newest system message is the request's."""
        return self.known.has_system(row.session_id, self.request.options.system or "")

    def is_same_model(self, name: str) -> bool:
        """Returns True if the request asks for the model of a turn; without one it asks for the session's."""
        return not self.request.model or self.request.model == (name or self.default_model)


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
    """

    row: FingerprintRow
    turn: int
    index: int
    preamble: tuple[ClientMessage, ...] = ()
    is_tail: bool = False
    is_replaced: bool = False
    is_running: bool = False


def _whole(urls: Iterable[str]) -> frozenset[str]:
    """Returns the references of pictures that were sent whole: the same picture may have another address each time."""
    return frozenset(filter(is_reference, urls))


def _beside(turns: Iterable[ArchivedTurn], *, has_ids: bool = False) -> frozenset[str]:
    """Returns what turns have that hashes of a program's words don't cover."""
    found = set[str]()
    for turn in turns:
        found |= _whole(turn.images)
        found |= {part for result in turn.results for part in result[0 if has_ids else 1 :]}
        found |= {turn.question} if turn.is_elsewhere else set()
    return frozenset(found)


def find_match(case: Case) -> Match | None:
    """Returns the end of the request's history; None if no session matches for certain."""
    if not case.history:
        return _past_unanswered(case, None)
    found = _by_chain(case)
    if not found or found[0].index < case.history[-1].at:
        found = _by_beginning(case) or _furthest(case, found)
    if not found:
        return _past_unanswered(case, _by_words(case))
    rows = case.told_apart(_of_system(case, [match.row for match in found])[:_CANDIDATES])
    match = next((_further(case, match) for match in found if match.row in rows), None)
    if match is None:
        return None
    by_words = _by_words(case) if _goes_on_elsewhere(case, match) else None
    is_further = by_words is not None and by_words.index > match.index
    return _past_unanswered(case, by_words if is_further else _with_preamble(case, match))


def _goes_on_elsewhere(case: Case, match: Match) -> bool:
    """Whether an answer behind a match is known from another session: a branch that began behind the match."""
    key, scope = case.chain.fingerprint.key, case.chain.fingerprint.scope
    behind = [link.text for link in case.history if link.at > match.index and link.role == "assistant"]
    rows = case.find("answer", [key.answer(scope, text) for text in behind])
    return any(row.is_live and row.session_id != match.row.session_id for row in rows)


def match_behind(case: Case, row: FingerprintRow) -> Match:
    """Returns the match at a response that the request names, or at a later turn that its history has.

    An answer that another attempt replaced is told again in the messages.
    """
    match = Match(row, row.turn if row.is_live else row.turn - 1, -1)
    return _further(case, match) if case.history else match


def _by_chain(case: Case) -> list[Match]:
    """Returns the matches at the newest answer up to which the whole history is known, heads first."""
    answers = [link for link in case.history if link.role == "assistant"]
    last = answers[-1]
    rows = case.find("chain", [last.chain])
    if not rows:
        rows = case.find("chain", [link.chain for link in answers[:-1]])
        found = {row.chain for row in rows}
        last = next((link for link in reversed(answers) if link.chain in found), last)
        rows = [row for row in rows if row.chain == last.chain]
    most = max(((row.is_live, case.is_in_group(row)) for row in rows), default=None)
    rows = [row for row in rows if (row.is_live, case.is_in_group(row)) == most]
    rows.sort(key=lambda row: not row.is_head)
    return [Match(row, row.turn, last.at, is_replaced=not row.is_live) for row in case.agreeing(rows)]


def _by_beginning(case: Case) -> list[Match]:
    """Returns the matches at the last answer if the client has only the beginning of the response."""
    last = case.history[-1]
    before = case.history[-2] if len(case.history) > 1 else None
    if before is None or before.role != "user":
        return []
    found: dict[tuple[bool, bool], list[Match]] = {}
    for row in case.agreeing(case.find("asked", [before.chain])):
        for turn in case.known.turns(row.session_id, row.turn, row.turn) if row.is_live else ():
            if is_started_by(turn.answer, last.text):
                match = Match(row, row.turn, last.at, is_running=turn.status == "running")
                found.setdefault((not case.is_in_group(row), row.status == "finished"), []).append(match)
    return found[min(found)] if found else []


def _furthest(case: Case, matches: Sequence[Match]) -> list[Match]:
    """Returns those of several matches behind which most of the history is known by its words."""
    if len(matches) <= 1:
        return [*matches]
    reached = [_further(case, match).index for match in matches[:_CANDIDATES]]
    return [match for match, index in zip(matches, reached, strict=False) if index == max(reached)]


def _further(case: Case, match: Match) -> Match:
    """Matches further turns by their words: a front end changes some messages when it sends them again."""
    if match.is_replaced or match.index == case.history[-1].at:
        return match
    rest = exchanges_of([link for link in case.history if link.at > match.index])
    turns = case.known.turns(match.row.session_id, match.turn + 1, NEWEST_TURN)
    alignment = align(rest, turns, is_behind=True)
    if alignment.start == len(alignment.pairs):
        return match
    at, turn = alignment.pairs[alignment.start]
    return replace(match, turn=turn.number, index=rest[at].last, is_running=turn.status == "running")


def _with_preamble(case: Case, match: Match) -> Match:
    """Finds the messages before and between the known turns that were never archived: the client's own context."""
    links = [link for link in case.history if link.at <= match.index]
    session_id = match.row.session_id
    seen, has_own = case.known.seen(session_id, match.turn)
    if count_exchanges(links) == seen and not has_own:
        return match
    *exchanges, last = exchanges_of(links)
    alignment = align(exchanges, case.known.turns(session_id, 1, match.turn - 1))
    return replace(match, preamble=_own_messages(case, [*exchanges, last], {index for index, _ in alignment.pairs}))


def own_context(case: Case, session_id: str, turn: int) -> tuple[ClientMessage, ...]:
    """Returns what a request whose question is a turn has of the client's own: messages that are no turns."""
    if not case.history or not case.known.seen(session_id, turn)[1]:
        return ()
    exchanges = exchanges_of(case.history)
    alignment = align(exchanges, case.known.turns(session_id, 1, turn - 1))
    return _own_messages(case, [*exchanges, exchanges[-1]], {index for index, _ in alignment.pairs})


def joined_before(case: Case, row: FingerprintRow) -> tuple[ClientMessage, ...]:
    """Returns the messages in front of the question that were asked with it, as one, in a turn."""
    behind = [case.messages[link.at] for link in case.unanswered]
    turns = case.known.turns(row.session_id, row.turn, row.turn) if behind else ()
    asked = _squeeze("".join(turn.question for turn in turns))
    return tuple(message for message in behind if _squeeze(canonical("user", message.text)) in asked)


def _own_messages(case: Case, exchanges: Sequence[Exchange], known: Collection[int]) -> tuple[ClientMessage, ...]:
    """Returns the messages of the exchanges before the last one that are no turns."""
    begins = [0, *(exchange.last + 1 for exchange in exchanges)]
    own = [case.messages[begins[at] : begins[at + 1]] for at in range(len(exchanges) - 1) if at not in known]
    return tuple(message for messages in own for message in messages)


def _by_words(case: Case) -> Match | None:
    """Returns the match of a history with a known end, shortened at its beginning or wrapped in documents.

    The end is the newest known answer; what stands behind it is the client's own.
    """
    exchanges = exchanges_of(case.history)
    found: dict[str, tuple[Alignment, FingerprintRow]] = {}
    for row in _candidates(case):
        first = max(1, row.turn - len(exchanges) - _MISSING_TURNS)
        alignment = align(exchanges, case.known.turns(row.session_id, first, row.turn))
        near = alignment.pairs[: alignment.near]
        # Imported turns alone prove nothing: examples are the same in many chats.
        is_ours = any(not turn.is_imported for _, turn in near)
        is_certain = is_enough([exchanges[at] for at, _ in near]) and not _is_contradicted(
            case, exchanges, alignment, row
        )
        if is_ours and (is_certain or case.is_pinned(row)):
            found[row.session_id] = (alignment, row)
    best = _only_best(case, found.values())
    return None if best is None else _match_of_tail(case, exchanges, *best)


def _is_contradicted(case: Case, exchanges: Sequence[Exchange], alignment: Alignment, row: FingerprintRow) -> bool:
    """Whether the request begins as another chat: with exchanges of its own where the session has others.

    Not in a session whose program sends messages of its own among the turns.
    """
    at, oldest = alignment.pairs[-1]
    if not any(map(_is_substantial, exchanges[:at])) or case.known.seen(row.session_id, row.turn)[1]:
        return False
    return any(not _may_be_missing(turn) for turn in case.known.turns(row.session_id, 1, oldest.number - 1))


def _candidates(case: Case) -> Sequence[FingerprintRow]:
    """Returns the newest known answer of each session that knows most of the answers; other chats' never.

    Sessions of the client's own chat come first.
    """
    key, scope = case.chain.fingerprint.key, case.chain.fingerprint.scope
    answers = {key.answer(scope, link.text) for link in case.history if link.role == "assistant"}
    rows = [row for row in case.find("answer", [*answers]) if row.is_live]
    rows = [row for row in rows if not row.group or case.is_pinned(row)]
    counts = Counter(row.session_id for row in rows)
    newest = {row.session_id: row for row in sorted(rows, key=lambda row: row.turn)}
    ranked = [newest[session_id] for session_id in counts]
    ranked.sort(key=lambda row: (case.is_pinned(row), counts[row.session_id]), reverse=True)
    return case.agreeing(ranked[:_CANDIDATES])


def _only_best(
    case: Case, found: Iterable[tuple[Alignment, FingerprintRow]]
) -> tuple[Alignment, FingerprintRow] | None:
    """Returns the session that matches most of the history; None for a tie, as one of the two would be wrong."""
    ranked = [((case.is_pinned(row), alignment.near), (alignment, row)) for alignment, row in found]
    most = max((rank for rank, _ in ranked), default=None)
    best = [item for rank, item in ranked if rank == most]
    rows = _of_system(case, [row for _, row in best])
    return next(item for item in best if item[1] is rows[0]) if len(rows) == 1 else None


def _of_system(case: Case, rows: Sequence[FingerprintRow]) -> Sequence[FingerprintRow]:
    """Returns those of several rows whose sessions have the request's system message; all if none has."""
    return [row for row in rows if len(rows) > 1 and case.has_system_of(row)] or rows


def _match_of_tail(case: Case, exchanges: Sequence[Exchange], alignment: Alignment, row: FingerprintRow) -> Match:
    if len(alignment.pairs) < len(exchanges):
        alignment = align(exchanges, case.known.turns(row.session_id, 1, row.turn))
    at, turn = alignment.pairs[alignment.start]
    preamble = _own_messages(case, exchanges[: at + 1], {index for index, _ in alignment.pairs})
    is_tail = len(alignment.pairs) < case.known.seen(row.session_id, row.turn)[0]
    return Match(row, turn.number, exchanges[at].last, preamble, is_tail=is_tail)


def _past_unanswered(case: Case, match: Match | None) -> Match | None:
    """Skips questions without an answer, whose turns failed or were stopped."""
    for link in case.unanswered:
        for row in case.find("asked", [link.chain]):
            is_next = case.is_pinned(row) if match is None else row.session_id == match.row.session_id
            if is_next and row.is_live and (row.status != "finished" or row.chain is None):
                base = match or Match(row, 0, -1)
                if row.turn > base.turn:
                    # What the client put behind the known turns stands before the questions, too.
                    own = case.messages[base.index + 1 : case.history[-1].at + 1] if match and case.history else ()
                    preamble = (*base.preamble, *own)
                    running = row.status == "running"
                    match = replace(base, turn=row.turn, index=link.at, preamble=preamble, is_running=running)
                break
    return match
