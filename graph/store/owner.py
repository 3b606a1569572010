"""The tables of owners: withdrawals of access, and use of turns and tokens."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Integer, TextClause, bindparam, delete, select, text

from graph.store.column import PlainText, add_once
from graph.store.database import Clock, Database
from graph.store.schema import own_instruction_table, owner_use_table, preset_table, withdrawn_owner_table
from graph.value.error import StoreError, UserRateError, UserTokensError

_withdrawn = withdrawn_owner_table.c
_WITHDRAW = add_once(withdrawn_owner_table)
_READMIT = delete(withdrawn_owner_table).where(_withdrawn.owner == bindparam("of_owner"))
_IS_WITHDRAWN = select(_withdrawn.owner).where(_withdrawn.owner == bindparam("owner"))
_ALL = select(_withdrawn.owner, _withdrawn.withdrawn_at).order_by(_withdrawn.withdrawn_at, _withdrawn.owner)


@dataclass(frozen=True)
class WithdrawnOwner:
    owner: str
    withdrawn_at: datetime


class OwnerStore:
    """Withdraws owners' access and restores it; their sessions stay unchanged."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def withdraw(self, owner: str) -> None:
        """Withdraws access from the next call on; idempotent."""
        with self._database.write() as connection:
            connection.execute(_WITHDRAW, {"owner": owner, "withdrawn_at": self._clock()})

    def readmit(self, owner: str) -> bool:
        """Restores access; returns False if it wasn't withdrawn."""
        with self._database.write() as connection:
            return connection.execute(_READMIT, {"of_owner": owner}).rowcount > 0

    def is_withdrawn(self, owner: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(_IS_WITHDRAWN, {"owner": owner}).first() is not None

    def withdrawn(self) -> list[WithdrawnOwner]:
        with self._database.read() as connection:
            return [WithdrawnOwner(*row) for row in connection.execute(_ALL)]


_own = own_instruction_table.c
_INSTRUCTIONS: Final = select(_own.text).where(_own.owner == bindparam("of_owner"))
_FORGET_INSTRUCTIONS: Final = delete(own_instruction_table).where(_own.owner == bindparam("of_owner"))
_KEEP_INSTRUCTIONS: Final = text("""
    INSERT INTO own_instruction (owner, text) VALUES (:owner, :text) ON CONFLICT (owner) DO UPDATE SET text = :text
""").bindparams(*(bindparam(name, type_=PlainText) for name in ("owner", "text")))


_preset = preset_table.c
_PRESETS: Final = select(_preset.name, _preset.text).where(_preset.owner == bindparam("of_owner"))
_FORGET_PRESET: Final = delete(preset_table).where(
    _preset.owner == bindparam("of_owner"), _preset.name == bindparam("of_name")
)
_KEEP_PRESET: Final = text("""
    INSERT INTO preset (owner, name, text) VALUES (:owner, :name, :text)
    ON CONFLICT (owner, name) DO UPDATE SET text = :text
""").bindparams(*(bindparam(name, type_=PlainText) for name in ("owner", "name", "text")))


class InstructionStore:
    """Stores what owners want every chat to be told, and their presets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, owner: str) -> str:
        """Returns an owner's text, "" for none."""
        with self._database.read() as connection:
            return connection.execute(_INSTRUCTIONS, {"of_owner": owner}).scalar() or ""

    def keep(self, owner: str, text: str) -> None:
        """Replaces an owner's text; an empty one leaves no row."""
        with self._database.write() as connection:
            if text:
                connection.execute(_KEEP_INSTRUCTIONS, {"owner": owner, "text": text})
            else:
                connection.execute(_FORGET_INSTRUCTIONS, {"of_owner": owner})

    def presets(self, owner: str) -> dict[str, str]:
        """Returns an owner's presets, texts by name, in the order of the names."""
        with self._database.read() as connection:
            return dict(sorted((name, kept) for name, kept in connection.execute(_PRESETS, {"of_owner": owner})))

    def keep_preset(self, owner: str, name: str, text: str, *, most: int) -> bool:
        """Adds or replaces a preset; returns False, and keeps nothing, if it would be one more than `most`."""
        with self._database.write() as connection:
            names = {row.name for row in connection.execute(_PRESETS, {"of_owner": owner})}
            if name not in names and len(names) >= most:
                return False
            connection.execute(_KEEP_PRESET, {"owner": owner, "name": name, "text": text})
            return True

    def forget_preset(self, owner: str, name: str) -> None:
        with self._database.write() as connection:
            connection.execute(_FORGET_PRESET, {"of_owner": owner, "of_name": name})


_LOG = logging.getLogger(__name__)
_MINUTE_SECONDS: Final = 60
_HOUR_SECONDS: Final = 3_600
_DAY_SECONDS: Final = 86_400
_NO_CAP: Final = 2**62

_use = owner_use_table.c
_USE = select(_use.minute, _use.day, _use.tokens).where(_use.owner == bindparam("owner"))


def _statement(sql: str) -> TextClause:
    numbers = (bindparam(name, type_=Integer) for name in ("minute", "day"))
    return text(sql).bindparams(bindparam("owner", type_=PlainText), *numbers)


# A row slightly ahead was written by a server with a fast clock, and still counts. A row far ahead was written before
# a clock was set back, and is replaced.
_THIS_MINUTE: Final = "used.minute BETWEEN :minute AND :minute + 2"
_TODAY: Final = "used.day BETWEEN :day AND :day + 1"
# Upserts in the syntax shared by SQLite and Postgres; past a cap the statement changes no row.
_BEGIN = _statement(f"""
    INSERT INTO owner_use AS used (owner, minute, turns, day, tokens) VALUES (:owner, :minute, 1, :day, 0)
    ON CONFLICT (owner) DO UPDATE SET
        turns = CASE WHEN {_THIS_MINUTE} THEN used.turns + 1 ELSE 1 END,
        minute = CASE WHEN {_THIS_MINUTE} THEN used.minute ELSE :minute END
    WHERE (used.turns < :most_turns OR NOT ({_THIS_MINUTE})) AND (used.tokens < :most_tokens OR NOT ({_TODAY}))
""")  # noqa: S608  # made of the constants above
_SPEND = _statement(f"""
    INSERT INTO owner_use AS used (owner, minute, turns, day, tokens) VALUES (:owner, :minute, 0, :day, :tokens)
    ON CONFLICT (owner) DO UPDATE SET
        tokens = CASE WHEN {_TODAY} THEN used.tokens + :tokens ELSE :tokens END,
        day = CASE WHEN {_TODAY} THEN used.day ELSE :day END
""")  # noqa: S608  # made of the constants above


class OwnerUseStore:
    """Counts turns and tokens against each owner's limits; counts nothing without a limit.

    Counts restart with each minute and day of UTC. A limit never ends a running turn, so running turns can exceed it.
    """

    def __init__(
        self, database: Database, *, clock: Clock, turns_per_minute: int | None, tokens_per_day: int | None
    ) -> None:
        self._database = database
        self._clock = clock
        self._turns_per_minute = turns_per_minute
        self._tokens_per_day = tokens_per_day

    def begin(self, owner: str) -> None:
        """Counts a turn before its start; raises `UserRateError` or `UserTokensError` at a limit."""
        if self._turns_per_minute is None:
            self.check_tokens(owner)
            return
        now = self._clock()
        caps = {"most_turns": self._turns_per_minute, "most_tokens": self._tokens_per_day or _NO_CAP}
        with self._database.write() as connection:
            if connection.execute(_BEGIN, {"owner": owner, **_window(now), **caps}).rowcount > 0:
                return
            used = connection.execute(_USE, {"owner": owner}).one()
        self._check_day(now, used.day, used.tokens)
        raise UserRateError(_seconds_until(now, used.minute + 1, _MINUTE_SECONDS))

    def check_tokens(self, owner: str) -> None:
        """Raises `UserTokensError` if the tokens of the day are used up; counts nothing."""
        if self._tokens_per_day is None:
            return
        with self._database.read() as connection:
            used = connection.execute(_USE, {"owner": owner}).one_or_none()
        if used is not None:
            self._check_day(self._clock(), used.day, used.tokens)

    def spend(self, owner: str, tokens: int) -> None:
        """Counts the tokens of a model call; a failed write is logged and not counted."""
        if self._tokens_per_day is None or tokens <= 0:
            return
        try:
            with self._database.write() as connection:
                connection.execute(_SPEND, {"owner": owner, **_window(self._clock()), "tokens": tokens})
        except StoreError as error:  # no reason to lose the answer
            _LOG.warning("%d tokens were not counted: %s", tokens, error.code)

    def _check_day(self, now: datetime, day: int, tokens: int) -> None:
        today = _window(now)["day"]
        if self._tokens_per_day is not None and today <= day <= today + 1 and tokens >= self._tokens_per_day:
            seconds = _seconds_until(now, day + 1, _DAY_SECONDS)
            raise UserTokensError(seconds, f"{math.ceil(seconds / _HOUR_SECONDS)} h")


def _window(now: datetime) -> dict[str, int]:
    seconds = int(now.timestamp())
    return {"minute": seconds // _MINUTE_SECONDS, "day": seconds // _DAY_SECONDS}


def _seconds_until(now: datetime, number: int, length_seconds: int) -> int:
    """Returns the seconds until the start of a minute or day by number, at least 1."""
    return max(1, number * length_seconds - int(now.timestamp()))
