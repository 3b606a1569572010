"""Finds where a request's history ends in the known sessions: as a whole, or by likeness among one person's chats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
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
)
from graph.recognise.client_turns import CALL_ID
from graph.value.client import ClientMessage, ClientRequest

_FLOOR_PAIRS: Final = 2
_FLOOR_CHARS: Final = 200
_TELLING_CHARS: Final = 20
# What agents and front ends add to an answer or drop from it: marks of Markdown, and what stands for the rest.
_MARKS: Final = re.compile(r"[*_`#>~|…]|\.{3}")
_ADDED_CHARS: Final = 60
# A decorated answer is looked for in so many exchanges before those that are known.
_NEAR: Final = 3


@dataclass(frozen=True)
class Exchange:
    """Consecutive messages of users and the answer, in canonical texts.

    `question` is "" if the history was cut before it.
    """

    first: int
    last: int
    question: str
    answer: str
    messages: tuple[ClientMessage, ...] = ()

    @cached_property
    def asked(self) -> str:
        return _squeeze(self.question)

    @cached_property
    def answered(self) -> str:
        return _squeeze(self.answer)

    @cached_property
    def calls(self) -> frozenset[str]:
        """The ids of our calls in its texts: some agents tell calls and their results as text."""
        return frozenset(name for each in self.messages for name in CALL_ID.findall(each.text))

    @cached_property
    def pictures(self) -> frozenset[str]:
        return frozenset(reference_of(url) for each in self.messages for url in each.images)

    @cached_property
    def results(self) -> frozenset[str]:
        return frozenset(canonical("tool", each.text) for each in self.messages if each.role == "tool")


def exchanges_of(links: Sequence[Link], messages: Sequence[ClientMessage] = ()) -> list[Exchange]:
    """Splits a history that ends with an assistant's message into exchanges, oldest first."""
    bounds = pairwise([0, *_starts(links), len(links)]) if links else ()
    return [_exchange(links[first:end], messages) for first, end in bounds]


def count_exchanges(links: Sequence[Link]) -> int:
    return len(_starts(links)) + 1 if links else 0


def _starts(links: Sequence[Link]) -> list[int]:
    roles = [link.role for link in links]
    return [index for index, pair in enumerate(pairwise(roles), 1) if pair == ("assistant", "user")]


def _exchange(links: Sequence[Link], messages: Sequence[ClientMessage]) -> Exchange:
    questions = [link.text for link in links if link.role == "user"]
    answers = [link.text for link in links if link.role == "assistant"]
    first, last = links[0].at, links[-1].at
    return Exchange(first, last, "\n".join(questions), "\n".join(answers), tuple(messages[first : last + 1]))


def _squeeze(text: str) -> str:
    """Drops white space: front ends join the parts of an answer in different ways."""
    return "".join(text.split())


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
    if is_behind and has_gap and end > 0:
        start = len(pairs)
    return Alignment(tuple(pairs), start, near or len(pairs))


def _find(
    turn: ArchivedTurn, exchanges: Sequence[Exchange], places: Mapping[str, Sequence[int]], end: int
) -> int | None:
    """Returns the newest exchange before `end` that may be a turn's: by a call, or by its answer and question.

    Front ends add found documents to a question and send it again without them. They decorate and cut answers, and may
    have received a stopped one in part. The first question may be a summary of those before.
    """
    if called := [index for name in turn.calls for index in places.get(name, ()) if index < end]:
        return max(called)
    question, forms = _squeeze(turn.question), {_squeeze(turn.answer), _squeeze(turn.final)} - {""}
    indexes = {index for form in forms for index in places.get(form, ()) if index < end}
    if turn.status != "finished":
        indexes |= {index for index in range(end) if _is_part(exchanges[index].answered, forms)}
    for index in sorted(indexes, reverse=True):
        first = exchanges[0]
        if _is_within(question, exchanges[index].asked) or (index == 0 and len(first.answered) >= _TELLING_CHARS):
            return index
    for index in range(end - 1, max(-1, end - 1 - _NEAR), -1) if turn.status == "finished" else ():
        asked, answered = exchanges[index].asked, exchanges[index].answered
        if _is_within(question, asked) and _is_decorated(answered, forms, is_asked=asked == question):
            return index
    return None


