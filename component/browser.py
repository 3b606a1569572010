"""Mounts the page's own scripts: language, copying, following the chat's end, focus and drafts of the message field."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from component import page_state
from component.page_state import PageState

_ASSETS = Path(__file__).parent / "asset"
# One module in three files: the last one exports what Streamlit calls.
_SCRIPTS = ("scroll.js", "field.js", "browser.js")
_KEEP = "keep_language"


def keep_language() -> None:
    """Widget callback: has the browser store the chosen language in its cookie."""
    st.session_state[_KEEP] = True
    for key in (page_state.STRATEGY, page_state.MODEL):
        # Without a new assignment the browser keeps showing the chosen option in the previous language.
        st.session_state[key] = st.session_state[key]


def draw(now: PageState) -> None:
    """Mounts the scripts, an invisible component."""
    component = st.components.v2.component("turnfold_browser", js=_script())
    component(
        key="browser",
        data={
            "language": now.words.language,
            "session": now.session.session_id if now.session else "",
            "cookie": page_state.LANGUAGE_COOKIE if st.session_state.get(_KEEP) else "",
            "copied": now.words.copied,
            "copy_failed": now.words.copy_failed,
        },
    )


@cache
def _script() -> str:
    return "\n".join((_ASSETS / name).read_text(encoding="utf-8") for name in _SCRIPTS)
