"""Reserves what a turn needs before it is committed: a slot of the server and the session's lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from graph.core.recognise import Decision
from graph.core.text import has_visible, plain_text, title_of
from graph.error import BusyError, NotFoundError
from graph.service.access import AFTERMATH_SECONDS, SessionAccess
from graph.store.database import Lease
from graph.view import TurnOptions


class Opening(NamedTuple):
    """What a session is created with by a message that may be its first.

    Attributes:
        text: What its title is made of.
        client: The program that begins it, "" for the page.
        family: The program's chat that it is a branch of, "" for none.
    """

    text: str
    client: str = ""
    family: str = ""


def opening_of(text: str, options: TurnOptions, decision: Decision | None) -> Opening:
    """Returns what the session is created with if need be; one that began elsewhere is titled after its beginning."""
    if decision is None:
        return Opening(text, options.client_name)
    said = (earlier.text for earlier in decision.imported if earlier.role == "user" and has_visible(earlier.text))
    return Opening(plain_text(next(said, text)), options.client_name, decision.family)


@contextmanager
def reserved(
    access: SessionAccess, session_id: str, wait_seconds: float = 0.0, *, opening: Opening | None = None
) -> Iterator[Lease]:
    """Reserves a slot of the server and acquires the lease. On error both are released; else the worker does it.

    Args:
        access: The service's own.
        session_id: The session.
        wait_seconds: How long to wait for a turn in progress; 5 s for the clean-up after one are always allowed.
        opening: How the session is created if need be; it's deleted on error if it is still empty.

    Raises:
        NotFoundError: The session belongs to another owner.
        BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
    """
    with access.stores.database.reading():
        is_missing = opening is not None and not _exists(access, session_id)
        if wait_seconds == 0 and access.is_busy(session_id):
            access.own(session_id)  # of another's nothing is told, not even this
            raise BusyError
    with ExitStack() as undo:
        access.runner.limiter.begin(access.owner)
        undo.callback(access.runner.limiter.end, access.owner)
        if opening is not None and is_missing:
            access.stores.sessions.create(
                session_id,
                access.owner,
                title=title_of(opening.text),
                compression_rate=access.settings.compression_rate,
                strategy="",
                client=opening.client,
                family=opening.family,
            )
        lease = access.stores.leases.acquire(session_id, wait_seconds=max(wait_seconds, AFTERMATH_SECONDS))
        undo.callback(access.stores.leases.release, lease)
        if opening is not None:
            undo.callback(access.stores.sessions.discard_empty, lease)
        yield lease
        undo.pop_all()


def _exists(access: SessionAccess, session_id: str) -> bool:
    """Whether the owner has this session."""
    try:
        access.own(session_id)
    except NotFoundError:
        return False
    return True


def check_unchanged(access: SessionAccess, session_id: str, decision: Decision | None) -> None:
    """Checks that no other turn or attempt began since a program's request was recognised.

    Raises:
        BusyError: One did, and the program doesn't know of it.
    """
    if decision is None or decision.turn == 0:
        return
    last = access.stores.turns.last(session_id)
    if last is None or (last.number, last.attempt) != (decision.turn, decision.attempt):
        raise BusyError
