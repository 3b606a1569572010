"""Widget callbacks that change a project."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from component import delivery, open_form, redraw, service_provider
from graph.value.error import TurnfoldError


@delivery.once
def change(place: str, method: Callable[..., object], *arguments: object) -> None:
    """Changes something and closes the open form; what is refused is told in its place.

    Args:
        place: Where it was pressed: "rail", "drawer" or "chat".
        method: A method of `service.projects`.
        arguments: Those of the method.
    """
    try:
        service_provider.current()  # a press may come after the end of the sign-in that the method is bound to
        method(*arguments)
    except TurnfoldError as error:
        open_form.refuse(place, error)
        return
    open_form.close()
    redraw.project_changed()


def save(place: str, keys: tuple[str, ...], method: Callable[..., object]) -> None:
    """Changes something by what was typed into the fields of these keys."""
    change(place, method, *(str(st.session_state[key]).strip() for key in keys))
