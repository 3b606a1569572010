"""Mounts the page's own scripts: language, theme, copying, scrolling, jumps, focus and drafts."""

from __future__ import annotations

from dataclasses import asdict

import streamlit as st

from component import attaching, page_state, redraw, widget
from component.bridge import delivery
from component.bridge.delivery import delivered
from component.chat import composer
from component.page_state import PageState
from component.panel import summary_panel
from component.sidebar import setting_box
from graph.attachment import MAX_BYTES, REFUSED_KINDS

# Joined to one module; the last file exports the functions called by Streamlit.
_SCRIPTS = (
    "scroll.js",
    "jump.js",
    "find.js",
    "keys.js",
    "edit.js",
    "field.js",
    "slash.js",
    "attach.js",
    "connection.js",
    "open_file.js",
    "outbox.js",
    "pending.js",
    "queue.js",
    "theme.js",
    "toggle.js",
    "panel.js",
    "visitor.js",
    "browser.js",
)
_KEY = "browser"


@st.fragment
@delivered
def draw(now: PageState) -> None:
    """Mounts the scripts as invisible components; their requests are handled without drawing the rest of the page.

    Of two requests by one component in the same run Streamlit drops the first: automatic redraw requests have a
    separate component.
    """
    delivery.note_automatic()
    with st.container(gap=None):
        _mount(now)
        changed = st.components.v2.component("turnfold_redraw", js=widget.read_assets("redraw.js"))
        changed(key="redraw", on_changed_change=redraw.changed_as_asked)


def _mount(now: PageState) -> None:
    turn, landing = page_state.landing()
    component = st.components.v2.component("turnfold_browser", js=script())
    component(
        key=_KEY,
        data={
            "language": now.words.language,
            "session": now.session.session_id if now.session else "",
            "opened": page_state.opened_count(),
            "visitor": now.visitor.owner if now.visitor else "",
            "cookie": page_state.LANGUAGE_COOKIE if st.session_state.get(page_state.KEEP_LANGUAGE) else "",
            "turn": turn,
            "landing": landing,
            "theme": st.session_state[page_state.THEME],
            "theme_cookie": page_state.THEME_COOKIE,
            "copied": now.words.copied,
            "queue": asdict(now.words.queue),
            "drop": now.words.attachment.drop,
            "refused_kinds": dict(REFUSED_KINDS),
            "file_bytes": MAX_BYTES,
            "copy_code": now.words.copy_code,
            "copy_failed": now.words.copy_failed,
            "footnotes": now.words.footnotes,
            "panel": now.words.panel,
            "panel_cookie": page_state.PANEL_COOKIE,
            "skip": now.words.skip_to_chat,
        },
        on_sent_change=_take_sent,
        on_taken_back_change=_take_back,
        on_refused_files_change=_refuse_files,
        on_turns_change=_show_turns,
        on_record_change=_show_record,
        on_file_change=_take_file,
    )


def _take_sent() -> None:
    composer.take_sent(st.session_state[_KEY]["sent"])


def _take_back() -> None:
    attaching.take_back(f"user-{st.session_state[_KEY]['taken_back']}")
    redraw.changed_as_asked()


def _refuse_files() -> None:
    attaching.refuse(st.session_state[_KEY]["refused_files"])
    redraw.changed_as_asked()


def _take_file() -> None:
    setting_box.take_file(st.session_state[_KEY]["file"])


def _show_turns() -> None:
    page_state.show_turns(int(st.session_state[_KEY]["turns"]))
    redraw.page()


def _show_record() -> None:
    summary_panel.want_card(str(st.session_state[_KEY]["record"]))
    redraw.alone_as_asked(redraw.PANEL)


def script() -> str:
    return widget.read_assets(*_SCRIPTS)
