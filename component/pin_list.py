"""Draws which messages are pinned, and how much of their budget they take."""

from __future__ import annotations

import streamlit as st

from component import page_state, turn_buttons
from component.format import format_count
from component.page_state import PageState
from graph.value.view import PinView


def draw(now: PageState, pins: PinView, place: str) -> None:
    """Draws a box that lists the pinned messages, and says which of them aren't sent; nothing without one."""
    if not pins.messages or now.session is None:
        return
    words = now.words
    strategy = st.session_state[page_state.STRATEGY]
    if now.service.folds.next_fold(now.session.session_id, strategy=strategy).sent_turns is not None:
        st.markdown(f":small[:gray[{words.steering.pins_unsent}]]")
    elif unsent := sum(not pinned.is_sent for pinned in pins.messages):
        st.markdown(f":small[:gray[{words.steering.pins_over.format(count=unsent)}]]")
    used, budget = format_count(pins.used_tokens), format_count(pins.budget_tokens)
    label = words.steering.pins.format(count=len(pins.messages), used=used, budget=budget)
    box = st.expander(label, key=f"pins_{place}", icon=":material/keep:", type="compact", on_change="rerun")
    if not box.open:
        return
    with box:
        rows = [
            f'<li><button type="button" class="recalled-turn" data-first="{pinned.turn}" data-last="{pinned.turn}" '
            f'aria-label="{words.to_turn.format(turn=pinned.turn)}">'
            f"{words.steering.pin_turn.format(turn=pinned.turn)}</button>"
            f"<span>{words.steering.pin_tokens.format(tokens=format_count(pinned.tokens))}"
            f"{'' if pinned.is_sent else f' · {words.steering.pin_unsent}'}</span>"
            f"{turn_buttons.pin(words, pinned.message_id, is_pinned=True)}</li>"
            for pinned in pins.messages
        ]
        st.html(f'<ul class="pins">{"".join(rows)}</ul>')
