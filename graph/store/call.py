"""The tables of model calls, with input, usage and cost: of turns, side requests of programs, and titles."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from statistics import fmean, linear_regression
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, bindparam, func, insert, select, tuple_

from graph.core.cost import SentCall
from graph.core.manifest import LONGEST_CHAIN, Manifest, decode_all, decode_manifest, encode_manifest
from graph.store.database import Database, Lease
from graph.store.schema import aside_table, call_table, message_table, reset_table, session_table, turn_table
from graph.store.session import change_session, title_values
from graph.value.error import DatabaseError

_CORRECTION_CALLS = 20
# Usage below our estimate never raises the limit: some servers report uncached input only, and truncate silently.
_LOWEST_CORRECTION = 1.0
_HIGHEST_CORRECTION = 2.0
_LEAST_REPORTED = 2
# Calls of about one size don't tell an offset from a ratio.
_LEAST_CALLS = 3
_LEAST_SPREAD = 0.25
_NO_TURN_YET = 2**31 - 1
_call = call_table.c
_reset = reset_table.c
_KEY = (_call.turn, _call.attempt, _call.ordinal)


@dataclass(frozen=True)
class ModelCall:
    """One call of a model within a turn.

    Attributes:
        kind: "answer" for a call of the chat, "reasoning" for a call by the tool of that name.
        manifest: The blocks sent: (kind, id, version, tokens).
        sent_tokens: Our estimate for the input.
        full_tokens: Our estimate for the whole history instead.
        usage_input_tokens: Reported by the provider, else None; likewise the next two.
        ordinal: Number of the call within the attempt, from 1, over both kinds; set when the call is stored.
    """

    id: str
    session_id: str
    turn: int
    attempt: int
    kind: Literal["answer", "reasoning"]
    model: str
    manifest: Manifest
    input_hash: str
    sent_tokens: int
    full_tokens: int
    usage_input_tokens: int | None
    usage_output_tokens: int | None
    usage_cached_tokens: int | None
    seconds: float
    error_code: str
    created_at: datetime
    ordinal: int = 0


_ADD = insert(call_table)
_NEWEST = (
    select(*_KEY, _call.id, _call.kind, _call.manifest)
    .where(_call.session_id == bindparam("session_id"))
    .order_by(*(column.desc() for column in _KEY))
    .limit(LONGEST_CHAIN)
)


# Not filtered by usage: with a provider that reports none, a filter would scan the whole session.
_RECENT = (
    select(_call.sent_tokens, _call.usage_input_tokens, _call.usage_cached_tokens)
    .where(_call.session_id == bindparam("session_id"), _call.kind == "answer")
    .order_by(*(column.desc() for column in _KEY))
    .limit(_CORRECTION_CALLS)
)
_origin = session_table.alias("origin").c
_ORIGIN = select(_origin.session_id).where(
    session_table.c.session_id == bindparam("session_id"),
    _origin.session_id == session_table.c.forked_from,
    _origin.owner == session_table.c.owner,
)


class Correction(NamedTuple):
    """How a provider counts what we estimate: a line through the reports.

    The offset is what a template adds, or tools that it leaves out; it doesn't grow with the input, so no ratio
    corrects it. The ratio is at least 1 for text that wasn't counted yet.
    """

    offset_tokens: float
    ratio: float

    def tokens(self, sent_tokens: int) -> int:
        """Returns what the provider will count for an estimate: once to twice as much."""
        counted = self.offset_tokens + self.ratio * sent_tokens
        return round(min(max(counted, sent_tokens * _LOWEST_CORRECTION), sent_tokens * _HIGHEST_CORRECTION))

    def sent_within(self, limit_tokens: int) -> float:
        """Returns the estimate of an input that the provider counts as the limit: half of it to all of it."""
        sent_tokens = (limit_tokens - self.offset_tokens) / self.ratio
        return min(max(sent_tokens, limit_tokens / _HIGHEST_CORRECTION), limit_tokens / _LOWEST_CORRECTION)


@dataclass(frozen=True)
class RecentCalls:
    """What a provider reported of a session's last 20 answer calls.

    Attributes:
        calls: Of each call, the newest first, our estimate for its input, and the provider's figure for it and for
            what of it was cached.
        of_origin: Likewise of the session that this one branched off.
    """

    calls: Sequence[tuple[int, int | None, int | None]] = ()
    of_origin: Sequence[tuple[int, int | None, int | None]] = ()

    def followed_by(self, call: ModelCall) -> RecentCalls:
        if call.kind != "answer":
            return self
        counted = call.sent_tokens, call.usage_input_tokens, call.usage_cached_tokens
        return RecentCalls((counted, *self.calls)[:_CORRECTION_CALLS], self.of_origin)

    @property
    def reads_cache(self) -> bool:
        """Whether cached input was reported for one of the calls."""
        return any(cached for _, _, cached in self.calls)

    @cached_property
    def reported(self) -> Sequence[tuple[int, int]]:
        """Our estimate and the report of each call's input; if there is no report, those of the session's origin."""
        return _reported(self.calls) or _reported(self.of_origin)

    @property
    def ratio(self) -> float:
        """The ratio of reported to estimated input tokens, clamped to 1-2; 1.0 without a report."""
        if not self.reported:
            return 1.0
        ratio = sum(counted for _, counted in self.reported) / sum(sent for sent, _ in self.reported)
        return min(max(ratio, _LOWEST_CORRECTION), _HIGHEST_CORRECTION)

    @property
    def correction(self) -> Correction:
        """The line through the reports; where they are too few or too alike for one, `ratio` alone."""
        sent = [sent for sent, _ in self.reported]
        if len(sent) < _LEAST_CALLS or max(sent) - min(sent) < _LEAST_SPREAD * max(sent):
            return Correction(0.0, self.ratio)
        slope = linear_regression(sent, [counted for _, counted in self.reported]).slope
        slope = min(max(slope, _LOWEST_CORRECTION), _HIGHEST_CORRECTION)
        return Correction(fmean(counted - slope * sent for sent, counted in self.reported), slope)


class AnsweredCall(NamedTuple):
    """Input tokens of an answer call: our estimate, and the provider's figure or None."""

    session_id: str
    sent_tokens: int
    usage_input_tokens: int | None


