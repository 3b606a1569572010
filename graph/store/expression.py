"""The SQL expressions that SQLite and Postgres write differently."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, ColumnElement, Float, Table, func, literal, select
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from graph.store.column_type import UtcTime


class _DatabaseTime(FunctionElement[datetime]):
    name = "database_time"
    type = UtcTime()
    inherit_cache = True


class _NextSequence(FunctionElement[int]):
    name = "next_sequence"
    type = BigInteger()
    inherit_cache = True


def database_time(after_seconds: float = 0.0) -> ColumnElement[datetime]:
    """Returns the time by the one clock that all servers of a database share, and seconds later.

    In Postgres that is the database's own; in SQLite, whose servers share a machine, the clock given to `open_sqlite`.
    """
    return _DatabaseTime(literal(after_seconds, Float))


def next_sequence(table: Table, session_id: str) -> ColumnElement[int]:
    """Returns the `sequence` of a row that is added: higher than that of each row of its session, by no clock.

    In SQLite it is the row's number in the whole table. In Postgres it is made of the session's own rows, and follows
    the database's clock in microseconds, so that rows of two sessions are in order, too, without a counter for all.
    """
    sequence: Column[int] = table.c.sequence
    newest = select(func.max(sequence)).where(table.c.session_id == session_id)
    return _NextSequence(newest.scalar_subquery())


def add_once(table: Table) -> Insert:
    """Returns an insert that leaves a row alone that has one of its keys; both databases write that alike."""
    return insert(table).on_conflict_do_nothing()


@compiles(_DatabaseTime, "postgresql")
def _postgres_time(element: _DatabaseTime, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401  # SQLAlchemy's signature
    return f"(clock_timestamp() + make_interval(secs => {compiler.process(element.clauses, **options)}))"


@compiles(_DatabaseTime, "sqlite")
def _sqlite_time(element: _DatabaseTime, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401  # SQLAlchemy's signature
    return f"database_time({compiler.process(element.clauses, **options)})"  # `sqlite_database` defines it


@compiles(_NextSequence, "postgresql")
def _postgres_sequence(element: _NextSequence, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401  # SQLAlchemy's signature
    newest = compiler.process(element.clauses, **options)
    return f"greatest(coalesce({newest}, 0) + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"


@compiles(_NextSequence, "sqlite")
def _sqlite_sequence(element: _NextSequence, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ARG001, ANN401  # SQLAlchemy's signature
    return "NULL"  # of an integer key, the number that SQLite gives itself
