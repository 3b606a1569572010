"""Quotes the rules of a project: one tag a file, which no file's text can end or forge; the same in both languages."""

from __future__ import annotations

import re
from html import escape
from typing import Final

_TAG: Final = re.compile(r"<(?=\s*+/?+\s*+rules?\b)", re.IGNORECASE)


def quote_rules(path: str, text: str, note: str) -> str:
    """Renders the text of a file as `<rules from="AGENTS.md">…</rules>`; the note, if any, is its last line."""
    return "\n".join([f'<rules from="{_attribute(path)}">', *filter(None, (_TAG.sub("&lt;", text), note)), "</rules>"])


def quote_description(name: str, description: str, note: str) -> str:
    """Renders a rule that `read_rule` reads, as one line: `<rule name="api">API: rules</rule>`."""
    return f'<rule name="{_attribute(name)}">{_TAG.sub("&lt;", description)}{note}</rule>'


def note_bytes_left_out(left_out: int, size: int) -> str:
    """Returns the line that says how much of a file isn't there; both in bytes."""
    return f"[… {left_out:,} of {size:,} bytes left out]"


def _attribute(text: str) -> str:
    return escape(" ".join(text.split()))
