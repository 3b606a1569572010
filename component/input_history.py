"""Draws the full history beside what a call was sent: each turn, and how it went to the model."""

from __future__ import annotations

import streamlit as st

from component import delivery, input_group
from component.format import format_tokens
from component.page_state import PageState
from graph.value.input_view import CallInput, HistoryTurn

TURNS_AT_ONCE = 30


def draw(now: PageState, identifier: str, turn: int, call: CallInput, place: str) -> None:
    """Draws the box of the turns, read when it is opened: one line each, newest first."""
    said, key = now.words.input, f"{place}_{identifier}_{turn}"
    icon = ":material/article:"
    box = st.expander(said.history, key=f"input_history_{key}", icon=icon, type="compact", on_change="rerun")
    if not box.open:
        return
    shown_key = f"input_history_shown_{key}"
    shown = st.session_state.get(shown_key, TURNS_AT_ONCE)
    with box:
        turns = now.service.folds.history(identifier, turn, last=shown)
        ways = _ways(call, turn)
        for entry in reversed(turns):
            _draw_turn(now, entry, said.ways[ways.get(entry.number, "none")], f"{key}_{entry.number}")
        if len(turns) == shown and turns[0].number > 1:
            st.button(
                said.history_more,
                key=f"input_history_more_{key}",
                type="tertiary",
                icon=":material/expand_more:",
                on_click=_show,
                args=(shown_key, shown + TURNS_AT_ONCE),
            )


def _ways(call: CallInput, turn: int) -> dict[int, str]:
    """Returns how each turn went to the model, by its number; of what stands in a record, that counts."""
    ways: dict[int, str] = {}
    for block in call.blocks:
        way = "raw" if block.role else "record"
        for number in block.turns:
            ways.setdefault(number, "current" if number == turn else way)
    return ways


def _draw_turn(now: PageState, entry: HistoryTurn, way: str, key: str) -> None:
    name = now.words.input.turn.format(turn=entry.number)
    label = f"{name} · {way} :gray[{format_tokens(entry.tokens, is_usage=False)}]"
    row = st.expander(label, key=f"input_past_{key}", type="compact", on_change="rerun")
    if row.open:
        with row:
            input_group.draw_messages(now.words, entry.messages, f"past_{key}")


@delivery.once
def _show(key: str, shown: int) -> None:
    st.session_state[key] = shown
