"""Stores the history that a program brings along."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from graph.client import ClientMessage
from graph.core.client_turns import turns_of
from graph.core.image import data_urls, references_in
from graph.core.text import plain_text
from graph.error import InputError
from graph.service.access import SessionAccess
from graph.store.database import Lease
from graph.store.image import keep_images
from graph.store.imported_turn import insert_turns

_MOST_MESSAGES: Final = 2_000
_MOST_BYTES: Final = 8 * 2**20


def import_history(
    access: SessionAccess, lease: Lease, messages: Sequence[ClientMessage], *, client: str, model: str
) -> int:
    """Stores what was said elsewhere as turns behind the session's last one, in one transaction.

    They are searched, and folded by the ordinary schedule, like any other turns. What isn't valid in a conversation is
    mended (`core.client_turns`).

    Args:
        access: The owner's service.
        lease: The session's lease; none of its turns is open.
        messages: Oldest first, in any order of roles; `check_history` allows them.
        client: The program that brings them.
        model: What stands in their rows as the model; none of ours was asked.

    Returns:
        The number of the session's last turn.

    Raises:
        LeaseLostError: The lease was lost; nothing is written.
    """
    turns = turns_of(messages, id_prefix=f"imported-{uuid.uuid4().hex}")
    images = data_urls(plain_text(url) for message in messages for url in message.images)
    referred = references_in(message for turn in turns for message in turn)
    with access.stores.database.write(lease) as connection:
        session = access.own(lease.session_id)
        kept = {reference: url for reference, url in images.items() if reference in referred}
        keep_images(connection, session.session_id, kept, owner=access.owner)
        return insert_turns(
            connection,
            turns,
            session_id=session.session_id,
            owner=access.owner,
            turn_count=session.turn_count,
            client=client,
            model=model,
            now=access.clock(),
        )


def check_history(messages: Sequence[ClientMessage]) -> None:
    """Checks that a history can be imported, before a session is made for it.

    Raises:
        InputError: `too_long`: over 2,000 messages or 8 MB of text, images aside.
    """
    if len(messages) > _MOST_MESSAGES:
        raise InputError("too_long", f"{len(messages)} > {_MOST_MESSAGES}")
    size = sum(
        len(part.encode(errors="replace"))
        for message in messages
        for part in (message.text, *(call.arguments for call in message.calls))
    )
    if size > _MOST_BYTES:
        raise InputError("too_long", f"{size} > {_MOST_BYTES}")
