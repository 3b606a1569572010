"""Draws how much a call was sent, by kinds, above what the full history would have been."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from component.format import format_count, format_percent, format_tokens
from component.input_group import Group
from component.word import Words
from graph.value.input_view import CallInput


def draw(words: Words, call: CallInput, turn: int, groups: Sequence[Group]) -> None:
    """Draws both bars to one scale, and below them what a provider can have kept and what it reported."""
    said = words.input
    longest = max(call.sent_tokens, call.full_tokens, 1)
    parts = "".join(
        f'<i class="{group.kind}" style="width:{100 * group.tokens / longest:.2f}%"></i>' for group in groups
    )
    told = said.bar.format(
        sent=format_count(call.sent_tokens),
        full=format_count(call.full_tokens),
        blocks=", ".join(f"{group.title(words)}: {format_count(group.tokens)}" for group in groups),
    )
    st.html(
        f'<div class="input-sizes">{_line(said.sent.format(turn=turn), call.sent_tokens)}'
        f'<div class="input-bar" role="img" aria-label="{html.escape(told)}">{parts}</div>'
        f"{_line(said.full, call.full_tokens)}"
        f'<div class="input-bar" aria-hidden="true"><i class="full" style="width:'
        f'{100 * call.full_tokens / longest:.2f}%"></i></div></div>'
    )
    with st.container(gap="xsmall"):
        for line in _lines(words, call):
            st.markdown(f":small[:gray[{line}]]")


def _line(title: str, tokens: int) -> str:
    return f"<p><span>{html.escape(title)}</span><span>{format_tokens(tokens, is_usage=False)}</span></p>"


def _lines(words: Words, call: CallInput) -> list[str]:
    said, kept = words.input, call.cacheable_tokens
    first = []
    if kept:
        percent = format_percent(kept, call.sent_tokens)
        first.append(f":material/bolt: {said.cacheable.format(tokens=format_count(kept), percent=percent)}")
    saved = round(100 * (call.full_tokens - call.sent_tokens) / call.full_tokens) if call.full_tokens else 0
    if saved:
        first.append((said.saved if saved > 0 else said.grown).format(percent=abs(saved)))
    lines = [" · ".join(first)] if first else []
    if call.usage_input_tokens is not None:
        template = said.reported_cached if call.usage_cached_tokens else said.reported
        tokens, cached = format_count(call.usage_input_tokens), format_count(call.usage_cached_tokens or 0)
        lines.append(template.format(tokens=tokens, cached=cached))
    return lines
