"""Static files, and small shared widgets: clamped text, menu, error box, copy button, name of a program."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from component.bridge import delivery
from component.format import escape_label
from component.words.wording import explain_error
from component.words.words import Words
from graph.value.error import TurnfoldError


def draw_action(label: str, key: str, icon: str, act: Callable[..., None], *arguments: object, **options: Any) -> None:  # noqa: ANN401  # those of `st.button`
    """Draws a button, by itself without a frame, with an icon of Material Symbols, "" for none; a press calls `act`."""
    shown = f":material/{icon}:" if icon else None
    st.button(label, key=key, icon=shown, on_click=act, args=arguments, **{"type": "tertiary", **options})


DRAWN_LANGUAGE: Final = "drawn_language"


def choice_key(name: str) -> str:
    """Returns the key of a setting's select box, one for each language.

    A browser reports an option by its words, and those of the language before until it shows the box.
    """
    return f"{name}_{st.session_state.get(DRAWN_LANGUAGE)}"


def draw_note(text: str) -> None:
    st.markdown(f":small[:gray[{text}]]")


def open_box(label: str, key: str, icon: str = "", *, is_open: bool = False) -> DeltaGenerator | None:
    """Draws a line that opens; returns the box behind it, None while it is closed: then nothing of it is sent."""
    shown = f":material/{icon}:" if icon else None
    box = st.expander(label, key=key, icon=shown, type="compact", expanded=is_open, on_change="rerun")
    return box if box.open else None


def draw_search(label: str, key: str, *, is_kept: bool = False) -> str:
    """Draws a field to search by, which reports each key; `is_kept` holds its text while it is not drawn."""
    text = st.text_input(
        label,
        key=key,
        type="search",
        placeholder=label,
        icon=":material/search:",
        label_visibility="collapsed",
        live=True,
        persist_state="session" if is_kept else None,
    )
    return str(text or "").strip()


def draw_clamped(words: Words, key: str, draw_content: Callable[[bool], object], *, is_long: bool = True) -> None:
    """Draws what is clamped until its button is pressed; as it is if it isn't long."""
    if not is_long:
        draw_content(True)  # noqa: FBT003  # whole
        return
    is_whole = st.session_state.get(key, False)
    with st.container(key=f"{'whole' if is_whole else 'clamped'}_{key}", gap="xsmall"):
        draw_content(is_whole)
    label, icon = (words.show_less, "expand_less") if is_whole else (words.show_more, "expand_more")
    draw_action(label, f"more_{key}", icon, _show, key, not is_whole)


def draw_more(label: str, key: str, shown_key: str, shown: int, icon: str = "expand_more") -> None:
    """Draws a button that shows more of a list: `shown` items."""
    draw_action(label, key, icon, _show, shown_key, shown)


@delivery.once
def _show(key: str, shown: object) -> None:
    st.session_state[key] = shown


def draw_menu(label: str, key: str, choices: Mapping[str, Callable[[], None]]) -> None:
    """Draws a menu of widget callbacks; the label is for screen readers, `key` starts with `menu_` for CSS."""
    names, icon = tuple(choices), ":material/more_horiz:"
    st.menu_button(label, names, key=key, type="tertiary", icon=icon, on_click=_choose, args=(key, choices))


def _choose(key: str, choices: Mapping[str, Callable[[], None]]) -> None:
    choices[st.session_state[key]]()


@contextmanager
def error_box(words: Words) -> Iterator[None]:
    """Catches an error of the body and draws its sentence, so that the rest of the page is drawn."""
    try:
        yield
    except TurnfoldError as error:
        show_error(words, error)


def show_error(words: Words, error: TurnfoldError | None) -> None:
    """Draws an error's sentence; nothing without an error."""
    if error is not None:
        st.error(explain_error(words, error), icon=":material/error:")


def copy_button(label: str, text: str) -> str:
    return icon_button("copy", "content_copy", label, **{"data-copy": text})


def icon_button(kind: str, icon: str, label: str, text: str = "", **attributes: str) -> str:
    """Returns a button of plain HTML with an icon of Material Symbols; the label is a tooltip, too."""
    named = {"class": kind, "data-icon": icon, "title": label, "aria-label": label, **attributes}
    written = " ".join(f'{name}="{html.escape(value)}"' for name, value in named.items())
    return f'<button type="button" {written}>{html.escape(text)}</button>'


def turn_link(words: Words, turn: int, text: str) -> str:
    """Returns the HTML of a button that leads to a turn."""
    label = words.to_turn.format(turn=turn)
    return (
        f'<button type="button" class="recalled-turn" data-first="{turn}" data-last="{turn}" aria-label="{label}">'
        f"{text}</button>"
    )


def picture(url: str, name: str) -> str:
    """Returns the HTML of a picture; `url` is a `data:` URL of our own making."""
    return f'<img class="picture" src="{url}" alt="{html.escape(name)}" title="{html.escape(name)}">'


def draw_program(told: str, name: str, alignment: Literal["left", "center"] = "left") -> None:
    st.markdown(f":material/terminal: :small[:gray[{told.format(name=escape_label(name))}]]", text_alignment=alignment)


ASSETS: Final = Path(__file__).parent / "asset"


@cache
def read_assets(*names: str) -> str:
    return "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in names)
