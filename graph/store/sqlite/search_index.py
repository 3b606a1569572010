"""The full-text index in SQLite: an FTS5 table that keeps terms alone, not the texts.

A row's id is made of its session's number and its position, so that a session is a range of ids. FTS5 needs the terms
again to take a row out of a table without texts; only SQLite 3.43 can do without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, Float, Integer, Subquery, column, select, table, text

from graph.core.search_term import OPEN_END, index_terms

POSITIONS_PER_SESSION: Final = 2**24
INDEX: Final = table("message_search", column("rowid", Integer), column("rank", Float))

_CREATE: Final = "CREATE VIRTUAL TABLE message_search USING fts5(terms, content='', tokenize='porter unicode61')"
_ADD: Final = text("INSERT INTO message_search (rowid, terms) VALUES (:row, :terms)")
_REMOVE: Final = text("INSERT INTO message_search (message_search, rowid, terms) VALUES ('delete', :row, :terms)")
_MERGE: Final = text("INSERT INTO message_search (message_search, rank) VALUES ('merge', :pages)")
_MERGED_PAGES: Final = 1_000


def create_index(connection: Connection) -> None:
    """Creates the empty index."""
    connection.exec_driver_sql(_CREATE)


def add_terms(connection: Connection, session_number: int, position: int, terms: str) -> None:
    """Adds a message that isn't in the index."""
    if terms:
        connection.execute(_ADD, {"row": row_id(session_number, position), "terms": terms})


def remove_terms(connection: Connection, session_number: int, rows: Iterable[tuple[int, str]]) -> None:
    """Takes messages out: each one's position, and the same terms that it was added with."""
    for position, terms in rows:
        if terms:
            connection.execute(_REMOVE, {"row": row_id(session_number, position), "terms": terms})


def merge_removed(connection: Connection, *, is_first: bool) -> bool:
    """Overwrites a part of what was taken out, which FTS5 keeps until then; returns whether there may be more of it."""
    before = _total_changes(connection)
    connection.execute(_MERGE, {"pages": -_MERGED_PAGES if is_first else _MERGED_PAGES})
    return _total_changes(connection) - before > 1  # one change is that of the statement itself


def _total_changes(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT total_changes()").scalar_one())


def row_id(session_number: int, position: int) -> int:
    """Returns the row of a message, by the number that its session has in the index."""
    return session_number * POSITIONS_PER_SESSION + position


def hits(*within: ColumnElement[bool], limit: int = -1) -> Subquery:
    """Returns the rows that match the parameter `match`, with their ranks, of which the smallest is the best.

    Args:
        within: Conditions on the rows.
        limit: Only so many, the best ones; -1 for all.
    """
    query = select(INDEX.c.rowid, INDEX.c.rank).where(text("message_search MATCH :match"), *within)
    # The limit, even -1, keeps SQLite from joining the index row by row, which would run the query again for each.
    return (query if limit < 0 else query.order_by(INDEX.c.rank, INDEX.c.rowid.desc())).limit(limit).subquery("hit")


def match_any(words: Sequence[Sequence[str]]) -> str:
    """Returns the FTS5 query for rows that have any of these phrases; every phrase is quoted."""
    return " OR ".join(_quoted(phrase) for phrases in words for phrase in phrases)


def match_all(words: Sequence[Sequence[str]]) -> str:
    """Returns the FTS5 query for rows that have of each word one of its phrases."""
    return " AND ".join(f"({match_any([phrases])})" for phrases in words)


def _quoted(phrase: str) -> str:
    is_open = phrase.endswith(OPEN_END)
    return f'"{index_terms(phrase)}"{" *" if is_open else ""}'
