"""Draws the active records and their statistics, in the right column or, on a narrow page, in a drawer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from component import card, chart, dialog, page_state
from component.error_box import error_box
from component.format import format_rate
from component.page_state import PageState
from graph.record import Record

CARDS_AT_ONCE = 3


def draw_rail(now: PageState) -> None:
    """Draws the panel as the right column, which is always visible on a wide page."""
    with st.container(key="panel"):
        _draw(now, "rail")


def draw_drawer_button(now: PageState) -> None:
    """Draws the button that opens the panel as a drawer; the style sheet hides it on a wide page."""
    count = now.service.folds.statistics(now.session.session_id).record_count if now.session else 0
    st.button(
        now.words.open_panel.format(count=count),
        key="open_panel",
        type="tertiary",
        icon=":material/dock_to_left:",
        on_click=dialog.request,
        args=("panel",),
    )
    dialog.draw("panel", now.words.panel_title, _draw, now, "drawer", position="right", width=372)


@st.fragment
def _draw(now: PageState, place: str) -> None:
    names = (now.words.tab_summaries, now.words.tab_statistics)
    history, statistics = st.tabs(names, key=f"tabs_{place}", on_change="rerun")
    if history.open:
        with history, error_box(now.words):
            _draw_history(now, place)
    if statistics.open:
        with statistics, error_box(now.words):
            _draw_statistics(now, place)


def _draw_history(now: PageState, place: str) -> None:
    words = now.words
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="xsmall"):
        st.subheader(words.history, anchor=False, width="content")
        rate = format_rate(st.session_state[page_state.RATE])
        st.markdown(f":small[:gray[{words.current_rate.format(rate=rate)}]]", width="content")
    identifier = now.session.session_id if now.session else ""
    records = now.service.folds.records(identifier, last=CARDS_AT_ONCE) if identifier else ()
    if not records:
        st.markdown(f":small[:gray[{words.no_records}]]")
        return
    older_count = now.service.folds.statistics(identifier).record_count - len(records)
    if older_count > 0:
        _draw_collapsed(
            now,
            place,
            words.older_records.format(count=older_count),
            key=f"older_{place}",
            icon=":material/history:",
            read=lambda: now.service.folds.records(identifier)[:-CARDS_AT_ONCE],
        )
    for record in records:
        card.draw(now, record, place)
    if any(record.kind == "compaction" for record in records):
        _draw_earlier_compactions(now, identifier, place)


def _draw_earlier_compactions(now: PageState, identifier: str, place: str) -> None:
    """Draws the compactions that the newest one replaced; restoring one undoes every later one."""
    earlier = now.service.folds.compactions(identifier)[1:]
    if earlier:
        _draw_collapsed(
            now,
            place,
            now.words.earlier_compactions.format(count=len(earlier)),
            key=f"compactions_{place}",
            icon=":material/compress:",
            read=lambda: earlier,
        )


def _draw_collapsed(
    now: PageState, place: str, label: str, *, key: str, icon: str, read: Callable[[], Sequence[Record]]
) -> None:
    """Draws a collapsed box of cards; the records are read when it is opened."""
    box = st.expander(label, key=key, icon=icon, type="compact", on_change="rerun")
    if box.open:
        with box:
            for record in read():
                card.draw(now, record, place)


def _draw_statistics(now: PageState, place: str) -> None:
    words = now.words
    st.subheader(words.statistics, anchor=False)
    if now.session is None:
        st.markdown(f":small[:gray[{words.no_records}]]")
        return
    identifier = now.session.session_id
    sums = now.service.folds.statistics(identifier)
    with st.container(border=True, gap="xsmall"):
        st.markdown(words.stat_count.format(count=sums.record_count, turns=sums.folded_turn_count))
        st.markdown(words.stat_chars.format(original=sums.original_chars, summary=sums.summary_chars))
        template = words.stat_saved if sums.saved_percent >= 0 else words.stat_grown
        length_percent = 100 - sums.saved_percent
        st.markdown(template.format(percent=abs(sums.saved_percent), length_percent=length_percent))
    with st.container(border=True, gap="xsmall"):
        st.markdown(words.stat_unsent.format(tokens=f"{sums.unsent_tokens:,}"))
        st.markdown(words.stat_fold_cost.format(tokens=f"{sums.fold_tokens:,}"))
    st.subheader(words.chart_title, anchor=False)
    chart.draw(words, now.service.folds.chart(identifier), key=f"chart_{place}")
