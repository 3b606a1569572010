"""Draws a button that copies a text; the page's script does the copying (`asset/browser.js`)."""

from __future__ import annotations

import html

import streamlit as st


def draw(label: str, text: str) -> None:
    """Draws the button, which shows no words: its label is a hint."""
    st.html(markup(label, text), width="content")


def markup(label: str, text: str) -> str:
    """Returns the button."""
    return (
        f'<button type="button" class="copy" title="{label}" aria-label="{label}" '
        f'data-copy="{html.escape(text)}"></button>'
    )
