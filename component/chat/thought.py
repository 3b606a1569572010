"""Draws what a model has thought: one line that opens."""

from __future__ import annotations

from typing import Final

import streamlit as st

from component.bridge.delivery import delivered
from component.markdown import answer_markdown
from component.page_state import PageState
from component.widget import error_box
from component.words.en import Words
from graph.value.view import TurnView

ICON: Final = ":material/psychology:"


@st.fragment
@delivered
def draw_thoughts(now: PageState, identifier: str, turn: TurnView) -> None:
    """Draws a finished turn's thoughts in an expander; they are read and sent to the browser when opened."""
    box = st.expander(
        label_of(now.words, turn.thought_seconds),
        key=f"thoughts_{turn.number}_{turn.attempt}",
        icon=ICON,
        type="compact",
        on_change="rerun",
    )
    if box.open:
        with box, error_box(now.words):
            thoughts = now.service.turns.thoughts(identifier, turn.number, attempt=turn.attempt)
            st.markdown(answer_markdown(thoughts), anchors=False)


def label_of(words: Words, seconds: float) -> str:
    return words.thought.format(seconds=max(1, round(seconds)))
