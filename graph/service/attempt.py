"""Runs a session's last turn in a new attempt."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from graph.core.recognise import Decision
from graph.error import InputError
from graph.service.access import SessionAccess
from graph.service.reservation import check_unchanged, reserved
from graph.service.turn_job import job_of
from graph.view import TurnOptions


def run_again(
    access: SessionAccess,
    session_id: str,
    statuses: Collection[str],
    options: TurnOptions,
    decision: Decision | None = None,
) -> int:
    """Starts the attempt if the last turn has one of these statuses or waits for a program; returns its number.

    Raises:
        NotFoundError: The owner has no such session.
        InputError: `not_last`: the last turn is none of these; or an option is invalid.
        BusyError: A turn is in progress.
    """
    access.chosen(options)
    access.own(session_id)
    anchor = decision.anchor if decision else None
    turns = access.stores.turns
    with reserved(access, session_id) as lease:
        check_unchanged(access, session_id, decision)
        session = access.own(session_id)
        last = turns.last(session_id)
        is_waiting = last is not None and last.status == "requires_action"
        access.recovery.reconcile(lease, session)
        last = turns.last(session_id)
        if last is None or not (is_waiting or last.status in statuses):
            raise InputError("not_last", f"{last.number if last else 0}")
        changes = access.changes_of(session, options)
        session = replace(session, **changes)
        turn = turns.begin_attempt(
            lease,
            last.number,
            model=session.model,
            settings=changes,
            client=options.client_name,
            anchor=anchor,
        )
        access.recovery.rebuild(session)
        access.runner.submit(job_of(access, lease, turn, session, options, anchor=anchor))
    return turn.number
