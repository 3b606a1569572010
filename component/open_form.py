"""Which form of a project is open, in which place of the page, and what was refused there. One at most is open."""

from __future__ import annotations

from typing import Final, NamedTuple

import streamlit as st

from component import dialog
from graph.value.error import TurnfoldError

_OPEN: Final = "open_form"
_REFUSED: Final = "refused_change"


class Form(NamedTuple):
    """A form; `place` is "rail", "drawer" or "chat"."""

    place: str
    root: str
    name: str


def request(form: Form) -> None:
    """Opens a form, as a widget callback."""
    close()
    st.session_state[_OPEN] = form


def close() -> None:
    """Closes the open form and forgets the refusal, as a widget callback."""
    st.session_state.pop(_OPEN, None)
    st.session_state.pop(_REFUSED, None)


def is_open(form: Form) -> bool:
    """Whether this form is open."""
    return bool(st.session_state.get(_OPEN) == form)


def is_any_open(place: str) -> bool:
    """Whether any form is open in this place."""
    opened = st.session_state.get(_OPEN)
    return opened is not None and opened.place == place


def leave(place: str, root: str = "") -> None:
    """Closes the open form if it is in this place and of another project: it isn't drawn any more."""
    opened = st.session_state.get(_OPEN)
    if opened is not None and opened.place == place and opened.root != root:
        close()


def is_typed_in_panel() -> bool:
    """Whether a form of the panel is open: drawn by itself, the panel could take what is being typed away."""
    return is_any_open("rail") or (is_any_open("drawer") and dialog.is_open())


def refuse(place: str, error: TurnfoldError) -> None:
    """Keeps why the last change in this place was refused."""
    st.session_state[_REFUSED] = place, error


def refusal(place: str) -> TurnfoldError | None:
    """Returns why the last change in this place was refused; None if it wasn't."""
    refused: tuple[str, TurnfoldError] | None = st.session_state.get(_REFUSED)
    return refused[1] if refused is not None and refused[0] == place else None
