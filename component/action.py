"""Widget callbacks: what a click or a sent message does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal
from uuid import uuid4

import streamlit as st

from component import compacting, dialog, page_state, redraw, service_provider
from component.wording import words_of
from graph.error import TurnfoldError

RESET_DIALOG = "reset"


def send_typed() -> None:
    """Sends the typed message or runs the typed command; a refused message goes back into its field."""
    text = st.session_state[page_state.ASK]
    command = service_provider.current().folds.command_of(text) if text else None
    if command is not None:
        _run_command(command)
        redraw.page()
    elif text and _send(text):
        redraw.changed()
    elif text:
        st.session_state[page_state.ASK] = text


def _run_command(command: Literal["compact", "reset"]) -> None:
    identifier, words = page_state.session_id(), words_of(st.session_state[page_state.LANGUAGE])
    if identifier is None:
        page_state.tell_in_passing(words.command_needs_chat)
    elif command == "compact":
        compacting.start(identifier)
    else:
        dialog.request(RESET_DIALOG)


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
    _send(text)


def _send(text: str) -> bool:
    """Sends a message; returns whether it was accepted."""
    service = service_provider.current()
    identifier = page_state.session_id() or service.sessions.new_id()
    message_id = f"user-{uuid4().hex}"
    is_sent = _try(lambda: service.turns.send(identifier, text, message_id=message_id, options=page_state.options()))
    if is_sent and identifier != page_state.session_id():
        page_state.open_session(identifier)
    return is_sent


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
    try:
        action()
    except TurnfoldError as error:
        page_state.set_notice(error)
        return False
    page_state.set_notice(None)
    return True
