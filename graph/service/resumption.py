"""Goes on with a turn that waits for a program, once the program has answered its calls."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import AnyMessage

from graph.client import ClientMessage
from graph.core.client_call import results_of
from graph.core.recognise import Decision
from graph.error import InputError
from graph.service.access import SessionAccess
from graph.service.reservation import reserved
from graph.service.turn_job import job_of
from graph.store.database import Lease
from graph.store.session import SessionRow
from graph.view import TurnOptions


def resume(
    access: SessionAccess,
    session_id: str,
    answers: Sequence[ClientMessage],
    options: TurnOptions,
    decision: Decision | None,
) -> int:
    """Goes on with the open turn and returns its number; see `Turns.resume`."""
    access.chosen(options)
    access.own(session_id)
    for answer in answers:
        if answer.role == "tool" and len(answer.text) > access.settings.message_chars:
            raise InputError("too_long", f"{len(answer.text)} > {access.settings.message_chars}")
    anchor = decision.anchor if decision else None
    with reserved(access, session_id) as lease:
        session = access.own(session_id)
        changes = access.changes_of(session, options)
        session = replace(session, **changes)
        number, said = _open_turn(access, lease, session)
        results = results_of(said, answers, message_id=f"tool-{uuid.uuid4().hex}")
        turn = access.stores.turns.resume(
            lease,
            number,
            owner=access.owner,
            messages=results,
            model=session.model,
            settings=changes,
            client=options.client_name,
            anchor=anchor,
        )
        access.recovery.rebuild(session)
        resumed = [*said, *results]
        access.runner.submit(job_of(access, lease, turn, session, options, resumed=resumed, anchor=anchor))
    return number


def _open_turn(access: SessionAccess, lease: Lease, session: SessionRow) -> tuple[int, list[AnyMessage]]:
    """Returns the number and the messages of the session's open turn, (0, []) for none."""
    last = access.stores.turns.last(lease.session_id)
    if last is not None and last.status == "requires_action" and not access.stores.turns.is_waiting(last):
        access.recovery.reconcile(lease, session)  # it has waited for too long
        return 0, []
    if last is None or not last.is_open:
        return 0, []
    said = access.stores.archive.live_turns(lease.session_id, last.number, last.number)
    return last.number, [entry.message for entry in said]
