"""The menu behind the model's name above the message field: model, thinking, and what is known of the model.

The settings have the same choice.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import streamlit as st

from component import page_state, redraw, widget
from component.format import escape_label, format_count
from component.page_state import PageState
from component.words.wording import as_code
from component.words.words import Words
from graph.value.view import Gauge, ModelOption

_LABEL_CHARS: Final = 28
_OPTION_CHARS: Final = 36
_WIDTH_PIXELS: Final = 336


def draw(now: PageState, gauge: Gauge) -> None:
    words, name = now.words, page_state.chosen(page_state.MODEL)
    label = escape_label(_label(words, name, _options(now).get(name), _LABEL_CHARS))
    label = f":material/warning: {label}" if now.service.sessions.endpoint_problem() else label
    with st.popover(label, key="model_menu", type="tertiary"), st.container(width=_WIDTH_PIXELS, gap="small"):
        draw_choice(now, gauge)


def draw_choice(now: PageState, gauge: Gauge, place: str = "") -> None:
    """Draws what is chosen and known of the model; at another `place` its boxes set those of the menu."""
    words, name, options = now.words, page_state.chosen(page_state.MODEL), _options(now)
    option, problem = options.get(name), now.service.sessions.endpoint_problem()
    if problem is not None:
        reason = words.errors.get(problem.error_code, words.errors["model"])
        told = words.no_model_list.format(address=as_code(problem.address), reason=reason)
        st.warning(told, icon=":material/warning:")
    st.selectbox(
        words.model,
        [*options] if option else [*options, name],
        key=_key(page_state.MODEL, place),
        format_func=lambda each: _label(words, each, options.get(each), _OPTION_CHARS),
        placeholder=words.no_model,
        on_change=partial(_take, page_state.MODEL, place),
    )
    if option is not None and option.thinks:
        st.selectbox(
            words.thinking_level,
            [*words.thinking_levels],
            key=_key(page_state.THINKING, place),
            format_func=lambda level: words.thinking_levels[level],
            on_change=partial(_take, page_state.THINKING, place),
            persist_state=None if place else "session",
        )
    facts = (f"<dt>{what}</dt><dd>{html.escape(told)}</dd>" for what, told in _facts(words, name, option, gauge))
    st.html(f'<dl class="facts-of-model">{"".join(facts)}</dl>')
    if now.service.settings.is_offline:
        widget.draw_note(words.offline_note)


def _options(now: PageState) -> Mapping[str, ModelOption]:
    return {option.name: option for option in now.service.sessions.model_options()}


def _key(name: str, place: str) -> str:
    key = widget.choice_key(place + name)
    if place and st.session_state.get(key) != page_state.chosen(name):
        st.session_state[key] = page_state.chosen(name)
    return key


def _take(name: str, place: str) -> None:
    if place:
        st.session_state[widget.choice_key(name)] = st.session_state[widget.choice_key(place + name)]
    else:
        redraw.page()


def window_label(words: Words, gauge: Gauge) -> str:
    return format_count(gauge.window_tokens) + (words.window_guess if gauge.is_guess else "")


def short_name(name: str, chars: int) -> str:
    """Returns a name without its middle if it is longer: builds of one model differ at the end."""
    half = (chars - 1) // 2
    return name if len(name) <= chars else f"{name[:half]}…{name[-half:]}"


def _label(words: Words, name: str, option: ModelOption | None, chars: int) -> str:
    shown = short_name(name, chars) or words.no_model
    return words.model_offline.format(name=shown) if option is not None and option.is_offline else shown


def _facts(words: Words, name: str, option: ModelOption | None, gauge: Gauge) -> Iterator[tuple[str, str]]:
    known = {True: words.is_supported, False: words.is_unsupported, None: words.is_unknown}
    if len(name) > _OPTION_CHARS:
        yield words.model, name
    yield words.model_window, window_label(words, gauge)
    if option is not None and not option.is_offline:
        yield words.model_tools, known[True] if option.has_tools else words.model_without_tools
        if not option.thinks:  # else it can be chosen above
            yield words.thinking_level, known[None]
        yield words.model_images, known[option.takes_images]
