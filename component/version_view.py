"""Draws two versions of a summary side by side, with what is in one of them alone marked."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Literal

import streamlit as st

from component.difference import Piece, differences
from component.format import escape_label, format_count, format_rate
from component.word import Words
from graph.value.record import Record

_COLUMN_PIXELS = 280


def draw(words: Words, other: Record, in_use: Record) -> None:
    """Draws another version at the left and the one in use at the right."""
    compared = differences(other.summary, in_use.summary)
    before, after = compared or ([_unmarked(other)], [_unmarked(in_use)])
    with st.grid(2, min_column_width=_COLUMN_PIXELS, key="versions"):
        with st.container(border=True, gap="xsmall"):
            _draw_version(words, other, before, "del")
        with st.container(border=True, gap="xsmall"):
            _draw_version(words, in_use, after, "ins", f" :primary-badge[{words.steering.in_force}]")
    if other.summary == in_use.summary:
        st.markdown(f":small[:gray[{words.steering.same_text}]]")
    elif compared is None:
        st.markdown(f":small[:gray[{words.steering.not_compared}]]")


def draw_only(words: Words, version: Record) -> None:
    """Draws the one version that there is."""
    with st.container(border=True, gap="xsmall"):
        _draw_version(words, version, [_unmarked(version)], "ins")
    st.markdown(f":small[:gray[{words.steering.only_version}]]")


def name_of(words: Words, version: Record) -> str:
    """Returns what tells a version from the others."""
    said = words.steering
    if version.kind == "verbatim":
        about = said.version_verbatim
    elif version.edited:
        about = said.edited
    else:
        about = said.version_rate.format(rate=format_rate(version.compression_rate))
    return said.version.format(version=version.version, about=about, summary=format_count(version.summary_chars))


def _unmarked(version: Record) -> Piece:
    return Piece(version.summary, is_changed=False)


def _draw_version(
    words: Words, version: Record, pieces: Iterable[Piece], mark: Literal["del", "ins"], badge: str = ""
) -> None:
    st.markdown(f"**{escape_label(name_of(words, version))}**{badge}")
    if version.wish:
        st.markdown(f":small[:gray[{words.steering.wish}: {escape_label(version.wish)}]]")
    said = words.steering
    text = "".join(
        f'<{mark}><span class="unseen">{said.only_here}</span>{html.escape(piece.text)}'
        f'<span class="unseen">{said.change_ends}</span></{mark}>'
        if piece.is_changed
        else html.escape(piece.text)
        for piece in pieces
    )
    st.html(f'<div class="version">{text}</div>')
