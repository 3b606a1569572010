"""Commits a user's message with its turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from langchain_core.messages import HumanMessage

from graph.core.casual import is_casual
from graph.core.client_chain import OpenAnchor
from graph.core.turn import text_of
from graph.error import BusyError
from graph.service.access import SessionAccess
from graph.store.database import Lease
from graph.store.session import SessionRow
from graph.store.turn import TurnRow
from graph.view import TurnOptions


def begin_turn(
    access: SessionAccess,
    lease: Lease,
    message: HumanMessage,
    options: TurnOptions,
    anchor: OpenAnchor | None,
    images: Mapping[str, str],
) -> tuple[TurnRow, SessionRow]:
    """Commits the message with its turn and the settings that change with it.

    Args:
        access: The owner's service.
        lease: The session's lease.
        message: The message, checked and with its id.
        options: Those of the turn.
        anchor: What a program's request is known again by; None for the page.
        images: The `data:` URLs of the message's images by the references to them.

    Returns:
        The turn, and the session with the settings of this turn.

    Raises:
        NotFoundError: The owner has no such session.
        InputError: An option is invalid.
        BusyError: The same message was sent at the same time.
    """
    session = access.own(lease.session_id)
    changes = access.changes_of(session, options)
    session = replace(session, **changes)
    access.recovery.reconcile(lease, session)
    text = text_of(message)
    turn, is_new = access.stores.turns.begin(
        lease,
        owner=access.owner,
        message=message,
        model=session.model,
        is_casual=is_casual(text) and is_casual(text, _last_answer(access, lease.session_id)),
        settings=changes,
        client=options.client_name,
        anchor=anchor,
        images=images,
    )
    if not is_new:
        raise BusyError  # the same message was sent twice at once, and the other call committed it
    return turn, session


def _last_answer(access: SessionAccess, session_id: str) -> str:
    """Returns the text of the assistant's last message, "" if there is none."""
    with access.stores.database.reading():
        last = access.stores.turns.last(session_id)
        said = access.stores.archive.live_turns(session_id, last.number, last.number) if last else []
    return text_of(said[-1].message) if said else ""
