"""The user's own instructions in the settings, for all chats and for the open one; kept as they are typed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import streamlit as st

from component import page_state, widget
from component.format import format_count
from component.page_state import PageState
from graph.value.error import TurnfoldError

_READ: Final = "read_instructions"


def draw(now: PageState) -> None:
    words, own, state = now.words, now.service.instructions, st.session_state
    with widget.error_box(words):
        key: str = page_state.NEW_INSTRUCTIONS
        keep: Callable[[str], object] = own.checked
        kept: str = state.get(key, "")  # the first message takes it along from here
        if now.session is not None:
            identifier = now.session.session_id
            key, keep = f"instructions_{identifier}", partial(own.keep_of_session, identifier)
            kept = own.of_session(identifier)
        of_all = "instructions_all", own.for_all(), own.keep_for_all, words.instructions_all, words.instructions_help
        of_chat = key, kept, keep, words.instructions_chat, None
        state[_READ] = {text[0]: _draw_text(now, *text) for text in (of_all, of_chat)}


def _draw_text(
    now: PageState, key: str, kept: str, keep: Callable[[str], object], label: str, about: str | None
) -> str:
    """Keeps what was typed, here and not in a callback: an interrupted run may skip that. Returns what was kept."""
    own, state, error = now.service.instructions, st.session_state, None
    typed, read = state.setdefault(key, kept), state.get(_READ, {}).get(key, kept)
    if typed not in {read, kept}:
        try:
            keep(typed)
        except TurnfoldError as refusal:
            error = refusal
        else:
            kept = own.checked(typed)
            page_state.queue_toast(now.words.instructions_saved)
    # What another tab has saved is shown. An assignment without need would take away what the browser has and hasn't
    # sent.
    if error is None and typed != kept:
        state[key] = kept
    st.text_area(label, key=key, height=96, help=about)
    if tokens := own.tokens(kept):
        widget.draw_note(now.words.steering.pin_tokens.format(tokens=format_count(tokens)))
    widget.show_error(now.words, error)
    return read if error else kept
