"""Reads what the page and programs are shown of a session."""

from __future__ import annotations

from typing import Final

from graph.error import NotFoundError, TurnfoldError
from graph.service.access import SessionAccess
from graph.store.session import SessionRow
from graph.strategy.compaction import CompactionStrategy
from graph.strategy.rolling import RollingStrategy, unsent_count
from graph.view import ContextNotice, SessionView

_NEARLY_FULL: Final = 0.8


def read_session(access: SessionAccess, session_id: str) -> SessionView:
    """Returns a session's settings and state.

    Raises:
        NotFoundError: The owner has no such session.
    """
    row = access.own(session_id)
    position = access.stores.oldest_raw_position(session_id)
    failures, code = 0, ""
    if position is not None:
        failures, code = access.stores.records.failures_in_a_row(session_id, position)
    origin = _origin(access, row)
    return SessionView(
        session_id=row.session_id,
        title=row.title,
        compression_rate=row.compression_rate,
        strategy=access.strategies.of(row.strategy).name,
        model=row.model or access.models.default_name,
        turn_count=row.turn_count,
        is_running=access.is_busy(session_id),
        fold_failures=failures,
        fold_error_code=code,
        unsent_messages=_unsent_messages(access, row),
        context_notice=_context_notice(access, row),
        project_root=row.project_root,
        has_memory=row.has_memory,
        project_problem=_project_problem(access, row),
        client=row.client,
        is_pinned=row.is_pinned,
        forked_from=origin,
        forked_after=row.forked_after if origin else 0,
    )


def _origin(access: SessionAccess, row: SessionRow) -> str:
    """Returns the session that this one was forked from if the owner has it still, else ""."""
    try:
        return access.own(row.forked_from).session_id if row.forked_from else ""
    except NotFoundError:
        return ""


def _project_problem(access: SessionAccess, row: SessionRow) -> TurnfoldError | None:
    projects = access.project_turns
    return projects.problem(row.session_id) if projects is not None and row.project_root else None


def _unsent_messages(access: SessionAccess, row: SessionRow) -> int:
    """Counts the messages of complete turns that "rolling" neither summarised nor sends."""
    is_rolling = access.strategies.of(row.strategy).name == RollingStrategy.name
    if not is_rolling or access.settings.rolling_sends_unsummarised:
        return 0
    raw = access.stores.context(row.session_id).raw
    prior = [entry.message for entry in raw if entry.turn <= row.turn_count - row.is_open]
    return unsent_count(prior, access.settings.app_context_recent_messages)


def _context_notice(access: SessionAccess, row: SessionRow) -> ContextNotice:
    """Returns seed 004's warning: how full the context is while automatic compaction is off."""
    settings = access.settings
    if access.strategies.of(row.strategy).name != CompactionStrategy.name or settings.enable_auto_compaction:
        return ""
    turn_count, rate = row.turn_count, row.compression_rate
    snapshot = access.fold_worker.snapshot(row.session_id, complete_turns=turn_count, rate=rate)
    tokens = round(snapshot.context_tokens * snapshot.correction)
    if tokens > settings.max_context_tokens:
        return "full"
    return "nearly_full" if tokens > settings.max_context_tokens * _NEARLY_FULL else ""
