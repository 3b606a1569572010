"""The slider of the compression rate, which stands in the settings and in the panel."""

from __future__ import annotations

import streamlit as st

from component import page_state, rate_state
from component.page_state import PageState


def is_used(now: PageState) -> bool:
    """Whether the chosen strategy's summaries follow the rate."""
    return now.service.folds.uses_rate(st.session_state[page_state.STRATEGY])


def draw(now: PageState, place: str) -> None:
    """Draws the slider of a place of `rate_state.SLIDERS`; in the panel the text above it is its label."""
    words, key = now.words, rate_state.slider_key(place)
    is_alone = place == "settings"
    if not is_used(now):
        key += "_unused"  # a slider of its own: what the other one still reports counts until it is gone
    with st.container(key=rate_state.SLIDERS[place], gap=None):
        st.slider(
            words.rate,
            min_value=0.1,
            max_value=0.5,
            # Not set by its key: the browser is told such a value once, and a slider that misses it stands at 0.1.
            value=st.session_state[page_state.RATE],
            step=0.05,
            key=key,
            help=words.rate_help if is_alone else None,
            label_visibility="visible" if is_alone else "collapsed",
            disabled=not is_used(now),
        )
        with st.container(horizontal=True, wrap=False, gap=None, key=f"rate_scale_{place}"):
            st.markdown(f":small[:gray[{words.rate_short}]]", text_alignment="left")
            st.markdown(f":small[:gray[{words.rate_balanced}]]", text_alignment="center")
            st.markdown(f":small[:gray[{words.rate_detailed}]]", text_alignment="right")
