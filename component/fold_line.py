"""Draws the line where turns were folded; it opens in place to what the model sees instead of them."""

from __future__ import annotations

import streamlit as st

from component.card import draw_summary
from component.delivery import delivered
from component.format import format_count, format_turns
from component.word import Words
from component.wording import describe_compaction
from graph.value.record import Record


@st.fragment
@delivered
def draw(words: Words, record: Record, *, is_sent: bool) -> None:
    """Draws the line of a record; its text is sent to the browser when it is opened.

    Args:
        words: The page's words.
        record: What stands in for the turns above.
        is_sent: Whether the strategy sends it.
    """
    # The style sheet draws the lines at both sides, which saves three elements per fold.
    is_folded = is_sent and record.kind != "verbatim"
    box = st.expander(
        _label(words, record, is_sent=is_sent),
        key=f"fold_{record.id}" + ("" if is_folded else "_whole"),
        icon=":material/unfold_less:",
        type="compact",
        on_change="rerun",
    )
    if box.open:
        with box:
            st.markdown(f":small[:gray[{_heading(words, record, is_sent=is_sent)}]]")
            draw_summary(record)


def _label(words: Words, record: Record, *, is_sent: bool) -> str:
    if record.kind == "compaction":
        return words.fold_divider_compaction.format(change=describe_compaction(words, record))
    template = words.fold_divider if is_sent else words.fold_divider_past
    template = words.fold_divider_verbatim if record.kind == "verbatim" else template
    original, summary = format_count(record.original_chars), format_count(record.summary_chars)
    return template.format(turns=format_turns(record.turns, "–"), original=original, summary=summary)


def _heading(words: Words, record: Record, *, is_sent: bool) -> str:
    templates = {"verbatim": words.fold_text_verbatim, "compaction": words.fold_text_compaction}
    template = templates.get(record.kind, words.fold_text) if is_sent else words.fold_text_past
    return template.format(turns=format_turns(record.turns, "–"))
