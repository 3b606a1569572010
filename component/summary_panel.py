"""Draws the active records and their statistics, in the right column or, on a narrow page, in a drawer."""

from __future__ import annotations

import streamlit as st

from component import card, chart, dialog, page_state, panel_head
from component.error_box import error_box
from component.page_state import PageState

CARDS_AT_ONCE = 3
ROWS_AT_ONCE = 30


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
    if page_state.is_rate_moved():
        st.rerun()
    names = (now.words.tab_summaries, now.words.tab_statistics)
    history, statistics = st.tabs(names, key=f"tabs_{place}", on_change="rerun")
    if history.open:
        with history, error_box(now.words):
            _draw_history(now, place)
    if statistics.open:
        with statistics, error_box(now.words):
            _draw_statistics(now, place)


def _draw_history(now: PageState, place: str) -> None:
    st.subheader(now.words.history, anchor=False)
    identifier = now.session.session_id if now.session else ""
    records = now.service.folds.records(identifier, last=CARDS_AT_ONCE) if identifier else ()
    panel_head.draw(now, place, has_records=bool(records))
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
        records = now.service.folds.records(identifier, last=CARDS_AT_ONCE + shown)
        for record in reversed(records[:-CARDS_AT_ONCE]):
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
