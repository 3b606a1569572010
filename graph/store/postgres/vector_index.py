"""The full-text index in Postgres: the terms of each message as a vector, and nothing else.

Vectors are made here, as Postgres's own parser knows no pairs of signs and cuts names otherwise than SQLite. They have
no places: as in SQLite, a phrase is found by its terms wherever they stand in a message. So neither the number of
places that Postgres keeps nor a look at the row itself limits what is found; only a vector's size is bounded, and a
message with more terms has several rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Subquery, and_, cast, column, func, select, table, text, union_all
from sqlalchemy.dialects.postgresql import TSQUERY

from graph.search.term import OPEN_END, PHRASE_TERMS, phrase_terms

_INDEX: Final = table("message_search", column("session_id"), column("position"), column("part"), column("terms"))
# New terms go into the index at once: a list of those to come would be searched row by row.
_CREATE: Final = """
    CREATE TABLE message_search (
        session_id text NOT NULL REFERENCES session ON DELETE CASCADE,
        position integer NOT NULL,
        part integer NOT NULL,
        terms tsvector NOT NULL,
        PRIMARY KEY (session_id, position, part)
    );
    CREATE INDEX message_search_terms ON message_search USING gin (terms) WITH (fastupdate = off);
    CREATE INDEX message_search_parts ON message_search USING gin (terms) WITH (fastupdate = off) WHERE part > 0;
"""
_ADD: Final = text("""
    INSERT INTO message_search (session_id, position, part, terms)
    VALUES (:session_id, :position, :part, CAST(:terms AS tsvector))
""")
_FIND: Final = text("""
    SELECT phrase.number, found.position
    FROM message_search AS found
    JOIN unnest(CAST(:phrases AS tsquery[])) WITH ORDINALITY AS phrase (query, number) ON found.terms @@ phrase.query
    WHERE found.session_id = :session_id AND found.terms @@ CAST(:any AS tsquery)
""")
# A vector has at most 1 MiB of terms.
_PART_BYTES: Final = 2**19


def create_index(connection: Connection) -> None:
    connection.exec_driver_sql(_CREATE)


def clear_index(connection: Connection) -> None:
    """Empties the index; the table stays, as it may be distributed."""
    connection.exec_driver_sql("TRUNCATE message_search")


def add_terms(connection: Connection, session_id: str, position: int, terms: str) -> None:
    values = {"session_id": session_id, "position": position}
    parts = list(split_terms(terms))
    # Part 0 is a whole message; parts from 1 on are those of a long one.
    first = int(len(parts) > 1)
    for part, words in enumerate(parts, first):
        connection.execute(_ADD, {**values, "part": part, "terms": " ".join(f"'{word}'" for word in words)})


def remove_terms(connection: Connection, session_id: str, rows: Iterable[tuple[int, str]]) -> None:
    """Does nothing: the rows of a session are deleted with it."""


def merge_removed(connection: Connection, *, is_first: bool) -> bool:  # noqa: ARG001  # `TermIndex`'s signature
    """Returns False: Postgres reuses the space of deleted rows by itself."""
    return False


def find_phrases(connection: Connection, session_id: str, phrases: Sequence[str]) -> Mapping[str, set[int]]:
    queries = [_phrase_query(phrase) for phrase in phrases]
    parameters = {"session_id": session_id, "phrases": queries, "any": " | ".join(queries)}
    found: dict[str, set[int]] = {phrase: set() for phrase in phrases}
    for number, position in connection.execute(_FIND, parameters):
        found[phrases[number - 1]].add(position)
    return found


def hits(words: Sequence[Sequence[str]]) -> Subquery:
    wanted = [cast(" | ".join(map(_phrase_query, phrases)), TSQUERY) for phrases in words]
    columns = _INDEX.c.session_id, _INDEX.c.position
    whole = select(*columns).where(_INDEX.c.part == 0, *(_has(query) for query in wanted))
    # Of a long message the words may stand in different parts.
    has_each = and_(*(func.bool_or(_has(query)) for query in wanted))
    any_of_them = cast(" | ".join(map(_phrase_query, chain.from_iterable(words))), TSQUERY)
    in_parts = select(*columns).where(_INDEX.c.part > 0, _has(any_of_them)).group_by(*columns).having(has_each)
    return union_all(whole, in_parts).subquery("hit")


def split_terms(joined: str) -> Iterator[list[str]]:
    """Splits a message's distinct terms into parts that fit a vector.

    Parts overlap, so that each phrase as written is whole in one of them.
    """
    terms = joined.split()
    begin = 0
    while begin < len(terms):
        part: dict[str, None] = {}
        size, end = 0, begin
        while end < len(terms) and size < _PART_BYTES:
            if terms[end] not in part:
                part[terms[end]] = None
                size += len(terms[end].encode())
            end += 1
        yield list(part)
        begin = end if end == len(terms) else end - PHRASE_TERMS


def _has(query: ColumnElement[Any]) -> ColumnElement[bool]:
    return _INDEX.c.terms.bool_op("@@")(query)


def _phrase_query(phrase: str) -> str:
    terms = [f"'{term}'" for term in phrase_terms(phrase)]
    return f"({' & '.join(terms)}{':*' if phrase.endswith(OPEN_END) else ''})"
