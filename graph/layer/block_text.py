"""Writes a snapshot as the block of a prompt, in which no value can be read as another key or as a heading."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from graph.core.text import plain_text
from graph.layer.scope import ContextSnapshot

# In Markdown a line that is indented by four is no heading; one indented by less is.
_INDENT: Final = "    "
# Wherever Python, Unicode or a terminal begins a new line.
_LINE_END: Final = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)


def render_block(heading: str, entries: ContextSnapshot) -> str:
    """Renders `heading` and one entry after the other; "" if no entry has a value.

    A value of one line stands behind its key: `key: value`. A value of several lines stands below `key:`, each of its
    lines indented by four spaces, whichever line end it had. So only headings and keys begin at a line's first
    character.

    Raises:
        ValueError: A key isn't a name of ASCII letters and digits.
    """
    lines = [_render_entry(key, value) for key, value in entries.items() if value]
    return "\n".join([heading, *lines]) if lines else ""


def join_lines(items: Iterable[str]) -> str:
    """Joins texts to one value, a line each; the further lines of one are indented, so that none imitates a text."""
    return "\n".join(f"\n{_INDENT}".join(_lines_of(item)) for item in items)


def _render_entry(key: str, value: str) -> str:
    if not _KEY.fullmatch(key):
        detail = f"no name of a key: {key!r}"
        raise ValueError(detail)
    lines = _lines_of(value)
    return f"{key}: {lines[0]}" if len(lines) == 1 else "\n".join([f"{key}:", *(_INDENT + line for line in lines)])


def _lines_of(text: str) -> list[str]:
    return _LINE_END.split(plain_text(text))
