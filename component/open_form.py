"""The open project form, at most one per tab, with its surface and refusal."""

from __future__ import annotations

from typing import Final, NamedTuple

import streamlit as st

from graph.value.error import TurnfoldError

PANEL: Final = "panel"  # a surface
_OPEN, _REFUSED = "open_form", "refused_change"


class Form(NamedTuple):
    surface: str
    root: str
    name: str


def request(form: Form) -> None:
    close()
    st.session_state[_OPEN] = form


def close() -> None:
    st.session_state.update({_OPEN: None, _REFUSED: (None, None)})


def is_open(form: Form) -> bool:
    return bool(st.session_state.get(_OPEN) == form)


def is_any_open(surface: str) -> bool:
    opened = st.session_state.get(_OPEN)
    return opened is not None and opened.surface == surface


def leave(surface: str, root: str = "") -> None:
    if is_any_open(surface) and st.session_state[_OPEN].root != root:
        close()


def refuse(surface: str, error: TurnfoldError) -> None:
    st.session_state[_REFUSED] = surface, error


def refusal(surface: str) -> TurnfoldError | None:
    refused_on, error = st.session_state.get(_REFUSED, (None, None))
    return error if refused_on == surface else None
