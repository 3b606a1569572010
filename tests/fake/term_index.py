"""A full-text index of either database, without the rest of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from sqlalchemy import Connection, NullPool, create_engine, select, text

from graph.search.term import broad_words, index_terms, strict_words
from graph.store.schema import METADATA, search_session_table, session_table
from graph.store.search import term_index_of, weigh_messages

SESSION = "s1"
_ADD_SESSION = text(
    "INSERT INTO session (session_id, owner, created_at, updated_at, compression_rate, strategy, model, turn_count,"
    " title, title_folded) VALUES (:session_id, '', '2026-01-01', '2026-01-01', 0.3, '', '', 0, '', '')"
)


@contextmanager
def empty_index(url: str) -> Iterator[Connection]:
    """A connection to a new database with an empty index."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)
    with engine.connect() as connection:
        METADATA.create_all(connection, tables=[session_table, search_session_table])
        term_index_of(connection).create_index(connection)
        connection.execute(_ADD_SESSION, {"session_id": SESSION})
        yield connection


@contextmanager
def indexed(connection: Connection, *texts: str) -> Iterator[None]:
    """Has the session's messages, from position 1 on, in the index for the block."""
    savepoint = connection.begin_nested()
    for position, said in enumerate(texts, 1):
        term_index_of(connection).add_terms(connection, SESSION, position, index_terms(said))
    yield
    savepoint.rollback()


def ranked(connection: Connection, query: str, newest: int) -> list[int]:
    """The positions that a search by any word of the query finds, the best first."""
    phrases = list(dict.fromkeys(chain.from_iterable(broad_words(query))))
    found = term_index_of(connection).find_phrases(connection, SESSION, phrases) if phrases else {}
    return list(weigh_messages(found, newest))


def positions_of(connection: Connection, query: str) -> list[int]:
    """The positions that a search by every word of the query finds."""
    words = strict_words(query)
    if not words:
        return []
    hits = term_index_of(connection).hits(words)
    return sorted(connection.execute(select(hits.c.position).where(hits.c.session_id == SESSION)).scalars())
