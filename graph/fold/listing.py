"""Reads the records in a text that a program wrote: JSON and the values of Python, whole or cut off at the end."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeGuard

from prompt.system.framing import CUT_NOTE

_LONG_CHARS: Final = 120
_Scalar = str | int | float | bool
_OPENING: Final = re.compile(r"^[ \t]*([\[{])", re.MULTILINE)
_TOKEN: Final = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|[\[\]{},]|(?P<unclosed>[\"']).*", re.DOTALL)
_CLOSING: Final = {"[": "]", "{": "}"}
_LINE_END: Final = re.compile(r"[ \t]*(?:\n|\Z)")
_MOST_DEPTH: Final = 20
_PAIR: Final = re.compile(
    rf"\s*(?P<mark>[-*] )?(?P<key>[^\W\d][\w .()/-]{{0,39}}):[ \t]+(?P<value>\S.{{0,{_LONG_CHARS - 1}}})"
)


@dataclass(frozen=True)
class Row:
    """A record of a text that a program wrote.

    Attributes:
        label: The key of the record or of the list around the record, "" at the top.
        keys: The names of the values, "" for the key of the record; empty for a list of values.
    """

    label: str
    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def head(self) -> str:
        """Label with keys, printed before the first of several rows with the same label and keys."""
        keys = ", ".join(key or "key" for key in self.keys)
        return f"{self.label} ({keys})" if self.label and keys else self.label or keys

    @property
    def text(self) -> str:
        values = ", ".join(self.values)
        return f"{self.label}: {values}" if self.label else values


def read_rows(text: str) -> list[Row | str]:
    """Returns the records and long texts of the JSON and Python values in a text, and the words between the values.

    Empty without a value. Each begins a line and ends one; the last may be cut off by the end of the text. An object
    with short values only joins the record around it; an object with object values only is read as a list.
    """
    text = CUT_NOTE.sub("", text)
    parts: list[Row | str] = []
    told = begin = 0
    is_found = False
    while opening := _OPENING.search(text, begin):
        start = opening.start(1)
        endings = _endings(text, start)
        end, value = next(_values(text, start, endings), (endings[0][0] if endings else start + 1, None))
        if value is not None:
            is_found = True
            parts += [*_words(text[told:start]), *_walk(value, "")]
            told = end
        elif endings and endings[0][1]:
            break  # nothing behind it is outside of it
        begin = end
    return [*parts, *_words(text[told:])] if is_found else []


def _endings(text: str, start: int) -> list[tuple[int, str]]:
    """Returns where a value may be taken to end, best first, with what closes it there: "" where it is whole."""
    open_brackets: list[str] = []
    last: list[tuple[int, str]] = []
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if mark in _CLOSING:
            open_brackets.append(_CLOSING[mark])
            if len(open_brackets) > _MOST_DEPTH:
                return []
        elif mark in ("]", "}"):
            if open_brackets.pop() != mark:
                return []
            if not open_brackets:
                return [(token.end(), "")]
            last = [(token.end(), "".join(reversed(open_brackets)))]
        elif mark == ",":
            last = [(token.start(), "".join(reversed(open_brackets)))]
        elif quote := token["unclosed"]:
            return [(len(text), quote + "".join(reversed(open_brackets))), *last]
    return last


def _values(text: str, start: int, endings: Iterable[tuple[int, str]]) -> Iterator[tuple[int, object]]:
    for end, closing in endings:
        value = _parse(text[start:end] + closing) if closing or _LINE_END.match(text, end) else None
        if value is not None:
            yield end, value


def _parse(text: str) -> object:
    with suppress(ValueError, RecursionError):
        return json.loads(text, strict=False)
    with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        # As JSON it has lists in place of tuples, and nothing that is neither.
        return json.loads(json.dumps(ast.literal_eval(text)))
    return None


def _words(text: str) -> Iterator[str]:
    if text.strip():
        yield text.strip()


def rows_of(value: object, label: str) -> Iterator[Row]:
    """Yields the records of a value without its long texts."""
    return (part for part in _walk(value, label) if isinstance(part, Row))


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


def read_pairs(text: str) -> list[Row | str]:
    """Returns the lines of a program's output, those of the form `key: value` that follow each other as one record.

    A record ends at a key that it has already and at a mark of a list; a pair without others stays a line.
    """
    parts: list[Row | str] = []
    pairs: dict[str, str] = {}
    pending: list[str] = []
    for line in [*text.splitlines(), ""]:
        pair = _PAIR.fullmatch(line)
        if pair is None or pair["mark"] or pair["key"] in pairs:
            parts += [Row("", tuple(pairs), tuple(pairs.values()))] if len(pairs) > 1 else pending
            pairs, pending = {}, []
        if pair is None:
            parts.append(line)
        else:
            pairs[pair["key"]] = pair["value"]
            pending.append(line)
    return parts
