"""The full-text index of all messages, and the search in a session or in all of an owner's."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

from sqlalchemy import ColumnElement, Connection, Select, Subquery, and_, bindparam, func, select

from graph.search.term import (
    broad_words,
    closeness,
    has_words,
    index_terms,
    named_words,
    searchable_text,
    strict_words,
    weighed,
)
from graph.store.database import Database
from graph.store.postgres import vector_index
from graph.store.row import IS_LIVE, WITH_TURN, decode_message
from graph.store.schema import message_table
from graph.store.sqlite import search_index


class TermIndex(Protocol):
    """Finds messages by the terms of `graph.search.term`; each database has a module of these functions."""

    def create_index(self, connection: Connection) -> None:
        """Creates the empty index."""

    def clear_index(self, connection: Connection) -> None:
        """Removes all messages from the index."""

    def add_terms(self, connection: Connection, session_id: str, position: int, terms: str) -> None:
        """Adds a message that isn't in the index."""

    def remove_terms(self, connection: Connection, session_id: str, rows: Iterable[tuple[int, str]]) -> None:
        """Removes messages, given by position and the terms they were added with."""

    def merge_removed(self, connection: Connection, *, is_first: bool) -> bool:
        """Overwrites a part of the removed rows, unless the database does by itself; True if there may be more."""

    def find_phrases(
        self, connection: Connection, session_id: str, phrases: Sequence[str]
    ) -> Mapping[str, Collection[int]]:
        """Maps each phrase, in order, to the positions of the session's messages with it."""

    def hits(self, words: Sequence[Sequence[str]]) -> Subquery:
        """Selects the messages (`session_id`, `position`) with a phrase of each word."""


_BY_DIALECT: Final[Mapping[str, TermIndex]] = {"postgresql": vector_index, "sqlite": search_index}


def term_index_of(connection: Connection) -> TermIndex:
    return _BY_DIALECT[connection.dialect.name]


_message = message_table.c
_NEWEST: Final = select(func.max(_message.position)).where(_message.session_id == bindparam("session_id"))
# How much a message loses by being longer than the others: b of BM25, small because it is once per phrase here.
_LENGTH_SHARE: Final = 0.3
# What one sentence says of the query counts twice as much as the turn's words anywhere, the user's more than answers.
# Chosen on the public chats of bfcl-memory, alone and with long answers that repeat the session's words.
_TOGETHER_SHARE: Final = 2.0
_USERS_SHARE: Final = 1.5
_SENTENCE_CHARS: Final = 100
_READ_TURNS: Final = 50
_READ_CHARS: Final = 50_000
# Of a word that nearly every message has: joining them all would take longer than the search itself.
_RANKED_MESSAGES: Final = 500
# Of a tool's result, which is indexed while nobody else can write; 8 MB would take five seconds.
_INDEXED_CHARS: Final = 1_000_000
_TEXT: Final = (_message.role, _message.message_id, _message.content, _message.whole_text)
_READ: Final = (
    select(*_TEXT)
    .select_from(WITH_TURN)
    .where(IS_LIVE)
    .order_by(_message.position.desc())
    .execution_options(yield_per=50)
)
# Read as they are needed: most owners have far more messages with a common word than sessions to show.
_FOUND: Final = (
    select(_message.session_id, _message.turn, _message.position, *_TEXT)
    .where(IS_LIVE)
    .order_by(_message.created_at.desc(), _message.position.desc())
    .execution_options(yield_per=50)
)


class Hit(NamedTuple):
    turn: int
    position: int


