"""Keeps every archived message in the full-text index, and searches the live ones of a session or of an owner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, and_, bindparam, func, insert, select

from graph.core.search_term import broad_words, has_words, index_terms, searchable_text, strict_words
from graph.store.database import Database
from graph.store.message_row import IS_LIVE, WITH_TURN, decode_message
from graph.store.schema import message_table, search_session_table
from graph.store.sqlite import search_index
from graph.store.sqlite.search_index import POSITIONS_PER_SESSION, row_id

_message = message_table.c
_numbered = search_session_table.c
_NUMBER: Final = select(_numbered.number).where(_numbered.session_id == bindparam("session_id"))
_NEWEST: Final = select(func.max(_message.position)).where(_message.session_id == bindparam("session_id"))
# How much a message loses by being longer than the others: b of BM25, small because it is once per phrase here.
_LENGTH_SHARE: Final = 0.3
# Of a word that nearly every message has: joining them all would take longer than the search itself.
_RANKED_MESSAGES: Final = 500


class Hit(NamedTuple):
    """A message that was found: where it stands."""

    turn: int
    position: int


class SearchStore:
    """Searches the archive by the terms of `core.search_term`; what `recall` itself returned is never found."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def turns(self, session_id: str, query: str, *, from_turn: int = 1, before_turn: int, limit: int) -> list[int]:
        """Returns the turns whose live messages have any word of the query, the best first; of equal ones the newest.

        Args:
            session_id: The session.
            query: Any text.
            from_turn: Only this turn and later ones are found.
            before_turn: Only earlier turns are found.
            limit: How many turns at most.
        """
        words = broad_words(query)
        if not words:
            return []
        with self._database.read() as connection:
            number = _number_of(connection, session_id)
            if number is None:
                return []
            newest = connection.execute(_NEWEST, {"session_id": session_id}).scalar() or 0
            before = row_id(number, 0)
            rows = range(before + 1, before + newest + 1)
            weights = search_index.rank_rows(connection, words, rows, limit=_RANKED_MESSAGES)
            query_rows = (
                select(_message.position, _message.turn, _message.chars)
                .select_from(WITH_TURN)
                .where(_message.session_id == session_id, _message.position.in_([row - before for row in weights]))
                .where(_message.turn >= from_turn, _message.turn < before_turn, IS_LIVE)
            )
            found = connection.execute(query_rows).all()
        mean_chars = sum(row.chars for row in found) / max(1, len(found))
        # What is asked for may be spread over question, tool results and answer.
        ranks: dict[int, float] = defaultdict(float)
        for row in found:
            length = row.chars / mean_chars
            ranks[row.turn] += weights[before + row.position] / (1 - _LENGTH_SHARE + _LENGTH_SHARE * length)
        return sorted(ranks, key=lambda turn: (-ranks[turn], -turn))[:limit]

    def sessions(self, owner: str, query: str, *, limit: int) -> dict[str, Hit]:
        """Returns the owner's sessions with a live message that has every word of the query, and each one's newest.

        Args:
            owner: Whose sessions.
            query: Any text.
            limit: How many sessions at most, those with the newest messages.
        """
        words = strict_words(query)
        if not words:
            return {}
        hits = search_index.hits()
        numbered = hits.join(search_session_table, _numbered.number == hits.c.rowid // POSITIONS_PER_SESSION)
        is_there = and_(
            _message.session_id == _numbered.session_id,
            _message.position == hits.c.rowid % POSITIONS_PER_SESSION,
        )
        found = (
            select(
                _message.session_id,
                _message.turn,
                _message.position,
                _message.role,
                _message.message_id,
                _message.content,
            )
            .select_from(numbered.join(WITH_TURN, is_there))
            .where(_message.owner == owner, IS_LIVE)
            .order_by(_message.created_at.desc(), _message.position.desc())
        )
        newest: dict[str, Hit] = {}
        with self._database.read() as connection:
            for row in connection.execute(found, {"match": search_index.match_all(words)}):
                if row.session_id not in newest and has_words(_text_of(row.role, row.message_id, row.content), words):
                    newest[row.session_id] = Hit(row.turn, row.position)
                if len(newest) == limit:
                    break
        return newest

    def forget_deleted(self) -> None:
        """Overwrites in the file what the index still has of deleted sessions; other writers get their turn between."""
        is_first = True
        while True:
            with self._database.write() as connection:
                if not search_index.merge_removed(connection, is_first=is_first):
                    return
            is_first = False


def index_message(connection: Connection, row: Mapping[str, Any]) -> None:
    """Adds a message that was just archived to the index, given its row."""
    if connection.dialect.name != "sqlite":
        return
    session_id = row["session_id"]
    number = _number_of(connection, session_id)
    if number is None:
        added = connection.execute(insert(search_session_table).values(session_id=session_id))
        number = int(added.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has it
    terms = _terms_of(row["role"], row["message_id"], row["content"])
    search_index.add_terms(connection, number, row["position"], terms)


def index_anew(connection: Connection) -> None:
    """Puts an index in place of the one that is there, and adds every message of the archive to it."""
    search_index.drop_index(connection)
    search_index.create_index(connection)
    query = select(_message.session_id, _message.position, _message.role, _message.message_id, _message.content)
    for row in connection.execute(query.order_by(_message.session_id, _message.position)).mappings():
        index_message(connection, dict(row))


def unindex_session(connection: Connection, session_id: str) -> None:
    """Takes all messages of a session out of the index; call it before they are deleted."""
    if connection.dialect.name != "sqlite" or (number := _number_of(connection, session_id)) is None:
        return
    query: Select[Any] = select(_message.position, _message.role, _message.message_id, _message.content)
    rows = connection.execute(query.where(_message.session_id == session_id))
    terms = ((row.position, _terms_of(row.role, row.message_id, row.content)) for row in rows)
    search_index.remove_terms(connection, number, terms)


def _number_of(connection: Connection, session_id: str) -> int | None:
    number: int | None = connection.execute(_NUMBER, {"session_id": session_id}).scalar()
    return number


def _terms_of(role: str, message_id: str, content: str) -> str:
    return index_terms(_text_of(role, message_id, content))


def _text_of(role: str, message_id: str, content: str) -> str:
    """Returns what is indexed of a row; "" of one that can't be read, so that it keeps no other from being indexed."""
    try:
        message = decode_message(role, message_id, content)
    except (ValueError, TypeError, LookupError, AttributeError):
        return ""
    return searchable_text(message)
