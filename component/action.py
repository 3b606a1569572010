"""Widget callbacks: what a click or a sent message does."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import streamlit as st

from component import compacting, delivery, dialog, page_state, redraw, service_provider
from component.wording import words_of
from graph.error import TurnfoldError

RESET_DIALOG = "reset"


def send_typed() -> None:
    """Sends what was typed before the page's script was there; a refused message goes back into its field."""
    text = st.session_state[page_state.ASK]
    if not text or delivery.is_early():
        return
    if _send_here(text):
        redraw.changed()
    else:
        st.session_state[page_state.ASK] = text


def take(text: str, identifier: str, *, message_id: str) -> str | None:
    """Sends a message to a session, or runs the command that it is in the open one.

    Returns:
        The id of the session, "" for a command without one; None if it was refused.
    """
    command = service_provider.opened().folds.command_of(text)
    if command is None:
        options = page_state.options()
        is_sent = _try(
            lambda: service_provider.current().turns.send(identifier, text, message_id=message_id, options=options)
        )
        return identifier if is_sent else None
    opened, words = page_state.session_id(), words_of(st.session_state[page_state.LANGUAGE])
    if opened is None:
        page_state.tell_in_passing(words.command_needs_chat)
        return ""
    if identifier != opened:
        return None
    redraw.need_page()
    if command == "compact":
        compacting.start(identifier)
    else:
        dialog.request(RESET_DIALOG)
    return identifier


def reset(identifier: str) -> None:
    """Empties the context, as its dialog was told to."""
    dialog.close()
    _try(lambda: service_provider.current().folds.reset(identifier))


def undo_reset(identifier: str) -> None:
    """Brings the context back to what it was before the last reset."""
    _try(lambda: service_provider.current().folds.undo_reset(identifier))
    redraw.page()


def restore(identifier: str, record_id: str) -> None:
    """Undoes a compaction."""
    _try(lambda: service_provider.current().folds.restore(identifier, record_id))
    redraw.page()


def send(text: str) -> None:
    """Sends a message to the open session or to a new one."""
    _send_here(text)


def _send_here(text: str) -> bool:
    """Sends a message or a command to the open session, or to a new one, which it opens; returns whether it could."""
    opened = page_state.session_id()
    identifier = opened or service_provider.opened().sessions.new_id()
    taken_by = take(text, identifier, message_id=f"user-{uuid4().hex}")
    if taken_by and opened is None:
        page_state.open_session(identifier)
    return taken_by is not None


def stop(identifier: str) -> None:
    """Asks the running turn of a session to stop."""
    _try(lambda: service_provider.current().turns.stop(identifier))


def retry(identifier: str) -> None:
    """Tries a failed or stopped last turn again."""
    _try(lambda: service_provider.current().turns.retry(identifier, options=page_state.options()))
    redraw.changed()


def regenerate(identifier: str) -> None:
    """Requests another answer to the last message."""
    _try(lambda: service_provider.current().turns.regenerate(identifier, options=page_state.options()))
    redraw.changed()


def open_example() -> None:
    """Opens the example chat in the page's language; it is made if there is none."""
    _try(
        lambda: page_state.open_session(
            service_provider.current().sessions.open_example(st.session_state[page_state.LANGUAGE])
        )
    )


def rename(identifier: str) -> None:
    """Gives a session the title typed in its dialog; the dialog stays open for another one if there is none."""
    title = str(st.session_state[page_state.NEW_TITLE]).strip()
    if not title:
        return
    dialog.close()
    _try(lambda: service_provider.current().sessions.rename(identifier, title))


def delete(identifier: str) -> None:
    """Deletes a session, as its dialog was told to; if it was open, opens the empty page."""
    dialog.close()
    if _try(lambda: service_provider.current().sessions.delete(identifier)) and identifier == page_state.session_id():
        page_state.open_session(None)


def _try(action: Callable[[], object]) -> bool:
    if delivery.is_early():
        return False
    try:
        action()
    except TurnfoldError as error:
        page_state.set_notice(error)
        return False
    page_state.set_notice(None)
    return True
