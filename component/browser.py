"""Mounts `asset/browser.js`: page language, language cookie, copy buttons, the focus key."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from component import page_state
from component.word import Words

_SCRIPT = Path(__file__).parent / "asset" / "browser.js"
_KEEP = "keep_language"


def keep_language() -> None:
    """Widget callback: has the browser store the chosen language in its cookie."""
    st.session_state[_KEEP] = True
    for key in (page_state.STRATEGY, page_state.MODEL):
        # Without a new assignment the browser keeps showing the chosen option in the previous language.
        st.session_state[key] = st.session_state[key]


def draw(words: Words) -> None:
    """Mounts the script, an invisible component."""
    component = st.components.v2.component("turnfold_browser", js=_SCRIPT.read_text(encoding="utf-8"))
    component(
        key="browser",
        data={
            "language": words.language,
            "cookie": page_state.LANGUAGE_COOKIE if st.session_state.get(_KEEP) else "",
            "copied": words.copied,
            "copy_failed": words.copy_failed,
        },
    )
