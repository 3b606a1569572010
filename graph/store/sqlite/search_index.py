"""The full-text index in SQLite: an FTS5 table that keeps which rows have a term, and nothing else.

Texts, and where a term stands in them, would make the file larger by as much as the messages themselves. So a phrase
is found by its terms wherever they stand in a row, and rows are ranked by the phrases that they have.

A row's id is made of its session's number and its position, so that a session is a range of ids. FTS5 needs the terms
again to take a row out of a table without texts; only SQLite 3.43 can do without them.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from sqlalchemy import Connection, Integer, Subquery, column, select, table, text

from graph.core.search_term import OPEN_END, index_terms

POSITIONS_PER_SESSION: Final = 2**24

_INDEX: Final = table("message_search", column("rowid", Integer))
_MATCHES: Final = text("message_search MATCH :match")
# `index_terms` splits and folds the words of every script: the tokenizer has nothing left to split.
_CREATE: Final = """
    CREATE VIRTUAL TABLE message_search
    USING fts5(terms, content='', detail=none, columnsize=0, tokenize='porter ascii')
"""
_DROP: Final = "DROP TABLE message_search"
_ADD: Final = text("INSERT INTO message_search (rowid, terms) VALUES (:row, :terms)")
_REMOVE: Final = text("INSERT INTO message_search (message_search, rowid, terms) VALUES ('delete', :row, :terms)")
_MERGE: Final = text("INSERT INTO message_search (message_search, rank) VALUES ('merge', :pages)")
_MERGED_PAGES: Final = 1_000
_IN_RANGE: Final = select(_INDEX.c.rowid).where(_MATCHES, text("rowid BETWEEN :first AND :last"))
_PHRASE_TERMS: Final = 64


def create_index(connection: Connection) -> None:
    """Creates the empty index."""
    connection.exec_driver_sql(_CREATE)


def drop_index(connection: Connection) -> None:
    """Drops the index with all that it has."""
    connection.exec_driver_sql(_DROP)


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


def hits() -> Subquery:
    """Returns the rows that match the parameter `match`."""
    # The limit of -1, which is none, keeps SQLite from joining the index row by row, which would run the query again
    # for each.
    return select(_INDEX.c.rowid).where(_MATCHES).limit(-1).subquery("hit")


def rank_rows(connection: Connection, words: Sequence[Sequence[str]], rows: range, *, limit: int) -> dict[int, float]:
    """Returns the rows of a range that have any of these phrases, each with the sum of the weights of those it has.

    A phrase weighs as in BM25: log(1 + (rows - with it + 0.5) / (with it + 0.5)).

    Args:
        connection: In a transaction.
        words: The phrases of each word.
        rows: The rows to look at.
        limit: Only so many, those with the highest sums; of equal ones the last.
    """
    sums: dict[int, float] = defaultdict(float)
    for phrase in dict.fromkeys(chain.from_iterable(words)):
        place = {"match": _match_phrase(phrase), "first": rows.start, "last": rows.stop - 1}
        found = connection.execute(_IN_RANGE, place).scalars().all()
        weight = math.log1p((len(rows) - len(found) + 0.5) / (len(found) + 0.5))
        for row in found:
            sums[row] += weight
    return dict(heapq.nlargest(limit, sums.items(), key=lambda item: (item[1], item[0])))


def match_all(words: Sequence[Sequence[str]]) -> str:
    """Returns the FTS5 query for rows that have of each word the terms of one of its phrases; every term is quoted."""
    return " AND ".join(f"({' OR '.join(_match_phrase(phrase) for phrase in phrases)})" for phrases in words)


def _match_phrase(phrase: str) -> str:
    terms = [f'"{term}"' for term in dict.fromkeys(index_terms(phrase).split()[:_PHRASE_TERMS])]
    return f"({' AND '.join(terms)}{' *' if phrase.endswith(OPEN_END) else ''})"
