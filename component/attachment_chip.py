"""Draws a file of a message that was sent: its name, and its text once it is opened."""

from __future__ import annotations

from typing import Final

import streamlit as st

from component.attaching import chip_label
from component.delivery import delivered
from component.format import format_count
from component.word import Words
from graph.attachment import Attachment

_SHOWN_CHARS: Final = 20_000


@st.fragment
@delivered
def draw(words: Words, attachment: Attachment, key: str) -> None:
    """Draws the file as a closed box; its text is sent to the browser when it is opened."""
    box = st.expander(
        chip_label(words, attachment),
        key=f"attachment_{key}",
        icon=":material/attach_file:",
        type="compact",
        on_change="rerun",
    )
    if not box.open:
        return
    with box:
        st.code(attachment.text[:_SHOWN_CHARS], language=None, wrap_lines=True)
        if len(attachment.text) > _SHOWN_CHARS:
            note = words.attachment.cut.format(chars=format_count(len(attachment.text)))
            st.markdown(f":small[:gray[{note}]]")
