"""Column types, and the two expressions that differ between the databases."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    DateTime,
    Dialect,
    Float,
    Table,
    Text,
    TypeDecorator,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.dialects.sqlite import DATETIME
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from graph.core.text import plain_text, plain_value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


class _Microseconds(DATETIME):
    """A time in SQLite: microseconds since 1970 in UTC, a third of the size of text."""

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], int | None]:  # noqa: ARG002  # SQLAlchemy's signature
        return lambda value: None if value is None else to_microseconds(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[int | None], datetime | None]:  # noqa: ARG002  # SQLAlchemy's signature
        return lambda value: None if value is None else _EPOCH + value * _MICROSECOND


class UtcTime(TypeDecorator[datetime]):
    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(_Microseconds())  # type: ignore[no-untyped-call]  # the base class has no types
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Raises `ValueError` for a time without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            msg = "a time without a zone can't be stored"
            raise ValueError(msg)
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class PlainText(TypeDecorator[str]):
    """Text that every database accepts: NUL and lone surrogates become U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        return None if value is None else plain_text(value)


class JsonTuple(TypeDecorator[tuple[Any, ...]]):
    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[Any, ...] | None, _dialect: Dialect) -> str:
        return json.dumps(plain_value(value or ()), ensure_ascii=False, separators=(",", ":"))

    def process_result_value(self, value: str | None, _dialect: Dialect) -> tuple[Any, ...]:
        return tuple(json.loads(value or "[]"))


class _DatabaseTime(FunctionElement[datetime]):
    name = "database_time"
    type = UtcTime()
    inherit_cache = True


class _NextSequence(FunctionElement[int]):
    name = "next_sequence"
    type = BigInteger()
    inherit_cache = True


def database_time(after_seconds: float = 0.0) -> ColumnElement[datetime]:
    """Returns the time of the clock shared by all servers of a database, plus an offset.

    Postgres uses the database's clock; SQLite, whose servers share a machine, the clock given to `open_sqlite`.
    """
    return _DatabaseTime(literal(after_seconds, Float))


def next_sequence(table: Table, session_id: str) -> ColumnElement[int]:
    """Returns the `sequence` of a new row: higher than in all rows of the session, whatever the clock.

    In SQLite it numbers the rows of the table. In Postgres it follows the database's clock in microseconds, but always
    exceeds the session's highest, so that rows of different sessions are ordered too, without a shared counter.
    """
    sequence: Column[int] = table.c.sequence
    newest = select(func.max(sequence)).where(table.c.session_id == session_id)
    return _NextSequence(newest.scalar_subquery())


def add_once(table: Table) -> Insert:
    """Returns an insert that does nothing if a key of the row exists."""
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
    return "NULL"  # SQLite assigns the rowid
