"""The tokens by which programs are let in: those of the settings, and how others are made and kept."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

OWNER_CHARS: Final = 64
NAME_CHARS: Final = 32
_TOKEN_BYTES: Final = 32
# What a client may send as a Bearer token (RFC 6750); none of it parts the fields of a list.
_PARTED: Final = re.compile(r"[,\n]")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}", re.ASCII)


@dataclass(frozen=True)
class ApiToken:
    """One program's token.

    Attributes:
        name: The program's name, which the page shows and the log may have.
        owner: Whose sessions it works with.
        tools: The names of the server's tools that it may use; None for all.
    """

    name: str
    owner: str
    token: SecretStr
    tools: frozenset[str] | None = None


def new_token() -> str:
    """Returns a token that nobody guesses."""
    return f"tf-{secrets.token_urlsafe(_TOKEN_BYTES)}"


def digest_of(token: str) -> bytes:
    """Returns the SHA-256 hash by which a token is known."""
    return hashlib.sha256(token.encode(errors="replace")).digest()


def is_name(text: str, *, most_chars: int) -> bool:
    """Whether a text can name a program or an owner: something that can be seen, and no sign that hides others."""
    return 0 < len(text) <= most_chars and text.isprintable() and not text.isspace()


def check_token(token: str) -> str:
    """Returns the token.

    Raises:
        ValueError: It is too short, or has characters that no header may have. The message has nothing of it.
    """
    if not _TOKEN.fullmatch(token):
        msg = "takes tokens of 16 to 512 characters, each one of A-Z a-z 0-9 . _ ~ + / = -"
        raise ValueError(msg)
    return token


def read_tokens(listed: str) -> list[ApiToken]:
    """Returns the tokens of a list `name:owner:token[:tool+tool]`, parted by commas or lines.

    Without a fourth field a program may use all tools of the server; with an empty one, none.

    Raises:
        ValueError: An entry has another form. The message has its place in the list and nothing of its text.
    """
    entries = [entry for part in _PARTED.split(listed) if (entry := part.strip())]
    return [_read(entry, place) for place, entry in enumerate(entries, start=1)]


def _read(entry: str, place: int) -> ApiToken:
    fields = [field.strip() for field in entry.split(":")]
    if len(fields) not in (3, 4):
        msg = f"takes name:owner:token or name:owner:token:tool+tool, with commas between them; not its entry {place}"
        raise ValueError(msg)
    name, owner, token, *tools = fields
    for said, chars in ((name, NAME_CHARS), (owner, OWNER_CHARS)):
        if not is_name(said, most_chars=chars):
            msg = f"takes names of 1 to {NAME_CHARS} and owners of 1 to {OWNER_CHARS} characters; not its entry {place}"
            raise ValueError(msg)
    allowed = frozenset(filter(None, map(str.strip, tools[0].split("+")))) if tools else None
    return ApiToken(name, owner, SecretStr(check_token(token)), allowed)
