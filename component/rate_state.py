"""The compression rate that a browser tab has chosen, and which edition of each of its sliders shows it.

A slider that the server sets reports its old value until the browser has heard of it, which looks like a move. So no
slider is ever set: one that no longer shows the rate is replaced by a new edition, whose key nothing old bears.
"""

from __future__ import annotations

import streamlit as st

# Key of session_state, not of a widget.
RATE = "compression_rate"
# Place of each slider, and the beginning of its key.
SLIDERS = {"settings": RATE, "rail": "slider_rail", "drawer": "slider_drawer"}
_EDITIONS = "slider_editions"


def slider_key(place: str) -> str:
    """Returns the key of the slider that stands in this place now."""
    return f"{SLIDERS[place]}_{_editions().get(place, 0)}"


def is_moved() -> bool:
    """Whether a slider was moved since the page was drawn, so that all of it has to be drawn again."""
    return bool(_places_without(st.session_state[RATE]))


def take_moved() -> None:
    """Takes the rate of the slider that was moved since the page was drawn."""
    moved = _places_without(st.session_state.get(RATE))
    if moved:
        set_rate(_shown()[moved[0]])


def set_rate(rate: float) -> None:
    """Sets the rate; of each slider that shows another one, a new edition will be drawn."""
    # In this order: a run that is overtaken in between leaves the moved slider to be seen by the next.
    editions = _editions()
    st.session_state[_EDITIONS] = {**editions, **{place: editions.get(place, 0) + 1 for place in _places_without(rate)}}
    st.session_state[RATE] = rate


def _editions() -> dict[str, int]:
    return dict(st.session_state.get(_EDITIONS, {}))


def _shown() -> dict[str, float]:
    keys = {place: slider_key(place) for place in SLIDERS}
    return {place: round(st.session_state[key], 2) for place, key in keys.items() if key in st.session_state}


def _places_without(rate: float | None) -> list[str]:
    return [place for place, shown in _shown().items() if shown != rate]