def _is_within(question: str, asked: str) -> bool:
    """Returns True if one of the questions contains the other; an unknown one ("") is in any."""
    return asked in question or (bool(question) and question in asked)


def _is_part(answered: str, forms: Iterable[str]) -> bool:
    return bool(answered) and any(form.startswith(answered) for form in forms)


def _is_decorated(answered: str, forms: Iterable[str], *, is_asked: bool) -> bool:
    """Returns True if one of two answers contains the other but for marks; a short one stands at either end."""
    bare = _MARKS.sub("", answered)
    for form in forms:
        short, long = sorted((bare, _MARKS.sub("", form)), key=len)
        is_end = is_asked and bool(short) and (long.startswith(short) or long.endswith(short))
        if (is_end and len(long) - len(short) <= _ADDED_CHARS) or (len(short) >= _TELLING_CHARS and short in long):
            return True
    return False


def _is_telling(exchange: Exchange) -> bool:
    """Whether not everybody could have said this: greetings, thanks, "Continue" and "Ok." count for nothing."""
    is_long = len(exchange.asked) + len(exchange.answered) >= _TELLING_CHARS
    return bool(exchange.calls) or (bool(exchange.answer) and is_long and not is_casual(exchange.question))


def _is_enough(exchanges: Sequence[Exchange], known: Collection[int]) -> bool:
    """Returns True if what is known says more than another chat may, of whose examples one may be a turn."""
    telling = [at for at in known if _is_telling(exchanges[at])]
    is_long = any(len(exchanges[at].answer) >= _FLOOR_CHARS for at in telling)
    return is_long or len(telling) >= _FLOOR_PAIRS or (bool(telling) and len(exchanges) - 1 in known)


def is_started_by(answer: str, part: str) -> bool:
    return _is_part(_squeeze(part), [_squeeze(answer)])


def _may_be_missing(turn: ArchivedTurn) -> bool:
    return turn.is_elsewhere or turn.is_imported or not turn.answer


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

    @cached_property
    def exchanges(self) -> Sequence[Exchange]:
        return exchanges_of(self.history, self.messages)

    @property
    def unanswered(self) -> Sequence[Link]:
        """The users' messages after the history, without the question."""
        return self.chain.links[len(self.history) : -1]

    def find(self, kind: FingerprintHash, hashes: Sequence[bytes]) -> list[FingerprintRow]:
        """Returns the fingerprints with these hashes, newest first, but for those of other chats.

        These are of other sessions, if the request names one, and of requests with other instructions.
        """
        rows = self.known.find(kind, hashes) if hashes else ()
        if self.previous:
            return [*rows]  # behind a named response the hashes are of no other chat, but of the session's forks
        if self.request.session:
            return [row for row in rows if row.session_id == self.request.session]
        return [row for row in rows if not self._has_other_frame(row)]

    def _has_other_frame(self, row: FingerprintRow) -> bool:
        """Whether the system message excludes a chat: together with the tools, or unless one person is known to ask."""
        system, words, tools = (self._differs_in(row, part) for part in range(3))
        return (words and tools) if self.is_same_person(row) else words or (system and tools)

    def has_other_words(self, row: FingerprintRow) -> bool:
        """Returns True if more than dates, times and numbers of the system messages differ."""
        return self._differs_in(row, 1)

    def _differs_in(self, row: FingerprintRow, part: int) -> bool:
        place = slice(part * FRAME_BYTES, (part + 1) * FRAME_BYTES)
        is_known = bool(row.frame) and self.request.options.system is not None
        return is_known and self.chain.fingerprint.frame[place] != (row.frame or b"")[place]

    def is_in_group(self, row: FingerprintRow) -> bool:
        return bool(self.chain.group) and row.group == self.chain.group

    def is_pinned(self, row: FingerprintRow) -> bool:
        """Returns True if the request names the row's chat."""
        return bool(self.request.session) or (is_chat_id(self.chain.group) and self.is_in_group(row))

    def is_same_person(self, row: FingerprintRow) -> bool:
        """Returns True if likeness may lead to the row's chat: an id names it, or one person asked both, without ids.

        By a token that is one person's only this person asked.
        """
        if self.is_pinned(row):
            return True
        if is_chat_id(self.chain.group) or is_chat_id(row.group):
            return False
        return bool(self.request.user) or (self.request.is_personal and self.request.options.name == row.client)

    def has_images_of(self, row: FingerprintRow) -> bool:
        """Returns True if the question has the row's images; hashes cover words only, as clients leave images out."""
        sent = tuple(map(reference_of, self.messages[-1].images))
        return not sent or any(turn.images == sent for turn in self.known.turns(row.session_id, row.turn, row.turn))

    def is_same_model(self, name: str) -> bool:
        """Returns True if the request asks for the model of a turn; without one it asks for the session's."""
        return not self.request.model or self.request.model == (name or self.default_model)

    def is_told_otherwise(self, row: FingerprintRow) -> bool:
        """Returns True if a turn has pictures or results of tools, and the request others beside the same words."""
        if self.is_pinned(row) or not any(exchange.pictures or exchange.results for exchange in self.exchanges):
            return False
        turns = self.known.turns(row.session_id, max(1, row.turn - _MISSING_TURNS), row.turn)
        for at, turn in align(self.exchanges, turns).pairs:
            told = self.exchanges[at]
            # The same picture may have another address each time.
            seen, sent = (frozenset(filter(is_reference, urls)) for urls in (turn.images, told.pictures))
            for archived, here in ((seen, sent), (frozenset(turn.results), told.results)):
                if archived and here and not archived & here:
                    return True
        return False


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
    """Returns the end of the request's history; None if no session matches for certain."""
    if not case.history:
        return _past_unanswered(case, None)
    match = _by_chain(case)
    if match is None or match.index < case.history[-1].at:
        match, alike = match and _further(case, match), _by_beginning(case) or _by_words(case)
        place = (match.index, match.row.session_id) if match else (-1, "")
        # Of as much, what another session has in a row counts more.
        if alike and (alike.index > place[0] or (alike.index == place[0] and alike.row.session_id != place[1])):
            match = alike
    if match is not None and not match.is_tail and not match.preamble:
        match = _with_preamble(case, match)
    return _past_unanswered(case, match)


