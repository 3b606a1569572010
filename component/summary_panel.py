"""Draws the active records and their statistics, in the right column or, on a narrow page, in a drawer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from component import (
    card,
    chart,
    cost_box,
    dialog,
    input_tab,
    open_form,
    page_state,
    panel_head,
    pin_list,
    project_choice,
    project_tab,
    redraw,
    savings_box,
    undo_line,
)
from component.delivery import delivered
from component.error_box import error_box
from component.format import format_count
from component.page_state import PageState
from component.word import Words
from graph.value.view import Statistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.elements.lib.mutable_tab_container import TabContainer

ROWS_AT_ONCE = 30
_WANTED = "wanted_card"


def draw_rail(now: PageState) -> None:
    """Draws the panel as the right column, which is always visible on a wide page."""
    with st.container(key="panel"):
        _draw(now, "rail")


def draw_drawer_button(now: PageState) -> None:
    """Draws the button that opens the panel as a drawer; the style sheet hides it on a wide page."""
    st.button(
        _drawer_label(now),
        key="open_panel",
        type="tertiary",
        icon=":material/dock_to_left:",
        on_click=dialog.request,
        args=(dialog.DRAWER,),
    )
    names, chosen = _tab_names(now), st.session_state.get("tabs_drawer")
    title = chosen if chosen in names else names[0]
    dialog.draw(dialog.DRAWER, title, _draw, now, "drawer", position="right", width=372)


def _drawer_label(now: PageState) -> str:
    """Returns how many summaries there are; before the first one, also in how many turns it comes."""
    words, identifier = now.words, now.session.session_id if now.session else None
    if identifier and (count := now.service.folds.statistics(identifier).record_count):
        return words.open_panel.format(count=count)
    left = now.service.folds.next_fold(identifier, strategy=st.session_state[page_state.STRATEGY]).turns_left
    if left == 1:
        return words.open_panel_next
    return words.open_panel_first.format(count=left) if left else words.open_panel.format(count=0)


def want_card(record_id: str) -> None:
    """Has the next drawing of the page open the card of this record in the right column, as a widget callback."""
    st.session_state[_WANTED] = record_id


@st.fragment(key=redraw.PANEL)
@delivered
def _draw(page: PageState, place: str) -> None:
    with error_box(page.words):
        _draw_tabs(page_state.look_again(page), place)


def _draw_tabs(now: PageState, place: str) -> None:
    if place == "rail" and now.session is not None and _WANTED in st.session_state:
        with error_box(now.words):
            _open_card(now, place, now.session.session_id, st.session_state.pop(_WANTED))
    history, statistics, sent, *projects = st.tabs(_tab_names(now), key=f"tabs_{place}", on_change="rerun")
    if now.session is not None:
        identifier, strategy = now.session.session_id, st.session_state[page_state.STRATEGY]
        records = now.service.folds.records(identifier, last=redraw.CARDS_AT_ONCE)
        following = now.service.folds.next_fold(identifier, strategy=strategy)
        redraw.note_pins(now.service.folds.pins(identifier))
        answered = now.session.turn_count - now.session.is_running
        redraw.note_panel(records, following, now.session, answered=None if history.open else answered)
    if history.open:
        with history, error_box(now.words):
            _draw_history(now, place)
    if statistics.open:
        with statistics, error_box(now.words):
            _draw_statistics(now, place)
    if sent.open:
        with sent, error_box(now.words):
            input_tab.draw(now, place)
    _draw_project(now, place, projects)


def _tab_names(now: PageState) -> list[str]:
    names = [now.words.tab_summaries, now.words.tab_statistics, now.words.input.tab]
    return [*names, now.words.project.tab] if project_choice.is_on(now.service) else names


def _draw_project(now: PageState, place: str, tabs: Sequence[TabContainer]) -> None:
    """Draws the project, if the page has the tab and it is open."""
    if not any(tab.open for tab in tabs):
        open_form.leave(place)
        redraw.note_project(place, None)
    for tab in tabs:
        if tab.open:
            with tab, error_box(now.words):
                project_tab.draw(now, place)


def _draw_history(now: PageState, place: str) -> None:
    st.subheader(now.words.history, anchor=False)
    identifier = now.session.session_id if now.session else ""
    records = now.service.folds.records(identifier, last=redraw.CARDS_AT_ONCE) if identifier else ()
    if place == "drawer":  # it hides the message field's line
        with st.container():
            undo_line.draw(now, place)
    panel_head.draw(now, place, has_records=bool(records))
    with st.container():
        if identifier:
            pin_list.draw(now, now.service.folds.pins(identifier), place)
    if not records:
        return
    for record in reversed(records):
        card.draw(now, record, place)
    older_count = now.service.folds.statistics(identifier).record_count - len(records)
    if older_count > 0:
        _draw_older(now, place, identifier, older_count)
    if any(record.kind == "compaction" for record in records):
        _draw_earlier_compactions(now, identifier, place)


def _draw_older(now: PageState, place: str, identifier: str, count: int) -> None:
    """Draws the box of older records, read when it is opened: one line each, newest first."""
    words = now.words
    label = words.older_records.format(count=count)
    box = st.expander(label, key=f"older_{place}", icon=":material/history:", type="compact", on_change="rerun")
    if not box.open:
        return
    shown_key = f"older_shown_{place}"
    shown = min(count, st.session_state.get(shown_key, ROWS_AT_ONCE))
    with box:
        records = now.service.folds.records(identifier, last=redraw.CARDS_AT_ONCE + shown)
        for record in reversed(records[: -redraw.CARDS_AT_ONCE]):
            card.draw_row(now, record, place)
        if shown < count:
            st.button(
                words.more_records.format(count=min(ROWS_AT_ONCE, count - shown)),
                key=f"more_records_{place}",
                type="tertiary",
                icon=":material/expand_more:",
                on_click=_show_older,
                args=(shown_key, shown + ROWS_AT_ONCE),
            )


def _open_card(now: PageState, place: str, identifier: str, record_id: str) -> None:
    """Opens the tab, the box and the line that hide this record's card."""
    newest_first = [record.id for record in reversed(now.service.folds.records(identifier))]
    if record_id not in newest_first:
        return
    st.session_state[f"tabs_{place}"] = now.words.tab_summaries
    older = newest_first.index(record_id) - redraw.CARDS_AT_ONCE
    if older >= 0:
        st.session_state[f"older_{place}"] = st.session_state[f"older_{place}_{record_id}"] = True
        shown_key = f"older_shown_{place}"
        st.session_state[shown_key] = max(older + 1, st.session_state.get(shown_key, ROWS_AT_ONCE))


