"""Mounts the page's own scripts: language, theme, copying, scrolling, jumps, focus and drafts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from component import attaching, page_state, redraw, turn_buttons, widget
from component.bridge import delivery
from component.chat import composer
from component.page_state import PageState
from component.panel import record_dialog, summary_panel
from component.setting import setting_dialog
from graph.attachment import MAX_BYTES, REFUSED_KINDS

# Joined to one module. Listeners hear in this order: of a command that is begun, Enter is for the list, not the field.
_SCRIPTS = (
    "browser.js",
    "panel.js",
    "scroll.js",
    "jump.js",
    "slash.js",
    "field.js",
    "find.js",
    "answer.js",
    "keys.js",
    "attach.js",
    "outbox.js",
    "pending.js",
    "queue.js",
    "theme.js",
    "visitor.js",
)
_KEY = "browser"
PRESSES: Final[turn_buttons.Acts] = {"add_fact": record_dialog.add_fact, "strike": summary_panel.strike}


def draw(now: PageState) -> None:
    """Mounts the scripts as an invisible component, and one that makes their requests."""
    _draw_requests()
    turn, landing = page_state.landing()
    component = st.components.v2.component("turnfold_browser", js=script())
    component(
        key="scripts",
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
            "code": now.words.code.texts(),
            "names": dict(now.words.streamlit_names),
            "copy_failed": now.words.copy_failed,
            "footnotes": now.words.footnotes,
            "panel": now.words.panel,
            "panel_cookie": page_state.PANEL_COOKIE,
            "panel_edge": now.words.panel_edge,
            "panel_width_cookie": page_state.PANEL_WIDTH_COOKIE,
            "skip": now.words.skip_to_chat,
        },
    )


@delivery.fragment()
def _draw_requests() -> None:
    """Hears the scripts' requests without drawing the rest of the page; each has this component sent again."""
    component = st.components.v2.component("turnfold_requests", js=widget.read_assets("request.js"))
    component(
        key=_KEY,
        on_sent_change=_hearing("sent", take_sent),
        on_taken_back_change=_hearing("taken_back", composer.take_back),
        on_refused_files_change=_hearing("refused_files", attaching.refuse),
        on_turns_change=_hearing("turns", _show_turns),
        on_record_change=_hearing("record", summary_panel.show_card),
        on_file_change=_hearing("file", setting_dialog.take_file),
    )


def _hearing(name: str, take: Callable[[Any], None]) -> Callable[[], None]:
    return lambda: take(st.session_state[_KEY][name])


def take_sent(sent: Mapping[str, Any]) -> None:
    if sent["messages"]:
        composer.take_sent(sent["messages"])
    if sent["presses"]:
        turn_buttons.press(sent["presses"], PRESSES)


def _show_turns(count: float) -> None:
    page_state.show_turns(int(count))
    redraw.page()


def script() -> str:
    return widget.read_assets(*_SCRIPTS)
