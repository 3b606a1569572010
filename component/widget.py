"""Small widgets that several parts use: clamped text, menu, error box, copy button, the name of a program."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import streamlit as st

from component.bridge import delivery
from component.format import escape_label
from component.words.en import Words
from component.words.wording import explain_error
from graph.value.error import TurnfoldError


def draw_clamped(words: Words, key: str, draw_content: Callable[[bool], None]) -> None:
    """Draws the content by `draw_content(is_whole)`, clamped by the style sheet until the reader opens it."""
    is_whole = st.session_state.get(key, False)
    with st.container(key=f"{'whole' if is_whole else 'clamped'}_{key}", gap="xsmall"):
        draw_content(is_whole)
    st.button(
        words.show_less if is_whole else words.show_more,
        key=f"more_{key}",
        type="tertiary",
        icon=":material/expand_less:" if is_whole else ":material/expand_more:",
        on_click=_turn_over,
        args=(key,),
    )


@delivery.once
def _turn_over(key: str) -> None:
    st.session_state[key] = not st.session_state.get(key, False)


def draw_menu(label: str, key: str, choices: Mapping[str, Callable[[], None]]) -> None:
    """Draws a menu whose label is for screen readers; each choice is a widget callback.

    Args:
        label: What the menu is called.
        key: Begins with `menu_`, by which the style sheet knows it.
        choices: What can be done, by its label.
    """
    st.menu_button(
        label,
        tuple(choices),
        key=key,
        type="tertiary",
        icon=":material/more_horiz:",
        on_click=_choose,
        args=(key, choices),
    )


def _choose(key: str, choices: Mapping[str, Callable[[], None]]) -> None:
    choices[st.session_state[key]]()


@contextmanager
def error_box(words: Words) -> Iterator[None]:
    """Catches an error of the body and draws its sentence, so that the rest of the page is drawn."""
    try:
        yield
    except TurnfoldError as error:
        tell(words, error)


def tell(words: Words, error: TurnfoldError) -> None:
    """Draws the sentence of an error."""
    st.error(explain_error(words, error), icon=":material/error:")


def draw_copy_button(label: str, text: str) -> None:
    """Draws the button, which shows no words: its label is a hint."""
    st.html(markup(label, text), width="content")


def markup(label: str, text: str) -> str:
    """Returns the button."""
    return (
        f'<button type="button" class="copy" title="{label}" aria-label="{label}" '
        f'data-copy="{html.escape(text)}"></button>'
    )


_ICON = ":material/terminal:"


def draw(words: Words, name: str) -> None:
    """Draws the name of a program in a small line."""
    label = words.program.format(name=escape_label(name))
    st.markdown(f"{_ICON} :small[:gray[{label}]]")


def draw_begun(words: Words, name: str) -> None:
    """Draws the line above a chat that a program began."""
    label = words.begun_by_program.format(name=escape_label(name))
    st.markdown(f"{_ICON} :small[:gray[{label}]]", text_alignment="center")
