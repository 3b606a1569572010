"""The dialogs on one summary: edit it, make it anew, compare its versions."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from component import dialog, record_action, version_view
from component.error_box import tell
from component.format import format_turns
from component.page_state import PageState
from component.record_action import EDIT, REMAKE, VERSIONS, Target

_WISH_CHARS = 300
_SUMMARY_PIXELS = 320


def draw(now: PageState) -> None:
    """Draws the dialog that is open, if one of these is."""
    about, said = record_action.target(), now.words.steering
    if now.session is None or about is None or about.session_id != now.session.session_id:
        return
    dialog.draw(EDIT, said.edit_title, _draw_edit, now, about, width=620)
    dialog.draw(REMAKE, said.remake_title, _draw_remake, now, about)
    dialog.draw(VERSIONS, said.versions_title, _draw_versions, now, about, width=860)


def _draw_edit(now: PageState, about: Target) -> None:
    said, record = now.words.steering, about.record
    with st.form("edit_record", border=False):
        label = said.summary.format(turns=format_turns(record.turns))
        st.text_area(label, value=record.summary, key=about.key("text"), height=_SUMMARY_PIXELS)
        _end_form(now, about, now.words.save, record_action.edit)
    _leave_closed()


def _draw_remake(now: PageState, about: Target) -> None:
    said, record = now.words.steering, about.record
    with st.form("remake_record", border=False):
        st.slider(
            now.words.rate,
            min_value=0.1,
            max_value=0.5,
            value=min(0.5, max(0.1, record.compression_rate)),
            step=0.05,
            key=about.key("rate"),
            help=now.words.rate_help,
        )
        wish = record_action.wish_of(record)
        st.text_input(said.wish, value=wish, key=about.key("wish"), max_chars=_WISH_CHARS, placeholder=said.wish_hint)
        _end_form(now, about, said.make, record_action.remake)
    _leave_closed()


def _draw_versions(now: PageState, about: Target) -> None:
    said = now.words.steering
    versions = {version.id: version for version in now.service.folds.versions(about.session_id, about.record.id)}
    in_use = versions.pop(about.record.id, about.record)
    if not versions:
        version_view.draw_only(now.words, in_use)
        st.button(said.close, key="dialog_cancel", on_click=dialog.close)
    else:
        names = list(versions)
        chosen = st.selectbox(
            said.other_version,
            names,
            index=len(names) - 1,
            format_func=lambda name: version_view.name_of(now.words, versions[name]),
            key=about.key("version"),
        )
        version_view.draw(now.words, versions[chosen], in_use)
        _tell_refusal(now)
        with st.container(horizontal=True, key="dialog_choice"):
            use, version = record_action.use_version, versions[chosen]
            st.button(said.use, key="dialog_confirm", type="primary", on_click=use, args=(about, version))
            st.button(said.close, key="dialog_cancel", on_click=dialog.close)
    _leave_closed()


def _end_form(now: PageState, about: Target, label: str, save: Callable[[Target], None]) -> None:
    st.markdown(f":small[:gray[{now.words.steering.from_next_turn}]]")
    _tell_refusal(now)
    # Enter presses a form's first button; the style sheet shows the two in reverse.
    with st.container(horizontal=True, key="dialog_choice"):
        st.form_submit_button(label, key="dialog_confirm", type="primary", on_click=save, args=(about,))
        st.form_submit_button(now.words.cancel, key="dialog_cancel", on_click=dialog.close)


def _tell_refusal(now: PageState) -> None:
    error = record_action.refusal()
    if error is not None:
        tell(now.words, error)


def _leave_closed() -> None:
    if not dialog.is_open():
        st.rerun()
