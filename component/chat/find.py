"""Find in this chat: a field, and below it the chat's questions, or the turns that have the words typed.

The page's script steps through the list, has turns drawn that aren't, and marks the words (`asset/find.js`).
"""

from __future__ import annotations

import html
import json

import streamlit as st

from component import page_state, redraw, widget
from component.bridge import delivery
from component.format import zone_of
from component.page_state import PageState
from component.words.wording import day_line
from graph.value.view import Outline


@delivery.fragment(key=redraw.FIND)
def draw(page: PageState) -> None:
    if page.session is None or not page.session.turn_count:
        return
    with st.container(horizontal=True, wrap=False, gap="xsmall", vertical_alignment="center", key="find_place"):
        is_open = page_state.is_finding()
        if is_open:
            with st.container(key="find"), widget.error_box(page.words):
                sessions, identifier = page.service.sessions, page.session.session_id
                search = widget.draw_search(page.words.find, page_state.FIND)
                redraw.note(redraw.FIND, redraw.places_of(sessions.get(identifier)))
                st.html(_list(page, search, sessions.outline(identifier, search=search)))
        label, icon = (page.words.find_close, "close") if is_open else (page.words.find, "manage_search")
        widget.draw_action(label, "icon_find", icon, _switch)


@delivery.once
def _switch() -> None:
    page_state.find(None if page_state.is_finding() else "")


def _list(page: PageState, search: str, outline: Outline) -> str:
    words, zone = page.words, zone_of(page.time_zone)
    marks = html.escape(json.dumps(outline.marks, ensure_ascii=False))
    steps = widget.icon_button("step", "keyboard_arrow_up", words.find_previous, **{"data-step": "-1"})
    steps += widget.icon_button("step", "keyboard_arrow_down", words.find_next, **{"data-step": "1"})
    before = (None, *(place.started_at for place in outline.places))
    places = "".join(
        f"<li>{day_line(words, place.started_at, last, zone)}"
        f'<button type="button" class="place" data-turn="{place.turn}" data-hits="{place.hits}">'
        f"<b>{place.turn}</b> <span>{html.escape(place.text)}</span></button></li>"
        for place, last in zip(outline.places, before, strict=False)
    )
    none = "" if outline.places else f"<li>{words.no_match}</li>"
    return (
        f'<div class="places" data-search="{html.escape(search)}" data-marks="{marks}">'
        f'<span class="at" role="status"></span>{steps}<ol>{places}{none}</ol></div>'
    )