class CallPoint(NamedTuple):
    """Input of a turn's last answer call, and the whole history; both are our estimates."""

    turn: int
    sent_tokens: int
    full_tokens: int


class CallCost(NamedTuple):
    """Tokens of a turn's answered call; `sent_tokens` and `full_tokens` are estimates, `ordinal` as in `ModelCall`."""

    kind: Literal["answer", "reasoning"]
    sent_tokens: int
    full_tokens: int
    usage_input_tokens: int | None
    usage_output_tokens: int | None
    usage_cached_tokens: int | None
    ordinal: int


class AttemptTokens(NamedTuple):
    """Tokens of an attempt's answered calls: `is_usage` if all were reported; else our estimate for missing input."""

    model: str
    input_tokens: int
    output_tokens: int
    is_usage: bool


_WHOLE = select(*(_call[field.name] for field in fields(ModelCall)))


class CallStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, lease: Lease, call: ModelCall, owner: str) -> ModelCall:
        """Stores a finished call, failed or not, and returns it with its ordinal; idempotent, under the lease."""
        with self._database.write(lease) as connection:
            newest = connection.execute(_NEWEST, {"session_id": call.session_id}).all()
            if known := [row.ordinal for row in newest if row.id == call.id]:
                return replace(call, ordinal=known[0])
            is_first = not newest or newest[0][:2] != (call.turn, call.attempt)
            numbered = replace(call, ordinal=1 if is_first else newest[0].ordinal + 1)
            before = [row.manifest for row in reversed(newest) if row.kind == call.kind == "answer"]
            values = {**vars(numbered), "owner": owner, "manifest": encode_manifest(call.manifest, before)}
            connection.execute(_ADD, values)
        return numbered

    def last_answered(self, session_id: str) -> AnsweredCall | None:
        query = select(_call.session_id, _call.sent_tokens, _call.usage_input_tokens)
        query = _newest_first(query.where(*_answers(session_id), _call.error_code == ""))
        with self._database.read() as connection:
            row = connection.execute(query.limit(1)).one_or_none()
        return None if row is None else AnsweredCall(*row)

    def last_manifest(self, session_id: str) -> Manifest:
        """Returns the blocks sent by the newest answer call, () without one; raises `DatabaseError` if undecodable."""
        query = select(_call.id, _call.manifest).where(*_answers(session_id))
        with self._database.read() as connection:
            newest = connection.execute(_newest_first(query).limit(LONGEST_CHAIN)).all()
        return _decoded(newest[0].id, [row.manifest for row in reversed(newest)]) if newest else ()

    def of_turn(self, session_id: str, turn: int) -> list[ModelCall]:
        """Returns all calls of a turn in order, earlier attempts included; raises `DatabaseError` if undecodable."""
        query = _WHOLE.where(_call.session_id == session_id, _call.turn == turn).order_by(*_KEY, _call.created_at)
        with self._database.read() as connection:
            return [_to_call(connection, row) for row in connection.execute(query).mappings().all()]

    def before(self, call: ModelCall) -> ModelCall | None:
        """Returns the newest successful answer call before this one; raises `DatabaseError` if undecodable."""
        query = _WHOLE.where(*_answers(call.session_id), _call.error_code == "", _is_before(call))
        with self._database.read() as connection:
            row = connection.execute(_newest_first(query).limit(1)).mappings().one_or_none()
            return None if row is None else _to_call(connection, row)

    def turns(self, session_id: str) -> tuple[int, ...]:
        query = select(_call.turn).where(_call.session_id == session_id, _call.turn > 0).distinct().order_by(_call.turn)
        with self._database.read() as connection:
            return tuple(connection.execute(query).scalars())

    def costs(self, session_id: str, turn: int, attempt: int) -> list[CallCost]:
        """Returns the answered calls of an attempt in order, calls by tools included."""
        query = select(*(_call[name] for name in CallCost._fields)).where(_call.session_id == session_id)
        query = query.where(_call.turn == turn, _call.attempt == attempt, _call.error_code == "")
        with self._database.read() as connection:
            return [CallCost(*row) for row in connection.execute(query.order_by(_call.ordinal))]

    def tokens(self, session_id: str, first: int, last: int) -> dict[tuple[int, int], AttemptTokens]:
        """Returns the tokens of these turns by turn and attempt."""
        reported, said = _call.usage_input_tokens, _call.usage_output_tokens
        sums = func.sum(func.coalesce(reported, _call.sent_tokens)), func.coalesce(func.sum(said), 0)
        counts = func.count(), func.count(reported), func.count(said)
        query = select(_call.turn, _call.attempt, func.max(_call.model), *sums, *counts)
        query = query.where(_call.session_id == session_id, _call.turn.between(first, last), _call.error_code == "")
        with self._database.read() as connection:
            rows = connection.execute(query.group_by(_call.turn, _call.attempt)).all()
        return {
            (turn, attempt): AttemptTokens(model, int(sent), int(answered), is_usage=calls == inputs == outputs)
            for turn, attempt, model, sent, answered, calls, inputs, outputs in rows
        }

    def series(self, session_id: str) -> list[CallPoint]:
        """Returns the last answered call of each turn's current attempt since the last reset, in order."""
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
        """Returns full history minus sent input, summed over the answered calls since the last reset."""
        with self._database.read() as connection:
            begin, left_tokens = _since_reset(connection, session_id)
            unsent = func.sum(_call.full_tokens - left_tokens - _call.sent_tokens)
            worked = (*_answers(session_id), _call.error_code == "", _call.turn >= begin)
            return int(connection.execute(select(func.coalesce(unsent, 0)).where(*worked)).scalar_one())

    def past_unsent_tokens(self, session_id: str) -> int:
        """Returns what `unsent_tokens` was at each reset, in sum."""
        begins = select(func.max(_reset.turn) + 1).where(_reset.session_id == session_id, _reset.turn < _call.turn)
        left = select(turn_table.c.history_tokens).where(
            turn_table.c.session_id == session_id, turn_table.c.number == begins.correlate(call_table).scalar_subquery()
        )
        left_tokens = func.coalesce(left.correlate(call_table).scalar_subquery(), 0)
        unsent = func.sum(_call.full_tokens - left_tokens - _call.sent_tokens)
        with self._database.read() as connection:
            begin, _ = _since_reset(connection, session_id)
            worked = (*_answers(session_id), _call.error_code == "", _call.turn < begin)
            return int(connection.execute(select(func.coalesce(unsent, 0)).where(*worked)).scalar_one())

    def sent(self, session_id: str) -> list[SentCall]:
        """Returns the blocks sent by each answered call since the last reset; raises `DatabaseError` if undecodable."""
        columns = (_call.turn, _call.model, _call.error_code, _call.sent_tokens, _call.full_tokens)
        query = select(*columns, _call.usage_cached_tokens, _call.manifest).where(*_answers(session_id))
        with self._database.read() as connection:
            begin, left_tokens = _since_reset(connection, session_id)
            rows = connection.execute(query.order_by(*_KEY, _call.created_at)).all()
        try:
            manifests = decode_all([row.manifest for row in rows])
        except ValueError as error:
            detail = f"a list of {session_id} can't be read"
            raise DatabaseError(detail) from error
        return [
            SentCall(
                row.model,
                sent,
                row.full_tokens - left_tokens - row.sent_tokens,
                bool(row.usage_cached_tokens),
                row.turn,
                row.full_tokens - left_tokens,
            )
            for row, sent in zip(rows, manifests, strict=True)
            if row.turn >= begin and not row.error_code
        ]

    def recent(self, session_id: str, *, is_branch: bool) -> RecentCalls:
        with self._database.read() as connection:
            calls = _recent(connection, session_id)
            of_origin: Sequence[tuple[int, int | None, int | None]] = ()
            seen: set[str] = set()  # imported origins may form a cycle
            current: str | None = session_id
            while is_branch and not _reported(calls or of_origin) and current is not None and current not in seen:
                seen.add(current)
                current = connection.execute(_ORIGIN, {"session_id": current}).scalar()
                of_origin = _recent(connection, current) if current is not None else ()
        return RecentCalls(calls, of_origin)


