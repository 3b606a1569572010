"""What only the browser itself can do: page language, the kept choice of language, copying, the focus key."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from component import page_state
from component.word import Words

_SCRIPT = Path(__file__).parent / "asset" / "browser.js"
_KEEP = "keep_language"


def keep_language() -> None:
    """Marks the chosen language to be kept in the browser, as a widget callback."""
    st.session_state[_KEEP] = True
    for key in (page_state.STRATEGY, page_state.MODEL):
        # Set anew, or the browser goes on showing the chosen option in the words of the other language.
        st.session_state[key] = st.session_state[key]


def draw(words: Words) -> None:
    """Mounts the page's own script, which shows nothing."""
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
