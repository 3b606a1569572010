"""Draws the marks of programs: which one began a chat, and which one asked a question."""

from __future__ import annotations

import streamlit as st

from component.format import escape_label
from component.word import Words

_ICON = ":material/terminal:"


def draw(words: Words, name: str) -> None:
    """Draws the name of a program in a small line."""
    label = words.program.format(name=escape_label(name))
    st.markdown(f"{_ICON} :small[:gray[{label}]]")


def draw_begun(words: Words, name: str) -> None:
    """Draws the line above a chat that a program began."""
    label = words.begun_by_program.format(name=escape_label(name))
    st.markdown(f"{_ICON} :small[:gray[{label}]]", text_alignment="center")
