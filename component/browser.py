"""Mounts the page's own scripts: language, theme, copying, scrolling, jumps, focus and drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from component import attaching, page_state, redraw, widget
from component.bridge import delivery
from component.bridge.delivery import delivered
from component.chat import composer
from component.page_state import PageState
from component.panel import summary_panel
from component.sidebar import setting_box
from graph.attachment import MAX_BYTES, REFUSED_KINDS

# Joined to one module. Listeners hear in this order: of a command that is begun, Enter is for the list, not the field.
_SCRIPTS = (
    "browser.js",
    "toggle.js",
    "panel.js",
    "scroll.js",
    "jump.js",
    "slash.js",
    "field.js",
    "edit.js",
    "find.js",
    "keys.js",
    "attach.js",
    "connection.js",
    "outbox.js",
    "pending.js",
    "queue.js",
    "open_file.js",
    "theme.js",
    "visitor.js",
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
            "queue": now.words.queue.texts(),
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
        on_sent_change=_hearing("sent", composer.take_sent),
        on_taken_back_change=_hearing("taken_back", _take_back),
        on_refused_files_change=_hearing("refused_files", _refuse_files),
        on_turns_change=_hearing("turns", _show_turns),
        on_record_change=_hearing("record", _show_record),
        on_file_change=_hearing("file", setting_box.take_file),
    )


def _hearing(name: str, take: Callable[[Any], None]) -> Callable[[], None]:
    return lambda: take(st.session_state[_KEY][name])


def _take_back(message_id: str) -> None:
    attaching.take_back(f"user-{message_id}")
    redraw.changed_as_asked()


def _refuse_files(told: object) -> None:
    attaching.refuse(told)
    redraw.changed_as_asked()


def _show_turns(count: float) -> None:
    page_state.show_turns(int(count))
    redraw.page()


def _show_record(record_id: str) -> None:
    summary_panel.want_card(record_id)
    redraw.alone_as_asked(redraw.PANEL)


def script() -> str:
    return widget.read_assets(*_SCRIPTS)
