"""The column types for times, texts and lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import DateTime, Dialect, Text, TypeDecorator
from sqlalchemy.dialects.sqlite import DATETIME
from sqlalchemy.types import TypeEngine

from graph.core.text import plain_text, plain_value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(time: datetime) -> int:
    """Returns the microseconds from 1970 to a time with a zone."""
    return (time - _EPOCH) // _MICROSECOND


class _Microseconds(DATETIME):
    """A time in SQLite: microseconds since 1970 in UTC, in a third of the room that its text takes."""

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], int | None]:  # noqa: ARG002  # SQLAlchemy's signature
        """Returns what makes a number of a time."""
        return lambda value: None if value is None else to_microseconds(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[int | None], datetime | None]:  # noqa: ARG002  # SQLAlchemy's signature
        """Returns what makes a time of a number."""
        return lambda value: None if value is None else _EPOCH + value * _MICROSECOND


class UtcTime(TypeDecorator[datetime]):
    """A timezone-aware time, stored in UTC with its microseconds."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Returns how this database stores it."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(_Microseconds())  # type: ignore[no-untyped-call]  # the base class has no types
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Converts the time to UTC.

        Raises:
            ValueError: The time has no zone.
        """
        if value is None:
            return None
        if value.tzinfo is None:
            msg = "a time without a zone can't be stored"
            raise ValueError(msg)
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Marks the stored time as UTC; SQLite keeps no zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class PlainText(TypeDecorator[str]):
    """Text that every database accepts: NUL and lone surrogates become U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        """Replaces the characters that a text column can't hold."""
        return None if value is None else plain_text(value)


class JsonTuple(TypeDecorator[tuple[Any, ...]]):
    """A tuple of numbers or strings, stored as a JSON list."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[Any, ...] | None, _dialect: Dialect) -> str:
        """Encodes the tuple."""
        return json.dumps(plain_value(value or ()), ensure_ascii=False, separators=(",", ":"))

    def process_result_value(self, value: str | None, _dialect: Dialect) -> tuple[Any, ...]:
        """Decodes the tuple."""
        return tuple(json.loads(value or "[]"))
