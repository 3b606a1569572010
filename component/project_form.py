"""Draws what a project is changed with: a form in the place of what it changes, a menu, a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from component import menu, open_form, project_action
from component.project_part import Part


class Field(NamedTuple):
    """A field of a form."""

    label: str
    value: str = ""
    is_long: bool = False


def draw(part: Part, name: str, fields: Sequence[Field], method: Callable[..., object], note: str = "") -> None:
    """Draws a form if it is the open one; saved, it calls `method` with the fields' texts, `note` above its buttons."""
    if not part.is_open(name):
        return
    keys = tuple(part.key(f"field_{number}_{name}") for number in range(len(fields)))
    with st.form(part.key(f"form_{name}"), border=False):
        for key, field in zip(keys, fields, strict=True):
            if field.is_long:
                st.text_area(field.label, value=field.value, key=key, height=120)
            else:
                st.text_input(field.label, value=field.value, key=key)
        if note:
            st.markdown(f":small[:gray[{note}]]")
        part.tell_refusal()
        # Enter presses a form's first button; the style sheet shows the two in reverse.
        with st.container(horizontal=True, key=part.key("choice")):
            st.form_submit_button(
                part.words.save,
                key=part.key("save"),
                type="primary",
                on_click=project_action.save,
                args=(part.place, keys, method),
            )
            st.form_submit_button(part.words.cancel, key=part.key("cancel"), on_click=open_form.close)


def draw_question(part: Part, question: str, label: str, act: Callable[[], None], *, is_danger: bool = False) -> None:
    """Draws a question whose first button does what was asked for; red, if that can't be undone."""
    st.markdown(question)
    part.tell_refusal()
    # By these names the style sheet knows the row, and what is red in it.
    around = f"{'danger' if is_danger else 'question'}_{part.key('choice')}"
    with st.container(key=around), st.container(horizontal=True, key=part.key("choice")):
        st.button(label, key=part.key("save"), type="primary", on_click=act)
        st.button(part.words.cancel, key=part.key("cancel"), on_click=open_form.close)


def draw_menu(part: Part, label: str, name: str, choices: Mapping[str, Callable[[], None]]) -> None:
    """Draws a menu whose label is for screen readers; each choice is a widget callback."""
    menu.draw(label, f"menu_{part.key(name)}", choices)