def _recent(connection: Connection, session_id: str) -> Sequence[tuple[int, int | None, int | None]]:
    rows = connection.execute(_RECENT, {"session_id": session_id})
    return tuple((row.sent_tokens, row.usage_input_tokens, row.usage_cached_tokens) for row in rows)


def _reported(calls: Sequence[tuple[int, int | None, int | None]]) -> list[tuple[int, int]]:
    """Leaves out reports under half of our estimate: they can't cover the whole input."""
    counted = ((sent, tokens) for sent, tokens, _ in calls if tokens is not None and sent > 0)
    return [(sent, tokens) for sent, tokens in counted if tokens >= sent // _LEAST_REPORTED]


def _answers(session_id: str) -> tuple[Any, ...]:
    return _call.session_id == session_id, _call.kind == "answer"


def _is_before(call: ModelCall) -> ColumnElement[bool]:
    return tuple_(*_KEY) < (call.turn, call.attempt, call.ordinal)


def _newest_first(query: Select[Any]) -> Select[Any]:
    return query.order_by(*(column.desc() for column in _KEY))


def _written_before(connection: Connection, call: ModelCall) -> list[str]:
    """Returns the encoded manifests of earlier answer calls, oldest first, as many as decoding may need."""
    query = select(_call.manifest).where(*_answers(call.session_id), _is_before(call))
    return list(connection.execute(_newest_first(query).limit(LONGEST_CHAIN)).scalars())[::-1]


def _to_call(connection: Connection, row: RowMapping) -> ModelCall:
    call = ModelCall(**{**row, "manifest": ()})
    before = _written_before(connection, call) if call.kind == "answer" else []
    return replace(call, manifest=_decoded(call.id, [*before, row["manifest"]]))


def _decoded(call_id: str, written: Sequence[str]) -> Manifest:
    try:
        return decode_manifest(written)
    except ValueError as error:
        detail = f"the list of {call_id} can't be read"
        raise DatabaseError(detail) from error


def _since_reset(connection: Connection, session_id: str) -> tuple[int, int]:
    """Returns the first turn after the last reset, and our estimate for all tokens before it."""
    turn, message, session = turn_table.c, message_table.c, session_table.c
    asked = and_(message.session_id == turn.session_id, message.message_id == turn.user_message_id)
    reset = select(session.context_from_position).where(session.session_id == session_id).scalar_subquery()
    query = select(turn.number, turn.history_tokens).select_from(turn_table.join(message_table, asked))
    query = query.where(turn.session_id == session_id, message.position > reset).order_by(turn.number).limit(1)
    row = connection.execute(query).one_or_none()
    return (_NO_TURN_YET, 0) if row is None else (row.number, row.history_tokens)


_ADD_SIDE_CALL: Final = insert(aside_table)
# What it is made for, and no turn: so it is in no figure of folds, inputs or estimates.
_KIND: Final = {"kind": "title", "turn": 0, "attempt": 0}
_session = session_table.c


@dataclass(frozen=True)
class SideCall:
    """A finished model call outside turns, without text.

    `sent_tokens` is our estimate; usage is None if not reported.
    """

    owner: str
    model: str
    sent_tokens: int
    usage_input_tokens: int | None
    usage_output_tokens: int | None
    usage_cached_tokens: int | None
    seconds: float
    error_code: str
    created_at: datetime


class SideRequestStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, call: SideCall, *, client: str) -> None:
        with self._database.write() as connection:
            connection.execute(_ADD_SIDE_CALL, {**vars(call), "client": client})


class TitleStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def tries(self, session_id: str) -> int:
        with self._database.read() as connection:
            return _tries(connection, session_id)

    def keep(self, session_id: str, call: SideCall, title: str) -> bool:
        """Stores a call, and sets the title unless the session got one meanwhile; True if set. Needs no lease."""
        with self._database.write(session_id=session_id, is_context=False) as connection:
            query = select(_session.title_source).where(_session.session_id == session_id, _session.owner == call.owner)
            row = connection.execute(query).one_or_none()
            if row is None:
                return False
            title_call = {
                "session_id": session_id,
                "id": f"call-{secrets.token_urlsafe(9)}",
                "ordinal": _tries(connection, session_id) + 1,
            }
            sent = {"input_hash": "", "full_tokens": call.sent_tokens, "manifest": "[]"}
            connection.execute(insert(call_table).values({**vars(call), **_KIND, **title_call, **sent}))
            is_titled = bool(title) and not row.title_source
            if is_titled:
                change_session(connection, session_id, **title_values(title), title_source="model")
            return is_titled


def _tries(connection: Connection, session_id: str) -> int:
    of_titles = (
        _call.session_id == session_id,
        _call.turn == _KIND["turn"],
        _call.kind == _KIND["kind"],
    )
    return int(connection.execute(select(func.count()).select_from(call_table).where(*of_titles)).scalar_one())
