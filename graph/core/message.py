"""What a user's message must be to be taken, and the title a session gets from it; knows nothing of sessions."""

from __future__ import annotations

from typing import Final

from graph.error import InputError

_TITLE_CHARS: Final = 40


def check_text(text: str, *, max_chars: int) -> None:
    """Refuses a text that can't be a message.

    Raises:
        InputError: `empty` (nothing but white space), `too_long` (over `max_chars`), or `not_text` (it has half a
            character, a lone surrogate, that no file or endpoint could take).
    """
    if not text.strip():
        raise InputError("empty")
    if len(text) > max_chars:
        raise InputError("too_long", f"{len(text)} > {max_chars}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("not_text") from None


def title_of(text: str) -> str:
    """Returns the first words of a text as a title: its first line that isn't blank, at most 40 characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = " ".join(line.lstrip("#>*- `").split()) or line
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rstrip() + "…"
