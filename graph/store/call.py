"""Owns what each model call was sent and what it cost; knows nothing of how an input is put together."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Select, and_, func, insert, select

from graph.store.database import Database
from graph.store.hold import Hold
from graph.store.schema import call_table, message_table, session_table, turn_table

_CORRECTION_CALLS = 20
_LOWEST_CORRECTION = 0.5
_HIGHEST_CORRECTION = 2.0
_NO_TURN_YET = 2**31
_call = call_table.c


@dataclass(frozen=True)
class ModelCall:
    """One call of a model within a turn.

    Attributes:
        ordinal: Counts the calls of one attempt.
        manifest: What was sent, block by block: (kind, id, version, tokens).
        input_hash: Of the bytes sent.
        sent_tokens: Our estimate for what was sent.
        full_tokens: Our estimate for the whole history in its place.
        usage_input_tokens: As the provider reported it, None if it didn't; so too the two below.
        usage_cached_tokens: The part of the input that its cache held.
        error_code: Why it failed, "" if it didn't.
    """

    id: str
    session_id: str
    turn: int
    attempt: int
    ordinal: int
    kind: Literal["answer", "reasoning"]
    model: str
    manifest: tuple[tuple[str, str, int, int], ...]
    input_hash: str
    sent_tokens: int
    full_tokens: int
    usage_input_tokens: int | None
    usage_output_tokens: int | None
    usage_cached_tokens: int | None
    seconds: float
    error_code: str
    created_at: datetime


class CallPoint(NamedTuple):
    """What a turn's last answer call was sent, against the whole history; both are our estimates."""

    turn: int
    sent_tokens: int
    full_tokens: int


class CallStore:
    """Keeps the calls and sums them up."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, hold: Hold, call: ModelCall, owner: str) -> None:
        """Keeps a call that has ended, well or not.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
        """
        values = {**asdict(call), "owner": owner, "manifest": json.dumps(call.manifest, separators=(",", ":"))}
        with self._database.write(hold) as connection:
            connection.execute(insert(call_table).values(values))

    def last_answered(self, session_id: str) -> ModelCall | None:
        """Returns the newest answer call that didn't fail, None if there is none."""
        columns = (_call[field.name] for field in fields(ModelCall))
        query = _newest_first(select(*columns).where(*_answers(session_id), _call.error_code == "")).limit(1)
        with self._database.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        return ModelCall(**{**row, "manifest": tuple(tuple(block) for block in json.loads(row["manifest"]))})

    def series(self, session_id: str) -> list[CallPoint]:
        """Returns the last answered call of each turn's present attempt, in order; a reset begins the history anew."""
        is_current = and_(
            turn_table.c.session_id == _call.session_id,
            turn_table.c.number == _call.turn,
            turn_table.c.attempt == _call.attempt,
        )
        query = select(_call.turn, _call.sent_tokens, _call.full_tokens)
        query = query.select_from(call_table.join(turn_table, is_current)).where(*_answers(session_id))
        query = query.order_by(_call.turn, _call.ordinal, _call.created_at)
        with self._database.read() as connection:
            begin, left_tokens = _since_reset(connection, session_id)
            rows = connection.execute(query.where(_call.error_code == "", _call.turn >= begin)).all()
        points = {row.turn: CallPoint(row.turn, row.sent_tokens, row.full_tokens - left_tokens) for row in rows}
        return list(points.values())

    def unsent_tokens(self, session_id: str) -> int:
        """Returns how much less was sent than the whole history since a reset, over all answer calls that worked."""
        with self._database.read() as connection:
            begin, left_tokens = _since_reset(connection, session_id)
            unsent = func.sum(_call.full_tokens - left_tokens - _call.sent_tokens)
            worked = (*_answers(session_id), _call.error_code == "", _call.turn >= begin)
            return int(connection.execute(select(func.coalesce(unsent, 0)).where(*worked)).scalar_one())

    def correction(self, session_id: str) -> float:
        """Returns by what our estimate must be multiplied to meet the provider's usage, 0.5 to 2.

        It's taken from those of the last 20 answer calls whose usage was reported; 1.0 without any.
        """
        recent = select(_call.usage_input_tokens, _call.sent_tokens).where(*_answers(session_id))
        # Bounded before the look at usage: a provider that reports none must not cost a scan of the whole session.
        calls = _newest_first(recent).limit(_CORRECTION_CALLS).subquery()
        has_usage = calls.c.usage_input_tokens.is_not(None)
        query = select(func.sum(calls.c.usage_input_tokens), func.sum(calls.c.sent_tokens)).where(has_usage)
        with self._database.read() as connection:
            reported, sent = connection.execute(query).one()
        if not reported or not sent:
            return 1.0
        return min(max(float(reported) / float(sent), _LOWEST_CORRECTION), _HIGHEST_CORRECTION)


def _answers(session_id: str) -> tuple[Any, ...]:
    return _call.session_id == session_id, _call.kind == "answer"


def _newest_first(query: Select[Any]) -> Select[Any]:
    return query.order_by(_call.turn.desc(), _call.attempt.desc(), _call.ordinal.desc())


def _since_reset(connection: Connection, session_id: str) -> tuple[int, int]:
    """Returns the first turn that the last reset left in the context, and the tokens of all that was said before it."""
    turn, message, session = turn_table.c, message_table.c, session_table.c
    asked = and_(message.session_id == turn.session_id, message.message_id == turn.user_message_id)
    reset = select(session.context_from_position).where(session.session_id == session_id).scalar_subquery()
    query = select(turn.number, turn.history_tokens).select_from(turn_table.join(message_table, asked))
    query = query.where(turn.session_id == session_id, message.position > reset).order_by(turn.number).limit(1)
    row = connection.execute(query).one_or_none()
    return (_NO_TURN_YET, 0) if row is None else (row.number, row.history_tokens)
