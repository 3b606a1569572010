"""The menu behind the model's name above the message field: model, thinking, and what is known of the model."""

from __future__ import annotations

import html
from collections.abc import Iterator
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
    options = {option.name: option for option in now.service.sessions.model_options()}
    problem = now.service.sessions.endpoint_problem()
    option = options.get(name)
    label = escape_label(_label(words, name, option, _LABEL_CHARS))
    label = f":material/warning: {label}" if problem else label
    with st.popover(label, key="model_menu", type="tertiary"), st.container(width=_WIDTH_PIXELS, gap="small"):
        if problem is not None:
            reason = words.errors.get(problem.error_code, words.errors["model"])
            told = words.no_model_list.format(address=as_code(problem.address), reason=reason)
            st.warning(told, icon=":material/warning:")
        st.selectbox(
            words.model,
            [*options] if option else [*options, name],
            key=widget.choice_key(page_state.MODEL),
            format_func=lambda each: _label(words, each, options.get(each), _OPTION_CHARS),
            placeholder=words.no_model,
            on_change=redraw.page,
        )
        if option is not None and option.thinks:
            st.selectbox(
                words.thinking_level,
                [*words.thinking_levels],
                key=widget.choice_key(page_state.THINKING),
                format_func=lambda level: words.thinking_levels[level],
                on_change=redraw.page,
                persist_state="session",
            )
        facts = (f"<dt>{what}</dt><dd>{html.escape(told)}</dd>" for what, told in _facts(words, name, option, gauge))
        st.html(f'<dl class="facts-of-model">{"".join(facts)}</dl>')
        if now.service.settings.is_offline:
            widget.draw_note(words.offline_note)


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
