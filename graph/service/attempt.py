"""Runs a session's last turn in a new attempt."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from graph.core.recognise import Decision
from graph.error import InputError
from graph.service.access import SessionAccess
from graph.service.reservation import check_unchanged, reserved
from graph.service.turn_job import job_of
from graph.store.session import SessionRow
from graph.view import TurnOptions


def run_again(
    access: SessionAccess,
    session_id: str,
    statuses: Collection[str],
    options: TurnOptions,
    decision: Decision | None = None,
    *,
    turn: int | None = None,
) -> int:
    """Starts the attempt if the last turn has one of these statuses or waits for a program; returns its number.

    Args:
        access: The owner's service.
        session_id: The session.
        statuses: Those of a turn that may run again.
        options: Those of the attempt.
        decision: How a program's request was recognised; None for the page.
        turn: The turn that is meant; None for whichever is the last one.

    Raises:
        NotFoundError: The owner has no such session.
        InputError: `not_last`: the last turn is none of these, or isn't the one that is meant; or an option is invalid.
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
        if last is None or turn not in {None, last.number} or not (is_waiting or last.status in statuses):
            raise InputError("not_last", f"{last.number if last else 0}")
        take_back_notes(access, session, last.number, roles={"ai"})
        changes = access.changes_of(session, options)
        session = replace(session, **changes)
        begun = turns.begin_attempt(
            lease,
            last.number,
            model=session.model,
            settings=changes,
            client=options.client_name,
            anchor=anchor,
        )
        access.recovery.rebuild(session)
        access.runner.submit(job_of(access, lease, begun, session, options, anchor=anchor))
    return begun.number


def take_back_notes(access: SessionAccess, session: SessionRow, turn: int, *, roles: Collection[str]) -> None:
    """Has the session's project forget what was said in a turn that is asked or answered again.

    Args:
        access: The owner's service.
        session: The session.
        turn: The turn, as it is before that.
        roles: Whose messages another attempt replaces, by their type.
    """
    if access.project_turns is not None and session.project_root:
        said = access.stores.archive.live_turns(session.session_id, turn, turn)
        ids = [str(entry.message.id) for entry in said if entry.message.type in roles]
        access.project_turns.take_back(access.owner, session.project_root, session.session_id, turn, ids)
