"""Which full-text index a database has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from sqlalchemy import Connection, Subquery

from graph.store.postgres import vector_index
from graph.store.sqlite import search_index


class TermIndex(Protocol):
    """Finds the messages that have terms of `core.search_term`; each database has a module of these functions."""

    def create_index(self, connection: Connection) -> None:
        """Creates the empty index."""

    def drop_index(self, connection: Connection) -> None:
        """Drops the index with all that it has."""

    def add_terms(self, connection: Connection, session_id: str, position: int, terms: str) -> None:
        """Adds a message that isn't in the index."""

    def remove_terms(self, connection: Connection, session_id: str, rows: Iterable[tuple[int, str]]) -> None:
        """Takes messages out: each one's position, and the same terms that it was added with."""

    def merge_removed(self, connection: Connection, *, is_first: bool) -> bool:
        """Overwrites a part of what was taken out, if that isn't done by itself; returns whether there may be more."""

    def find_phrases(
        self, connection: Connection, session_id: str, phrases: Sequence[str]
    ) -> Mapping[str, Collection[int]]:
        """Returns for each phrase, in their order, the positions of the session's messages that have it."""

    def hits(self, words: Sequence[Sequence[str]]) -> Subquery:
        """Returns which messages (`session_id`, `position`) have of each word the terms of one of its phrases."""


_BY_DIALECT: Final[Mapping[str, TermIndex]] = {"postgresql": vector_index, "sqlite": search_index}


def term_index_of(connection: Connection) -> TermIndex:
    """Returns the index of the database behind a connection."""
    return _BY_DIALECT[connection.dialect.name]
