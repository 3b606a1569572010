"""The sidebar's box of advanced settings."""

from __future__ import annotations

import streamlit as st

from component import compacting, import_button, page_state, program_box, project_choice, rate_slider
from component.page_state import PageState
from component.word import LANGUAGE_NAMES, LANGUAGES
from component.wording import describe_strategy


def draw(now: PageState) -> None:
    """Draws the box, collapsed."""
    with st.expander(now.words.settings, key="settings"):
        if project_choice.is_on(now.service):
            project_choice.draw(now.service, now.words)
        rate_slider.draw(now, "settings")
        note = now.words.rate_note if rate_slider.is_used(now) else now.words.rate_unused
        st.markdown(f":small[:gray[{note}]]")
        _draw_model(now)
        st.segmented_control(
            now.words.language_label,
            LANGUAGES,
            key=page_state.LANGUAGE,
            format_func=lambda language: LANGUAGE_NAMES[language],
            required=True,
            on_change=page_state.keep_language,
            width="stretch",
        )
        st.segmented_control(
            now.words.theme,
            page_state.THEMES,
            key=page_state.THEME,
            format_func=lambda theme: now.words.themes[theme],
            required=True,
            width="stretch",
        )
        program_box.draw(now)
        import_button.draw(now.words)
        _draw_shortcuts(now)


def _draw_model(now: PageState) -> None:
    words = now.words
    st.selectbox(
        words.strategy,
        now.service.sessions.strategies(),
        key=page_state.STRATEGY,
        format_func=lambda name: words.strategies.get(name, name),
    )
    name = st.session_state[page_state.STRATEGY]
    st.markdown(f":small[:gray[{describe_strategy(words, name, now.service.settings.window_turns)}]]")
    if now.session is not None and name == "compaction":
        st.button(
            words.compact_now,
            key="compact",
            icon=":material/compress:",
            width="stretch",
            disabled=now.session.is_running,
            on_click=compacting.start,
            args=(now.session.session_id,),
        )
    options = {option.name: option for option in now.service.sessions.model_options()}
    chosen = st.session_state[page_state.MODEL]
    names = [*options] if chosen in options else [*options, chosen]

    def label(name: str) -> str:
        is_offline = name in options and options[name].is_offline
        return words.model_offline.format(name=name) if is_offline else name

    st.selectbox(words.model, names, key=page_state.MODEL, format_func=label)
    if now.service.settings.is_offline:
        st.markdown(f":small[:gray[{words.offline_note}]]")


def _draw_shortcuts(now: PageState) -> None:
    with st.popover(now.words.shortcuts_label, key="shortcuts", icon=":material/keyboard:", type="tertiary"):
        head, *rows = (now.words.shortcut_head, *((f"`{keys}`", what) for keys, what in now.words.shortcuts))
        st.markdown(now.words.command_note)
        st.markdown("\n".join(f"| {left} | {right} |" for left, right in (head, ("---", "---"), *rows)))
