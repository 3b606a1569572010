"""Draws the left column, and the selection of several chats."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

import streamlit as st

from component import action, dialog, page_state, redraw, session_list, widget
from component.bridge import delivery
from component.format import escape_label, group_sessions, zone_of
from component.page_state import PageState
from component.setting import setting_dialog
from component.sidebar import listed_session, sign_in
from component.words.text import LANGUAGE_NAMES, LANGUAGES
from component.words.words import Words
from graph.value.view import SessionItem


def is_on() -> bool:
    return bool(st.session_state.get(page_state.SELECTING))


def _draw_bar(words: Words, items: Sequence[SessionItem]) -> None:
    ticked = [item.session_id for item in items if st.session_state.get(f"tick_{item.session_id}")]
    with st.container(horizontal=True, gap="xsmall", wrap=False, key="danger_selection"):
        label = words.sessions.delete_ticked.format(count=len(ticked)) if ticked else words.delete
        widget.draw_action(label, "delete_ticked", "", action.delete, ticked, type="primary", disabled=not ticked)
        st.button(words.cancel, key="cancel_selection", on_click=_switch, args=(False,))


def draw_undo(now: PageState) -> None:
    """Offers to bring back the chats deleted within the last seconds, also after a reload."""
    deleted, labels = now.service.sessions.just_deleted(), now.words.sessions
    if not deleted:
        return
    _end_undo(now, list(deleted))
    title = html.escape(next(iter(deleted.values()))) or now.words.untitled
    text = labels.deleted_one.format(title=title) if len(deleted) == 1 else labels.deleted.format(count=len(deleted))
    with st.container(horizontal_alignment="right", gap=None, key="deleted"):
        st.html(f'<p role="status">{text}</p>')
        widget.draw_action(now.words.undo, "undo_delete", "undo", action.undo_delete, list(deleted))


@delivery.fragment(run_every=1)
def _end_undo(now: PageState, drawn: Sequence[str]) -> None:
    # Separate from the button: a press in a fragment with a timer would count as an early one.
    with widget.error_box(now.words):
        if not dialog.is_open() and list(now.service.sessions.just_deleted()) != drawn:
            st.rerun()


@delivery.once
def _switch(is_on: bool) -> None:  # noqa: FBT001  # the argument of a widget callback
    st.session_state[page_state.SELECTING] = is_on


def draw(now: PageState) -> None:
    with st.sidebar:
        skips = {"field": now.words.skip_to_field, "panel": now.words.skip_to_panel}
        buttons = (f'<button type="button" data-skip="{to}">{label}</button>' for to, label in skips.items())
        st.html(f'<nav class="skip">{"".join(buttons)}</nav>')
        options = {"type": "secondary", "width": "stretch", "shortcut": "Ctrl+Shift+O"}
        widget.draw_action(now.words.new_chat, "new_chat", "edit_square", page_state.open_session, None, **options)
        _draw_sessions(now)
        with st.container(key="sidebar_end"):
            setting_dialog.draw_opener(now)
            _draw_foot(now)
            sign_in.draw_visitor(now)


@delivery.fragment(key=redraw.SESSIONS)
def _draw_sessions(now: PageState) -> None:
    words = now.words
    with st.container(horizontal=True, gap="xsmall", wrap=False, vertical_alignment="center", key="search_row"):
        widget.draw_search(words.search_chats, page_state.SEARCH, is_kept=True)
        widget.draw_action(words.sessions.select, "icon_select", "checklist", _switch, not is_on())
    is_other = page_state.session_id() != (now.session.session_id if now.session else None)
    if is_other or st.session_state.get(page_state.WANTED_TURN) is not None:
        st.rerun()
    with widget.error_box(words):
        _draw_list(now)
    with widget.error_box(words):
        draw_undo(now)


def _draw_item(now: PageState, item: SessionItem) -> None:
    if not is_on():
        listed_session.draw(now, item)
        return
    with st.container(horizontal=True, wrap=False, key=f"row_session_{item.session_id}"):
        st.checkbox(escape_label(item.title) or now.words.untitled, key=f"tick_{item.session_id}", width="stretch")


def _draw_list(now: PageState) -> None:
    words, search = now.words, session_list.search()
    items = session_list.read(now.service)
    session_list.note_drawn(items)
    if not items:
        widget.draw_note(words.no_match if search else words.no_chats)
        return
    if is_on():
        _draw_bar(words, items)
    with st.container(key="sessions", gap=None):
        for group, members in group_sessions(items, datetime.now(UTC), zone_of(now.time_zone)):
            widget.draw_note(words.days[group])
            for first, *branches in members:
                _draw_item(now, first)
                if branches:
                    with st.container(key=f"branches_{first.session_id}", gap=None):  # indented by the style sheet
                        for branch in branches:
                            _draw_item(now, branch)
    is_cut = len(items) >= session_list.shown_count()
    more_count = now.service.sessions.count(search=search) - len(items) if is_cut else 0
    if more_count > 0:
        label = words.more_chats.format(count=more_count)
        shown = session_list.shown_count() + session_list.SESSIONS_PER_PAGE
        widget.draw_more(label, "more_sessions", session_list.SHOWN, shown)


_THEME_ICONS: Final = {"light": "light_mode", "dark": "dark_mode", "system": "contrast"}


def _draw_foot(now: PageState) -> None:
    """Draws the row of language, theme and help, below the settings."""
    with st.container(key="foot", horizontal=True, gap="xsmall", wrap=False, vertical_alignment="center"):
        draw_choice = partial(st.segmented_control, required=True, label_visibility="collapsed")
        names, keep, key = LANGUAGE_NAMES, page_state.keep_language, page_state.LANGUAGE
        draw_choice(now.words.language_label, LANGUAGES, key=key, format_func=names.__getitem__, on_change=keep)
        themes = {theme: f":material/{icon}: {now.words.themes[theme]}" for theme, icon in _THEME_ICONS.items()}
        draw_choice(now.words.theme, page_state.THEMES, key=page_state.THEME, format_func=themes.__getitem__)
        widget.draw_action(now.words.shortcuts_label, "icon_help", "keyboard", dialog.request, action.HELP_DIALOG)
    dialog.draw(action.HELP_DIALOG, now.words.shortcuts_label, _draw_help, now.words)


def _draw_help(words: Words) -> None:
    rows = (words.shortcut_head, ("---", "---"), *((f"`{keys}`", what) for keys, what in words.shortcuts.items()))
    commands = ((f"`/{name}`", what) for name, what in words.commands.items())
    st.markdown("\n".join(f"| {left} | {right} |" for left, right in (*rows, *commands)))