def _show_older(key: str, shown: int) -> None:
    st.session_state[key] = shown


def _draw_earlier_compactions(now: PageState, identifier: str, place: str) -> None:
    """Draws the compactions that the newest one replaced; restoring one undoes every later one."""
    earlier = now.service.folds.compactions(identifier)[1:]
    if not earlier:
        return
    label = now.words.earlier_compactions.format(count=len(earlier))
    box = st.expander(label, key=f"compactions_{place}", icon=":material/compress:", type="compact", on_change="rerun")
    if box.open:
        with box:
            for record in earlier:
                card.draw(now, record, place, is_active=False)


def _draw_statistics(now: PageState, place: str) -> None:
    words = now.words
    st.subheader(words.statistics, anchor=False)
    if now.session is None:
        st.markdown(f":small[:gray[{words.no_records}]]")
        return
    identifier = now.session.session_id
    sums = now.service.folds.statistics(identifier)
    if not sums.record_count:
        st.markdown(f":small[:gray[{words.stat_nothing}]]")
    else:
        _draw_lengths(words, sums)
    has_savings = bool(sums.record_count or sums.unsent_tokens or sums.fold_tokens)
    if has_savings:
        savings_box.draw(words, now.service.folds.savings(identifier))
    cost_box.draw(now, identifier)
    if has_savings:
        st.subheader(words.chart_title, anchor=False)
        chart.draw(words, now.service.folds.chart(identifier), key=f"chart_{place}")


def _draw_lengths(words: Words, sums: Statistics) -> None:
    with st.container(border=True, gap="xsmall"):
        st.markdown(words.stat_count.format(count=sums.record_count, turns=sums.folded_turn_count))
        original, summary = format_count(sums.original_chars), format_count(sums.summary_chars)
        st.markdown(words.stat_chars.format(original=original, summary=summary))
        template = words.stat_saved if sums.saved_percent >= 0 else words.stat_grown
        length_percent = 100 - sums.saved_percent
        st.markdown(template.format(percent=abs(sums.saved_percent), length_percent=length_percent))
