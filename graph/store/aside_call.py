"""The table of asides: what answers cost that belong to no session."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert

from graph.store.database import Database
from graph.store.owner_table import aside_table

_ADD = insert(aside_table)


@dataclass(frozen=True)
class AsideCall:
    """A model call beside all sessions, such as for a title. Nothing of its text is kept.

    Attributes:
        client: The name of the program that asked.
        sent_tokens: Our estimate for what was sent.
        usage_input_tokens: As reported by the provider, None if it wasn't.
        usage_output_tokens: As reported by the provider, None if it wasn't.
        usage_cached_tokens: The part of the input read from the provider's cache, None if it wasn't reported.
        error_code: Why the call failed, "" if it didn't.
        created_at: When it ended, in UTC.
    """

    owner: str
    client: str
    model: str
    sent_tokens: int
    usage_input_tokens: int | None
    usage_output_tokens: int | None
    usage_cached_tokens: int | None
    seconds: float
    error_code: str
    created_at: datetime


class AsideStore:
    """Stores the calls beside sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, call: AsideCall) -> None:
        """Stores a call that has ended, failed or not."""
        with self._database.write() as connection:
            connection.execute(_ADD, vars(call))
