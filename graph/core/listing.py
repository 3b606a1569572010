"""Reads JSON, as tools return it, as short rows of values, so that one record can be kept without the others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeGuard

_LONG_CHARS: Final = 120
_Scalar = str | int | float | bool


@dataclass(frozen=True)
class Row:
    """A record of a JSON text.

    Attributes:
        label: The key under which the record or its list stands, "" at the top.
        keys: The names of the values, in order, "" for that of the record itself; none for a list of values.
        values: Numbers and short texts as they are written.
    """

    label: str
    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def head(self) -> str:
        """The label with the keys: it precedes the first of several rows of one kind."""
        keys = ", ".join(key or "key" for key in self.keys)
        return f"{self.label} ({keys})" if self.label and keys else self.label or keys

    @property
    def text(self) -> str:
        """The values with the label alone."""
        values = ", ".join(self.values)
        return f"{self.label}: {values}" if self.label else values


def read_rows(text: str) -> list[Row | str]:
    """Returns the records of a JSON object or array in order, and its long texts as they are; none for other text.

    An object with nothing but short values is part of the record around it; one with nothing but objects is their list.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return []
    with suppress(ValueError, RecursionError):
        return list(_walk(json.loads(text), ""))
    return []


def _walk(value: object, label: str) -> Iterator[Row | str]:
    if isinstance(value, dict):
        yield from _of_object(value, label)
    elif isinstance(value, list):
        plain = [_written(item) for item in value if _is_short(item)]
        if plain:
            yield Row(label, (), tuple(plain))
        for item in value:
            if not _is_short(item):
                yield from _walk(item, label)
    elif isinstance(value, str):
        yield value


def _of_object(entries: Mapping[str, object], label: str) -> Iterator[Row | str]:
    if len(entries) > 1 and all(isinstance(entry, dict) for entry in entries.values()):
        for key, entry in entries.items():
            named = entry if isinstance(entry, dict) and key in entry.values() else {"": key, **_mapping(entry)}
            yield from _of_object(named, label)
        return
    row, rest = _flattened(entries)
    if row:
        yield Row(label, tuple(row), tuple(row.values()))
    for key, entry in rest:
        yield from _walk(entry, key)


def _flattened(entries: Mapping[str, object]) -> tuple[dict[str, str], list[tuple[str, object]]]:
    """Returns an object's own short values by name, those of its plain objects among them, and what else it has."""
    row: dict[str, str] = {}
    rest: list[tuple[str, object]] = []
    for key, entry in entries.items():
        inner = entry if isinstance(entry, dict) and all(map(_is_short, entry.values())) else {key: entry}
        for name, item in inner.items():
            if _is_short(item):
                row[name if name not in row else f"{key}.{name}"] = _written(item)
            elif item is not None:
                rest.append((key, item))
    return row, rest


def _mapping(entry: object) -> Mapping[str, object]:
    return entry if isinstance(entry, dict) else {}


def _is_short(value: object) -> TypeGuard[_Scalar]:
    if isinstance(value, str):
        return len(value) <= _LONG_CHARS and "\n" not in value
    return isinstance(value, int | float)


def _written(value: _Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)
