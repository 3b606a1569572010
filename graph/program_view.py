"""The frozen values that tell which programs are let in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from pydantic import SecretStr


@dataclass(frozen=True)
class ProgramToken:
    """A token by which a program of the owner is let in, without the token itself. Times are UTC.

    Attributes:
        id: Names it to `withdraw`; it lets nobody in.
        name: The program's name.
        tools: The names of the server's tools that it may use; None for all.
        last_used_on: The last day with a request; None if there was none yet.
    """

    id: str
    name: str
    tools: frozenset[str] | None
    created_at: datetime
    last_used_on: date | None = None


@dataclass(frozen=True)
class MadeToken:
    """A new token; `secret` is told this once and kept nowhere."""

    secret: SecretStr
    shown: ProgramToken
