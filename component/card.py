"""Draws a record as a card of the panel: covered turns, summary, cost."""

from __future__ import annotations

import streamlit as st

from component import action
from component.format import escape_label, format_percent, format_rate, format_tokens, format_turns
from component.page_state import PageState
from component.word import Words
from component.wording import describe_compaction
from graph.record import Record


def draw(now: PageState, record: Record, place: str) -> None:
    """Draws the card; `place` ("rail" or "drawer") makes its element keys unique."""
    words = now.words
    with st.container(border=True, gap="xsmall", key=f"card_{place}_{record.id}"):
        template = words.card_compaction if record.kind == "compaction" else words.card_title
        title = template.format(turns=format_turns(record.turns))
        st.markdown(f"**\\{title[:-1]}\\]** " + " ".join(f":gray-badge[{badge}]" for badge in _badges(words, record)))
        percent = format_percent(record.summary_chars, record.original_chars)
        chars = words.card_chars.format(original=record.original_chars, summary=record.summary_chars, percent=percent)
        st.markdown(f":small[:gray[{chars}]]")
        if record.context_messages:
            st.markdown(f":small[:material/compress: :gray[{describe_compaction(words, record)}]]")
        st.text(record.summary)
        note = _note(words, record)
        if note:
            st.markdown(f":small[{note}]")
        st.markdown(f":small[:gray[{_cost(words, record)}]]")
        if record.kind == "compaction" and now.session is not None:
            st.button(
                words.restore,
                key=f"restore_{place}_{record.id}",
                help=words.restore_help,
                icon=":material/undo:",
                type="tertiary",
                on_click=action.restore,
                args=(now.session.session_id, record.id),
            )


def _badges(words: Words, record: Record) -> list[str]:
    badges = []
    if record.kind in {"interval", "verbatim"}:
        badges.append(words.card_rate.format(rate=format_rate(record.compression_rate)))
    if record.version > 1:
        badges.append(words.card_version.format(version=record.version))
    if record.kind == "merge":
        badges.append(words.card_merged.format(count=record.source_count))
    return badges


def _note(words: Words, record: Record) -> str:
    if record.kind == "verbatim":
        return f":material/format_quote: :gray[{words.kept_verbatim}]"
    if record.outcome == "shortened":
        return f":material/content_cut: :gray[{words.was_shortened}]"
    if record.outcome == "picked":
        return f":material/checklist: :gray[{words.was_picked}]"
    return ""


def _cost(words: Words, record: Record) -> str:
    template = words.card_cost if record.input_tokens + record.output_tokens else words.card_free
    return template.format(
        input=format_tokens(record.input_tokens, is_usage=record.is_usage),
        output=format_tokens(record.output_tokens, is_usage=record.is_usage),
        seconds=f"{record.seconds:.1f}",
        model=escape_label(words.summarisers.get(record.model, record.model)),
    )
