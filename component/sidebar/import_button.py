"""Draws the button that takes chats in from a file; the page's script reads the file (`asset/open_file.js`)."""

from __future__ import annotations

import streamlit as st

from component import action, page_state, redraw
from component.bridge import delivery
from component.words.en import Words
from component.words.wording import words_of
from graph.value.error import InputError


def draw(words: Words) -> None:
    """Draws the button."""
    st.html(f'<button type="button" class="open-file">{words.sessions.open_file}</button>', width="content")


@delivery.once
def take(sent: object) -> None:
    """Widget callback: takes in the chats of a file and opens the first of them.

    Args:
        sent: What the script sent: the file's text, None for one that is too large to be sent.
    """
    match sent:
        case {"text": str(text)}:
            count = action.import_sessions(text)
            if count:
                said = words_of(st.session_state[page_state.LANGUAGE]).sessions
                page_state.tell_in_passing(said.opened.format(count=count))
        case {"text": None, "size": int(size)}:
            page_state.set_notice(InputError("import_too_large", f"{size:,}"))
    redraw.page()
