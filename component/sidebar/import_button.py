"""Draws the button to import chats from a file, which the page's script reads (`asset/open_file.js`)."""

from __future__ import annotations

import streamlit as st

from component import action, page_state, redraw
from component.bridge import delivery
from component.words.en import Words
from component.words.wording import words_of
from graph.value.error import InputError


def draw(words: Words) -> None:
    st.html(f'<button type="button" class="open-file">{words.sessions.open_file}</button>', width="content")


@delivery.once
def take(sent: object) -> None:
    """Widget callback: imports the chats of a file and opens the first.

    Args:
        sent: The file's text from the script; None for a file too large to send.
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
