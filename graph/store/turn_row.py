"""The stored form of a turn, and queries of its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import Connection, bindparam, func, insert, or_, select

from graph.store.archive import LIVE_TOKENS, sum_live_tokens
from graph.store.schema import attempt_table, context_block_table, turn_table
from graph.value.error import NotFoundError

RUNNING: Final = "running"
# What an open turn waits for: a program's results, or the user's word on calls.
WAITING: Final = ("requires_action", "asking")
OPEN: Final = (RUNNING, *WAITING)
_turn = turn_table.c


@dataclass(frozen=True)
class TurnRow:
    """A turn in its last attempt; times are UTC.

    Attributes:
        partial_text: Text streamed so far, or retained of a stopped answer.
        finished_at: End of the turn, or start of its wait.
        history_tokens: Our estimate for all messages before this turn.
        client: The name of the program that sent the turn, "" for the page.
        is_imported: True if a program sent the turn with its answer: no model of ours was called.
        thought_seconds: How long the model thought, 0 for no thoughts; `TurnStore.thoughts` reads them.
        asked_calls: The calls that wait for the user's word while the turn is "asking": `id`, `server`, `tool` and
            `title` of each.
    """

    session_id: str
    number: int
    attempt: int
    status: Literal["running", "requires_action", "asking", "finished", "failed", "stopped"]
    user_message_id: str
    model: str
    is_casual: bool
    partial_text: str
    stop_requested: bool
    error_code: str
    error_detail: str
    started_at: datetime
    finished_at: datetime | None
    history_tokens: int
    client: str
    is_imported: bool
    thought_seconds: float = 0.0
    asked_calls: tuple[Mapping[str, str], ...] = ()

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def is_waiting(self) -> bool:
        return self.status in WAITING


ROWS: Final = select(*(_turn[field.name] for field in fields(TurnRow)))
_OF_SESSION = ROWS.where(_turn.session_id == bindparam("session_id"))
_ONE = _OF_SESSION.where(_turn.number == bindparam("number"))
NEWEST = _OF_SESSION.order_by(_turn.number.desc())
_LAST = NEWEST.limit(1)
_THOUGHTS = select(_turn.thoughts).where(
    _turn.session_id == bindparam("session_id"), _turn.number == bindparam("number")
)
_aside = attempt_table.c
_THOUGHTS_ASIDE = select(_aside.thoughts).where(
    _aside.session_id == bindparam("session_id"),
    _aside.turn == bindparam("number"),
    _aside.attempt == bindparam("attempt"),
)
_BETWEEN = _OF_SESSION.where(_turn.number.between(bindparam("first"), bindparam("last"))).order_by(_turn.number)
_before = turn_table.alias("before").c
_BEFORE = select(_before.history_tokens).where(
    _before.session_id == bindparam("of_session"), _before.number == bindparam("last")
)
# Of the tokens of earlier messages only those of the turn before are summed up.
_HISTORY: Final = func.coalesce(_BEFORE.scalar_subquery(), 0) + LIVE_TOKENS.scalar_subquery()
_ADD: Final = (
    insert(turn_table)
    .values(
        {c.name: bindparam(f"of_{c.name}", type_=c.type) for c in turn_table.c if c.name != "is_imported"}
        | {"history_tokens": _HISTORY}
    )
    .returning(*(_turn[field.name] for field in fields(TurnRow)))
)
_own = context_block_table.c
_HAS_OWN = select(_own.version).where(_own.session_id == bindparam("session_id"), _own.kind == "before").exists()
_OF_PROGRAMS = select(func.count(), _HAS_OWN).where(
    _turn.session_id == bindparam("session_id"),
    _turn.number <= bindparam("last"),
    or_(_turn.client != "", _turn.is_imported),
)


def read_turn(connection: Connection, session_id: str, number: int) -> TurnRow:
    """Raises `NotFoundError` if the session has no such turn."""
    row = connection.execute(_ONE, {"session_id": session_id, "number": number}).one_or_none()
    if row is None:
        raise NotFoundError(str(number))
    return TurnRow(*row)


def read_thoughts(connection: Connection, session_id: str, number: int, attempt: int | None = None) -> str:
    parameters = {"session_id": session_id, "number": number, "attempt": attempt}
    aside = None if attempt is None else connection.execute(_THOUGHTS_ASIDE, parameters).scalar()
    return connection.execute(_THOUGHTS, parameters).scalar() or "" if aside is None else str(aside)


def last_turn(connection: Connection, session_id: str) -> TurnRow | None:
    row = connection.execute(_LAST, {"session_id": session_id}).one_or_none()
    return None if row is None else TurnRow(*row)


def turns_between(connection: Connection, session_id: str, first: int, last: int) -> tuple[TurnRow, ...]:
    rows = connection.execute(_BETWEEN, {"session_id": session_id, "first": first, "last": last})
    return tuple(TurnRow(*row) for row in rows)


def seen_by_programs(connection: Connection, session_id: str, last: int) -> tuple[int, bool]:
    count, has_own = connection.execute(_OF_PROGRAMS, {"session_id": session_id, "last": last}).one()
    return int(count), bool(has_own)


def insert_turn(connection: Connection, values: Mapping[str, Any]) -> TurnRow:
    """Inserts the turn that follows the session's last one; `values` has its columns, and its number as `turn`."""
    last = values["turn"] - 1
    row = {f"of_{name}": value for name, value in values.items() if name in _turn}
    of_last = {"of_session": values["session_id"], "of_number": values["turn"], "first": last, "last": last}
    return TurnRow(*connection.execute(_ADD, {**row, **of_last}).one())


def sum_history_tokens(connection: Connection, session_id: str, last_number: int) -> int:
    """Returns our estimate for all turns up to this number, from the stored sum: earlier messages aren't read."""
    if last_number == 0:
        return 0
    before = read_turn(connection, session_id, last_number).history_tokens
    return before + sum_live_tokens(connection, session_id, last_number)


def new_attempt(attempt: int, model: str, client: str, now: datetime) -> dict[str, object]:
    return {
        "attempt": attempt,
        "status": RUNNING,
        "model": model,
        "client": client,
        "partial_text": "",
        "stop_requested": False,
        "error_code": "",
        "error_detail": "",
        "started_at": now,
        "finished_at": None,
        "thought_seconds": 0.0,
        "thoughts": "",
        "asked_calls": (),
    }