def match_behind(case: Case, row: FingerprintRow) -> Match:
    """Returns the match at a response that the request names, or at a later turn that its history has.

    An answer that another attempt replaced is told again in the messages.
    """
    match = Match(row, row.turn if row.is_live else row.turn - 1, -1)
    return _further(case, match) if case.history else match


def _by_chain(case: Case) -> Match | None:
    """Returns the match at the newest answer up to which the whole history is known."""
    answers = {link.chain: link for link in case.history if link.role == "assistant"}
    newest = case.history[-1].chain
    rows = case.find("chain", [newest]) or case.find("chain", [chain for chain in answers if chain != newest])
    rows.sort(
        key=lambda row: (
            -answers[row.chain or b""].at,
            not case.is_in_group(row),
            not row.is_live,
            case.has_other_words(row),
            not row.is_head,
        )
    )
    found = [match for row in rows[:_CANDIDATES] if (match := _at_row(case, row, answers[row.chain or b""]))]
    best = max(found, key=lambda match: match.index, default=None)
    if best is None or best.stands or case.is_pinned(best.row):
        return best
    # Equal words don't tell two chats of one person apart, nor do their times.
    others = {match.row.session_id for match in found if match.index == best.index}
    standing = [match for match in found if match.index == best.index and match.stands]
    return (standing or [best])[0] if standing or len(others) == 1 else None


def _at_row(case: Case, row: FingerprintRow, link: Link) -> Match | None:
    """Returns the match at an answer of the same words; of another person's chat, at the last turn that stands here."""
    match = Match(row, row.turn, link.at, is_replaced=not row.is_live, stands=row.whole == link.exact)
    if match.stands:
        return match
    if case.is_same_person(row):
        return None if row.is_live and case.is_told_otherwise(row) else match
    turn, index = 0, -1
    for turn, index in _run(case, row.session_id, row.turn):  # noqa: B007  # the last one
        pass
    return Match(row, turn, index, stands=True) if turn else None


