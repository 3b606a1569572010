"""Reads all that a server has stored, and finds the texts among it that some databases refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from sqlalchemy import inspect, select

from graph.core.text import plain_text
from graph.recovery import config_of
from graph.service import ChatService
from graph.store.database import Database
from graph.store.schema import METADATA

# What no database takes stands beside what only looks dangerous.
HOSTILE_TEXTS = st.text(
    st.sampled_from("\x00\ud83d\ude00\udc00\udfff")
    | st.sampled_from("가각 a\"'\\%_\u202e\ufeff😀\n")
    | st.characters(),
    max_size=30,
)


def rows_of(database: Database) -> list[tuple[Any, ...]]:
    """Every row of every table."""
    with database.read() as connection:
        there = set(inspect(connection).get_table_names())
        tables = [table for table in METADATA.sorted_tables if table.name in there]
        return [tuple(row) for table in tables for row in connection.execute(select(table))]


def stored_values(service: ChatService) -> list[Any]:
    """Every row, and the state of every session."""
    stores = service._access.stores  # noqa: SLF001  # nobody but a test has to know
    kept = [stores.checkpointer.get_tuple(config_of(session.session_id)) for session in service.sessions.list()]
    return [*rows_of(stores.database), *(found.checkpoint["channel_values"] for found in kept if found is not None)]


def unplain(value: Any) -> Iterator[str]:  # noqa: ANN401  # of any shape
    """The texts within a value that have NUL or half a character."""
    if isinstance(value, BaseMessage):
        value = value.model_dump()
    if isinstance(value, str):
        if value != plain_text(value):
            yield value
    elif isinstance(value, Mapping):
        yield from unplain([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from unplain(part)
