"""The full-text index in SQLite: an FTS5 table that keeps which rows have a term, and nothing else.

Texts, and where a term stands in them, would make the file larger by as much as the messages themselves. So a phrase
is found by its terms wherever they stand in a row, and rows are ranked by the phrases that they have.

A row's id is made of its session's number and its position, so that a session is a range of ids. FTS5 needs the terms
again to take a row out of a table without texts; only SQLite 3.43 can do without them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, Integer, Subquery, bindparam, column, insert, select, table, text

from graph.search.term import OPEN_END, phrase_terms
from graph.store.schema import search_session_table

_POSITIONS_PER_SESSION: Final = 2**24

_numbered = search_session_table.c
_NUMBER: Final = select(_numbered.number).where(_numbered.session_id == bindparam("session_id"))
_INDEX: Final = table("message_search", column("rowid", Integer))
_MATCHES: Final = text("message_search MATCH :match")
# `index_terms` splits, folds and stems the words of every script; this tokenizer leaves all its terms as they are
# (`unicode61` splits at letters newer than its tables).
_CREATE: Final = """
    CREATE VIRTUAL TABLE message_search
    USING fts5(terms, content='', detail=none, columnsize=0, tokenize='ascii')
"""
_ADD: Final = text(f"""
    INSERT INTO message_search (rowid, terms)
    SELECT number * {_POSITIONS_PER_SESSION} + :position, :terms FROM search_session WHERE session_id = :session_id
""")  # noqa: S608  # a number of our own
_REMOVE: Final = text("INSERT INTO message_search (message_search, rowid, terms) VALUES ('delete', :row, :terms)")
_MERGE: Final = text("INSERT INTO message_search (message_search, rank) VALUES ('merge', :pages)")
_MERGED_PAGES: Final = 1_000
_IN_RANGE: Final = select(_INDEX.c.rowid - bindparam("before")).where(_MATCHES, text("rowid BETWEEN :first AND :last"))


def create_index(connection: Connection) -> None:
    connection.exec_driver_sql(_CREATE)


def clear_index(connection: Connection) -> None:
    """Empties the index by recreating its table: the tokenizer can't be changed."""
    connection.exec_driver_sql("DROP TABLE message_search")
    create_index(connection)


def add_terms(connection: Connection, session_id: str, position: int, terms: str) -> None:
    if not terms:
        return
    row = {"session_id": session_id, "position": position, "terms": terms}
    if connection.execute(_ADD, row).rowcount == 0:
        connection.execute(insert(search_session_table).values(session_id=session_id))
        connection.execute(_ADD, row)


def remove_terms(connection: Connection, session_id: str, rows: Iterable[tuple[int, str]]) -> None:
    """Removes messages, given by position and the terms they were added with."""
    number = _number_of(connection, session_id)
    if number is None:
        return
    for position, terms in rows:
        if terms:
            connection.execute(_REMOVE, {"row": _row_id(number, position), "terms": terms})


def merge_removed(connection: Connection, *, is_first: bool) -> bool:
    """Merges a part of the index to overwrite removed rows; True if there may be more."""
    before = _total_changes(connection)
    connection.execute(_MERGE, {"pages": -_MERGED_PAGES if is_first else _MERGED_PAGES})
    return _total_changes(connection) - before > 1  # one change is that of the statement itself


def find_phrases(connection: Connection, session_id: str, phrases: Sequence[str]) -> Mapping[str, Collection[int]]:
    number = _number_of(connection, session_id)
    if number is None:
        return {}
    before = _row_id(number, 0)
    parameters = {"before": before, "first": before + 1, "last": before + _POSITIONS_PER_SESSION - 1}
    return {
        phrase: connection.execute(_IN_RANGE, {**parameters, "match": _match_phrase(phrase)}).scalars().all()
        for phrase in phrases
    }


def hits(words: Sequence[Sequence[str]]) -> Subquery:
    match = " AND ".join(f"({' OR '.join(_match_phrase(phrase) for phrase in phrases)})" for phrases in words)
    # The limit of -1, which is none, keeps SQLite from joining the index row by row, which would run the query again
    # for each.
    rows = select(_INDEX.c.rowid).where(_MATCHES.bindparams(match=match)).limit(-1).subquery("matching")
    numbered = rows.join(search_session_table, _numbered.number == rows.c.rowid // _POSITIONS_PER_SESSION)
    position = (rows.c.rowid % _POSITIONS_PER_SESSION).label("position")
    return select(_numbered.session_id, position).select_from(numbered).subquery("hit")


def _number_of(connection: Connection, session_id: str) -> int | None:
    number: int | None = connection.execute(_NUMBER, {"session_id": session_id}).scalar()
    return number


def _row_id(session_number: int, position: int) -> int:
    return session_number * _POSITIONS_PER_SESSION + position


def _total_changes(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT total_changes()").scalar_one())


def _match_phrase(phrase: str) -> str:
    terms = [f'"{term}"' for term in phrase_terms(phrase)]
    return f"({' AND '.join(terms)}{' *' if phrase.endswith(OPEN_END) else ''})"