class SearchStore:
    """Searches the archive by the terms of `graph.search.term`, except results of `recall`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def turns(self, session_id: str, query: str, *, from_turn: int = 1, before_turn: int, limit: int) -> list[int]:
        """Returns the turns whose live messages have any word of the query, best first, then newest first.

        Only turns from `from_turn` up to, but not including, `before_turn` are searched.
        """
        words = broad_words(query)
        if not words:
            return []
        with self._database.read() as connection:
            newest = connection.execute(_NEWEST, {"session_id": session_id}).scalar() or 0
            phrases = list(dict.fromkeys(chain.from_iterable(words)))
            found_at = term_index_of(connection).find_phrases(connection, session_id, phrases)
            weights = weigh_messages(found_at, newest)
            query_rows = (
                select(_message.position, _message.turn, _message.chars)
                .select_from(WITH_TURN)
                .where(_message.session_id == session_id, _message.position.in_(weights))
                .where(*_within(from_turn, before_turn), IS_LIVE)
            )
            found = connection.execute(query_rows).all()
        mean_chars = sum(row.chars for row in found) / max(1, len(found))
        # What is asked for may be spread over question, tool results and answer.
        ranks: dict[int, float] = defaultdict(float)
        for row in found:
            length = row.chars / mean_chars
            ranks[row.turn] += weights[row.position] / (1 - _LENGTH_SHARE + _LENGTH_SHARE * length)
        ranked = sorted(ranks, key=lambda turn: (-ranks[turn], -turn))
        best = {*ranked[:_READ_TURNS]}
        turn_at = {row.position: row.turn for row in found if row.turn in best}
        hits = (len({position for phrase in phrases for position in found_at.get(phrase, ())}) for phrases in words)
        of_words = [math.log1p((newest - count + 0.5) / (count + 0.5)) for count in hits]
        together = self._together(session_id, turn_at, weighed(words, of_words))
        most = max(ranks.values(), default=1.0)
        first = sorted(best, key=lambda turn: (-(ranks[turn] / most + _TOGETHER_SHARE * together[turn]), -turn))
        return [*first, *ranked[_READ_TURNS:]][:limit]

    def _together(
        self, session_id: str, turns: Mapping[int, int], words: Sequence[tuple[float, Sequence[str]]]
    ) -> Mapping[int, float]:
        """Returns for each turn the share of a query that stands within one sentence of its best message, by weight."""
        together: dict[int, float] = defaultdict(float)
        query = _READ.add_columns(_message.position).where(
            _message.session_id == session_id, _message.position.in_(turns)
        )
        whole = sum(weight for weight, _ in words)
        with self._database.read() as connection, connection.execute(query) as rows:
            for *text, position in rows:
                share = closeness(_text_of(*text)[:_READ_CHARS], words, _SENTENCE_CHARS) / whole
                told = share * _USERS_SHARE if text[0] == "human" else share
                together[turns[position]] = max(together[turns[position]], told)
        return together

    def unsaid(self, session_id: str, query: str, *, from_turn: int = 1, before_turn: int) -> list[str]:
        """Returns the words of a query, as written there, that no live message of these turns has in any form."""
        named = named_words(query)
        phrases = list(dict.fromkeys(chain.from_iterable(phrases for _, phrases in named)))
        within = _READ.where(_message.session_id == session_id, *_within(from_turn, before_turn))
        unsaid: list[str] = []
        with self._database.read() as connection:
            found_at = term_index_of(connection).find_phrases(connection, session_id, phrases) if phrases else {}
            for word, of_word in named:
                positions = {position for phrase in of_word for position in found_at.get(phrase, ())}
                newest = heapq.nlargest(_RANKED_MESSAGES, positions)
                with connection.execute(within.where(_message.position.in_(newest))) as rows:
                    texts = (_text_of(*row) for row in rows)
                    if not any(has_words(text, [of_word]) for text in texts):
                        unsaid.append(word)
        return unsaid

    def sessions(self, owner: str, query: str, *, limit: int) -> dict[str, Hit]:
        """Returns up to `limit` sessions with every word of the query in one live message, and the newest hit."""
        words = strict_words(query)
        if not words:
            return {}
        newest: dict[str, Hit] = {}
        with self._database.read() as connection:
            hits = term_index_of(connection).hits(words)
            is_there = and_(_message.session_id == hits.c.session_id, _message.position == hits.c.position)
            found = _FOUND.select_from(hits.join(WITH_TURN, is_there)).where(_message.owner == owner)
            with connection.execute(found) as rows:
                for row in rows:
                    if row.session_id not in newest and has_words(_text_of(*row[3:]), words):
                        newest[row.session_id] = Hit(row.turn, row.position)
                    if len(newest) == limit:
                        break
        return newest

    def found(self, session_ids: Collection[str], query: str) -> dict[str, dict[int, str]]:
        """Maps these sessions to their turns with every word of the query in one live message, and to such texts."""
        words = strict_words(query)
        found: dict[str, dict[int, str]] = {}
        if not (words and session_ids):
            return found
        with self._database.read() as connection:
            hits = term_index_of(connection).hits(words)
            is_there = and_(_message.session_id == hits.c.session_id, _message.position == hits.c.position)
            within = _FOUND.select_from(hits.join(WITH_TURN, is_there)).where(_message.session_id.in_(session_ids))
            with connection.execute(within.order_by(None).order_by(_message.position)) as rows:
                for row in rows:
                    text = _text_of(*row[3:])
                    if has_words(text, words):
                        turns = found.setdefault(row.session_id, {})
                        turns[row.turn] = f"{turns[row.turn]}\n{text}" if row.turn in turns else text
        return found

    def forget_deleted(self) -> None:
        """Overwrites remains of deleted sessions in the index; lets other writers in between."""
        is_first = True
        while True:
            with self._database.write() as connection:
                if not term_index_of(connection).merge_removed(connection, is_first=is_first):
                    return
            is_first = False


def _within(from_turn: int, before_turn: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    # Of the column itself SQLite would infer a range of the turns to begin the join with, and read each of them.
    turn = _message.turn + 0
    return turn >= from_turn, turn < before_turn


def index_message(connection: Connection, row: Mapping[str, Any]) -> None:
    terms = index_terms(_text_of(row["role"], row["message_id"], row["content"], row.get("whole_text", "")))
    term_index_of(connection).add_terms(connection, row["session_id"], row["position"], terms)


def rebuild_index(connection: Connection, *, has_whole_texts: bool = True) -> None:
    """Clears the index and adds all archived messages, in small batches.

    A revision before 0024 has no whole texts.
    """
    term_index_of(connection).clear_index(connection)
    query = (
        select(_message.session_id, _message.position, *(_TEXT if has_whole_texts else _TEXT[:-1]))
        .order_by(_message.session_id, _message.position)
        .execution_options(yield_per=50)
    )
    with connection.execute(query) as rows:
        for row in rows.mappings():
            index_message(connection, dict(row))


def unindex_session(connection: Connection, session_id: str) -> None:
    """Removes a session's messages from the index; must run before they are deleted."""
    term_index_of(connection).remove_terms(connection, session_id, _indexed(connection, session_id))


