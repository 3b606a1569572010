"""Reads and writes the rows of a database of either engine, past all of the product's code."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import psycopg

from graph.server.settings import Settings


def read_rows(settings: Settings, query: str, *values: object) -> list[Any]:
    """Returns what a query finds; each `?` in it is a value. Rows that it doesn't order are sorted by their values."""
    found = found_rows(settings, query, *values)
    return found if "ORDER BY" in query else sorted(found, key=comparable)


def comparable(row: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Returns what sorts rows in which a column has values of several types, such as None and text."""
    return [(type(value).__name__, value) for value in row]


def found_rows(settings: Settings, query: str, *values: object) -> list[Any]:
    if settings.chat_database_url is not None:
        with psycopg.connect(settings.chat_database_url.get_secret_value()) as postgres:
            return postgres.execute(query.replace("?", "%s").encode(), values or None).fetchall()
    with closing(sqlite3.connect(settings.database_path)) as connection:
        return connection.execute(query, values).fetchall()


def change_rows(settings: Settings, statement: str) -> None:
    """Writes as a crash or another machine would, which raises the revision of what it changes."""
    raised = "UPDATE lease SET revision = revision + 1, context_revision = context_revision + 1"
    if settings.chat_database_url is not None:
        with psycopg.connect(settings.chat_database_url.get_secret_value()) as postgres:
            postgres.execute(statement.encode())
            postgres.execute(raised)
    else:
        with closing(sqlite3.connect(settings.database_path)) as connection, connection:
            connection.execute(statement)
            connection.execute(raised)
