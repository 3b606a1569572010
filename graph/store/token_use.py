"""Sums of tokens of model calls, per session or owner, computed by the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Label,
    Select,
    Table,
    bindparam,
    case,
    func,
    literal,
    not_,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.sql.selectable import CompoundSelect

from graph.core.cost import TokenUse
from graph.store.active import IS_IN_CONTEXT
from graph.store.database import Database
from graph.store.schema import call_table, message_table, record_table, session_table
from graph.value.error import CutStreamError, TurnStoppedSignal

_call = call_table.c
_message = message_table.c
_record = record_table.c
_COSTS_TOKENS: Final = _record.input_tokens + _record.output_tokens > 0
_IS_REPORTED: Final = _call.usage_input_tokens.is_not(None)
# Other failed calls count by the provider's report only.
_IS_PAID: Final = or_(_IS_REPORTED, _call.error_code.in_(("", TurnStoppedSignal.code, CutStreamError.code)))
_COPY: Final = "copy"
_Within = Callable[[Select[Any], Table], Select[Any]]


def _in_session(query: Select[Any], table: Table) -> Select[Any]:
    return query.where(table.c.session_id == bindparam("session_id"))


def _of_owner(query: Select[Any], table: Table) -> Select[Any]:
    session = session_table.c
    query = query.join_from(session_table, table, session.session_id == table.c.session_id)
    return query.where(session.owner == bindparam("owner"), session.deleted_at.is_(None))


def _calls(within: _Within) -> Select[Any]:
    """Sums the tokens of turns' calls by model; unreported ones are estimated.

    The answer of the n-th call of an attempt is the attempt's n-th message by the model.
    """
    row_number = func.row_number().over(
        partition_by=[_call.session_id, _call.turn, _call.attempt, _call.kind], order_by=[_call.ordinal, _call.id]
    )
    cached = func.coalesce(_call.usage_cached_tokens, 0)
    paid = within(
        select(
            _call.session_id,
            _call.turn,
            _call.attempt,
            _call.kind,
            _call.model,
            _call.sent_tokens,
            _call.usage_input_tokens,
            case((cached < _call.usage_input_tokens, cached), else_=_call.usage_input_tokens).label("cached_tokens"),
            _call.usage_output_tokens,
            row_number.label("row_number"),
            _copy_of(call_table, _call.id),
        ).where(_IS_PAID),
        call_table,
    ).subquery("paid")
    asked = select(*(column for column in paid.c if column.name != _COPY)).where(paid.c[_COPY] == 1).cte("asked")
    is_estimate = asked.c.usage_input_tokens.is_(None)
    # Messages are read only for sessions with unreported calls.
    lacking = select(asked.c.session_id).where(is_estimate, asked.c.kind == "answer").distinct().subquery("lacking")
    row_number = func.row_number().over(
        partition_by=[_message.session_id, _message.turn, _message.attempt], order_by=_message.position
    )
    answers = (
        select(_message.session_id, _message.turn, _message.attempt, _message.tokens, row_number.label("row_number"))
        .join_from(lacking, message_table, lacking.c.session_id == _message.session_id)
        .where(_message.role == "ai")
        .subquery("said")
    )
    # Grouped by call instead of joined: SQLite would read all messages again for each call.
    read_tokens = case((is_estimate, asked.c.sent_tokens), else_=asked.c.usage_input_tokens - asked.c.cached_tokens)
    names = ("session_id", "turn", "attempt", "row_number")
    parts = union_all(
        select(
            *(asked.c[name] for name in names),
            asked.c.kind,
            asked.c.model,
            case((is_estimate, 1), else_=0).label("is_estimate"),
            read_tokens.label("read_tokens"),
            asked.c.cached_tokens,
            asked.c.usage_output_tokens.label("written_tokens"),
            literal(0).label("said_tokens"),
        ),
        select(
            *(answers.c[name] for name in names),
            literal("answer"),
            null(),
            null(),
            null(),
            null(),
            null(),
            answers.c.tokens,
        ),
    ).subquery("parts")
    part = parts.c
    call = (
        select(
            func.max(part.model).label("model"),
            func.max(part.is_estimate).label("is_estimate"),
            *(func.sum(part[name]).label(name) for name in ("read_tokens", "cached_tokens", "written_tokens")),
            func.sum(part.said_tokens).label("said_tokens"),
        )
        .group_by(*(part[name] for name in names), part.kind)
        .having(func.count(part.model) > 0)  # no answers without a counted call
        .subquery("call")
        .c
    )
    return select(
        call.model,
        literal(0).label("is_summary"),
        func.count().label("call_count"),
        func.sum(call.is_estimate).label("estimated_count"),
        *_sums(
            call.read_tokens,
            call.cached_tokens,
            case((call.is_estimate == 1, call.said_tokens), else_=call.written_tokens),
        ),
    ).group_by(call.model)


def _summaries(within: _Within, *conditions: ColumnElement[bool]) -> Select[Any]:
    columns = (_record.model, _record.is_usage, _record.input_tokens, _record.output_tokens)
    # Imports change ids, so copies are found by source and time.
    copy = _copy_of(record_table, _record.source_key, _record.created_at)
    made = within(select(*columns, copy).where(_COSTS_TOKENS, *conditions), record_table).subquery("made").c
    return (
        select(
            made.model,
            literal(1).label("is_summary"),
            func.count().label("call_count"),
            func.count().filter(not_(made.is_usage)).label("estimated_count"),
            *_sums(made.input_tokens, literal(0), made.output_tokens),
        )
        .where(made[_COPY] == 1)
        .group_by(made.model)
    )


def _copy_of(table: Table, *identity: ColumnElement[Any]) -> Label[int]:
    """Ranks rows of the same identity by session, from 1: an import repeats calls already paid for by its origin."""
    return func.rank().over(partition_by=identity, order_by=table.c.session_id).label(_COPY)


def _sums(*columns: ColumnElement[Any]) -> list[ColumnElement[int]]:
    names = ("input_tokens", "cached_tokens", "output_tokens")
    return [func.coalesce(func.sum(column), 0).label(name) for name, column in zip(names, columns, strict=True)]


_OF_SESSION: Final = union_all(_calls(_in_session), _summaries(_in_session))
_OF_OWNER: Final = union_all(_calls(_of_owner), _summaries(_of_owner))
_FOLDS: Final = _summaries(_in_session, IS_IN_CONTEXT)


class TokenUseStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_session(self, session_id: str) -> list[TokenUse]:
        return self._read(_OF_SESSION, session_id=session_id)

    def of_owner(self, owner: str) -> list[TokenUse]:
        """Returns the use of all sessions of an owner that aren't deleted; calls repeated by an import count once."""
        return self._read(_OF_OWNER, owner=owner)

    def of_folds(self, session_id: str) -> list[TokenUse]:
        return self._read(_FOLDS, session_id=session_id)

    def _read(self, query: Select[Any] | CompoundSelect[Any], **values: str) -> list[TokenUse]:
        with self._database.read() as connection:
            rows = connection.execute(query, values).all()
        return [TokenUse(model, bool(is_summary), *map(int, counts)) for model, is_summary, *counts in rows]