def _indexed(connection: Connection, session_id: str) -> Iterator[tuple[int, str]]:
    """Lazily yields the position and terms of each message."""
    query: Select[Any] = select(_message.position, *_TEXT)
    for row in connection.execute(query.where(_message.session_id == session_id)):
        yield row.position, index_terms(_text_of(*row[1:]))


def weigh_messages(found: Mapping[str, Collection[int]], message_count: int) -> dict[int, float]:
    """Scores messages as BM25 scores phrases: the sum of log(1 + (messages - hits + 0.5) / (hits + 0.5)) per phrase.

    Only the highest scores are returned; of equal ones the last.
    """
    sums: dict[int, float] = defaultdict(float)
    for positions in found.values():
        weight = math.log1p((message_count - len(positions) + 0.5) / (len(positions) + 0.5))
        for position in positions:
            sums[position] += weight
    return dict(heapq.nlargest(_RANKED_MESSAGES, sums.items(), key=lambda item: (item[1], item[0])))


def _text_of(role: str, message_id: str, content: str, whole_text: str = "") -> str:
    """Returns the indexed text; "" for an unreadable row, so that the others can be indexed.

    That of a result which `content` has cut is whole, up to a length that takes half a second.
    """
    try:
        message = decode_message(role, message_id, content)
    except (ValueError, TypeError, LookupError, AttributeError):
        return ""
    return whole_text[:_INDEXED_CHARS] or searchable_text(message)