def _run(case: Case, session_id: str, last: int) -> Iterator[tuple[int, int]]:
    """Yields those turns of a session, from the first on, that stand whole in the request, and where they end."""
    exchanges, unanswered = iter(case.exchanges), ""
    for turn in case.known.turns(session_id, 1, last):
        asked = unanswered + _squeeze(turn.question)
        if not turn.answer and turn.status != "running":
            unanswered = asked  # clients join a question with the next one
            continue
        forms = {_squeeze(turn.answer), _squeeze(turn.final)}
        found = next((each for each in exchanges if each.asked == asked and each.answered in forms), None)
        if turn.status != "finished" or found is None:
            return
        if not (found.pictures.issuperset(turn.images) and found.results.issuperset(turn.results)):
            return
        unanswered = ""
        yield turn.number, found.last


def stands_before(case: Case, row: FingerprintRow) -> bool:
    """Returns True if the request has all turns before a row's question: the same request, or turn by turn."""
    if row.whole is not None and row.whole == case.chain.links[-1].exact:
        return True
    turns = [turn for turn, _ in _run(case, row.session_id, row.turn - 1)] if row.turn > 1 else []
    return row.turn == 1 or turns[-1:] == [row.turn - 1]


def _by_beginning(case: Case) -> Match | None:
    """Returns the match at the last answer if the client has only the beginning of one response."""
    last = case.history[-1]
    before = case.history[-2] if len(case.history) > 1 else None
    found: list[tuple[tuple[bool, bool], Match]] = []
    rows = case.find("asked", [before.chain]) if before is not None and before.role == "user" else []
    for row in [row for row in rows if row.is_live and case.is_same_person(row)][:_CANDIDATES]:
        for turn in case.known.turns(row.session_id, row.turn, row.turn):
            if is_started_by(turn.answer, last.text) and not case.is_told_otherwise(row):
                match = Match(row, row.turn, last.at, is_running=turn.status == "running")
                found.append(((not case.is_in_group(row), row.status == "finished"), match))
    best = [match for rank, match in found if rank == min(found, key=lambda each: each[0])[0]]
    return best[0] if len(best) == 1 else None


def _further(case: Case, match: Match) -> Match:
    """Matches further turns by their words: a front end changes some messages when it sends them again."""
    if match.is_replaced or match.index == case.history[-1].at or not case.is_same_person(match.row):
        return match
    rest = [exchange for exchange in case.exchanges if exchange.last > match.index]
    turns = case.known.turns(match.row.session_id, match.turn + 1, NEWEST_TURN)
    alignment = align(rest, turns, is_behind=True)
    if alignment.start == len(alignment.pairs):
        return match
    at, turn = alignment.pairs[alignment.start]
    is_running = turn.status == "running"
    return replace(match, turn=turn.number, index=rest[at].last, is_running=is_running, stands=False)


def _with_preamble(case: Case, match: Match) -> Match:
    """Finds the messages before and between the known turns that were never archived: the client's own context."""
    links = [link for link in case.history if link.at <= match.index]
    session_id = match.row.session_id
    seen, has_own = case.known.seen(session_id, match.turn)
    if count_exchanges(links) == seen and not has_own:
        return match
    *exchanges, last = exchanges_of(links, case.messages)
    alignment = align(exchanges, case.known.turns(session_id, 1, match.turn - 1))
    return replace(match, preamble=_own_messages(case, [*exchanges, last], {index for index, _ in alignment.pairs}))


def own_context(case: Case, session_id: str, turn: int) -> tuple[ClientMessage, ...]:
    """Returns what a request whose question is a turn has of the client's own: messages that are no turns."""
    if not case.history or not case.known.seen(session_id, turn)[1]:
        return ()
    alignment = align(case.exchanges, case.known.turns(session_id, 1, turn - 1))
    return _own_messages(case, [*case.exchanges, case.exchanges[-1]], {index for index, _ in alignment.pairs})


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
    """Returns the match of a history with a known end, shortened at its beginning or changed by the client.

    The end is the newest known answer; what stands behind it is the client's own. Of two sessions that have as much of
    the history, one would be wrong: None.
    """
    found: list[tuple[tuple[bool, int, bool], Alignment, FingerprintRow]] = []
    count = len(case.exchanges)
    for row in _candidates(case):
        turns = case.known.turns(row.session_id, max(1, row.turn - count - _MISSING_TURNS), row.turn + count)
        alignment = align(case.exchanges, turns)
        near = alignment.pairs[: alignment.near]
        # Imported turns alone prove nothing: examples are the same in many chats.
        is_ours = any(not turn.is_imported for _, turn in near)
        is_certain = _is_enough(case.exchanges, [at for at, _ in near]) and not _is_contradicted(case, alignment, row)
        if is_ours and (is_certain or case.is_pinned(row)) and not case.is_told_otherwise(row):
            found.append(((case.is_pinned(row), alignment.near, case.is_in_group(row)), alignment, row))
    most = max((rank for rank, *_ in found), default=None)
    best = [(alignment, row) for rank, alignment, row in found if rank == most]
    return _match_of_tail(case, *best[0]) if len(best) == 1 else None


def _is_contradicted(case: Case, alignment: Alignment, row: FingerprintRow) -> bool:
    """Whether the request begins as another chat: with exchanges of its own where the session has others.

    Not in a session whose program sends messages of its own among the turns.
    """
    at, oldest = alignment.pairs[-1]
    front = [each for each in case.exchanges[:at] if len(each.answered) >= _TELLING_CHARS and _is_telling(each)]
    if not front or case.known.seen(row.session_id, row.turn)[1]:
        return False
    turns = case.known.turns(row.session_id, 1, oldest.number - 1)
    answers = {_squeeze(form) for turn in turns for form in (turn.answer, turn.final)}
    is_other = any(each.answered not in answers for each in front)  # not a client's summary before an answer of ours
    return is_other and any(not _may_be_missing(turn) for turn in turns)


def _candidates(case: Case) -> Sequence[FingerprintRow]:
    """Returns the newest known answer of each session that knows most of the answers or calls, or the first question.

    Sessions of the client's own chat come first.
    """
    key, scope = case.chain.fingerprint.key, case.chain.fingerprint.scope
    answers = {key.answer(scope, link.text) for link in case.history if link.role == "assistant"}
    calls = {key.call(scope, name) for exchange in case.exchanges for name in exchange.calls}
    rows = [*case.find("answer", [*answers, *calls]), *case.find("asked", [case.chain.links[0].chain])]
    rows = [row for row in rows if row.is_live and case.is_same_person(row)]
    counts = Counter(row.session_id for row in rows)
    newest = {row.session_id: row for row in sorted(rows, key=lambda row: row.turn)}
    ranked = sorted(newest.values(), key=lambda row: (case.is_pinned(row), counts[row.session_id]), reverse=True)
    return ranked[:_CANDIDATES]


def _match_of_tail(case: Case, alignment: Alignment, row: FingerprintRow) -> Match:
    if len(alignment.pairs) < len(case.exchanges):
        alignment = align(case.exchanges, case.known.turns(row.session_id, 1, row.turn + len(case.exchanges)))
    at, turn = alignment.pairs[alignment.start]
    preamble = _own_messages(case, case.exchanges[: at + 1], {index for index, _ in alignment.pairs})
    is_tail = len(alignment.pairs) < case.known.seen(row.session_id, turn.number)[0]
    return Match(row, turn.number, case.exchanges[at].last, preamble, is_tail=is_tail)


def _past_unanswered(case: Case, match: Match | None) -> Match | None:
    """Skips questions without an answer, whose turns failed or were stopped, or whose answer the client lost."""
    for link in case.unanswered:
        for row in case.find("asked", [link.chain]):
            is_next = case.is_pinned(row) if match is None else row.session_id == match.row.session_id
            is_same = case.is_same_person(row)
            is_open = row.status != "finished" or row.chain is None or is_same
            if is_next and row.is_live and is_open and (is_same or row.whole == link.exact):
                base = match or Match(row, 0, -1)
                if row.turn > base.turn:
                    # What the client put behind the known turns stands before the questions, too.
                    own = case.messages[base.index + 1 : case.history[-1].at + 1] if match and case.history else ()
                    preamble = (*base.preamble, *own)
                    running, stands = row.status == "running", row.whole == link.exact
                    match = replace(
                        base,
                        row=row,
                        turn=row.turn,
                        index=link.at,
                        preamble=preamble,
                        is_running=running,
                        stands=stands,
                    )
                break
    return match
