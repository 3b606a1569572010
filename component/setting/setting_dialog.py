"""The dialog of settings: a list of sections, opened by the sidebar's line of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import streamlit as st

from component import action, background, dialog, page_state, project_choice, redraw, widget
from component.bridge import delivery
from component.chat import model_menu
from component.page_state import PageState
from component.panel import panel_head
from component.setting import instruction_section, program_section
from component.words.wording import describe_strategy, words_of
from component.words.words import Words
from graph.value.error import InputError, PathError

if TYPE_CHECKING:
    from graph.service import ChatService

_NAME: Final = "settings"
_TABS: Final = "setting_sections"
_RATE: Final = "settings_rate"
_WIDTH_PIXELS: Final = 680


def draw_opener(now: PageState) -> None:
    """Draws the line that opens the dialog, and below it the rate, with a button that leads to the panel's slider."""
    words, share = now.words, ""
    with st.container(key="settings", gap=None):
        widget.draw_action(words.settings, "open_settings", "", _open, width="stretch")
        if panel_head.is_used(now):
            rate = words.rate_share.format(percent=round(st.session_state[page_state.RATE] * 100))
            change = words.change_rate
            share = (
                f"<b>{rate}</b>{widget.icon_button('open-panel', '', change, change, **{'data-to': '[type=range]'})}"
            )
        st.html(f'<p class="rate"><span>{words.rate}</span>{share or f"<i>{words.rate_unused}</i>"}</p>')
    if not dialog.is_open():
        program_section.forget()
    dialog.draw(_NAME, words.settings, _draw, now, width=_WIDTH_PIXELS)


def _open() -> None:
    program_section.forget()  # the close may not have arrived: Streamlit may drop the first of two requests at once
    dialog.request(_NAME)


def _draw(page: PageState) -> None:
    with widget.error_box(page.words):
        now = page_state.take_changes(page_state.look_again(page))
        sections = [section for section in SECTIONS if section.is_shown(now.service)]
        titles = [section.title(now.words) for section in sections]
        for tab, section in zip(st.tabs(titles, key=_TABS, on_change="rerun"), sections, strict=True):
            if tab.open:
                with tab, widget.error_box(now.words):
                    section.draw(now)


def _draw_summaries(now: PageState) -> None:
    words, state = now.words, st.session_state
    if state.get(_RATE) != state[page_state.RATE]:
        state[_RATE] = state[page_state.RATE]
    is_off = not panel_head.is_used(now)
    look = {"help": words.rate_help, "disabled": is_off, "on_change": lambda: page_state.set_rate(state[_RATE])}
    panel_head.draw_slider(words, "settings", None, _RATE, **look)
    widget.draw_note(words.rate_unused if is_off else words.rate_note)
    names = {name: words.strategies.get(name, name) for name in now.service.sessions.strategies()}
    _draw_choice(words.strategy, page_state.STRATEGY, names)
    name = page_state.chosen(page_state.STRATEGY)
    if name == "interval":
        _draw_choice(words.fold_when, page_state.FOLD_WHEN, words.fold_times)
    fold_when = page_state.chosen(page_state.FOLD_WHEN)
    widget.draw_note(describe_strategy(words, name, fold_when, now.service.settings.window_turns))
    if now.session is not None and name == "compaction":
        is_running, identifier = now.session.is_running, now.session.session_id
        widget.draw_action(
            words.compact_now, "compact", "compress", _compact, identifier, disabled=is_running, type="secondary"
        )


def _draw_choice(label: str, name: str, names: Mapping[str, str]) -> None:
    key = widget.choice_key(name)
    st.selectbox(label, [*names], key=key, format_func=names.__getitem__, persist_state="session")


def _compact(identifier: str) -> None:
    dialog.close()  # what is being done stands above the message field
    background.start_compaction(identifier)


def _draw_model(now: PageState) -> None:
    identifier = now.session.session_id if now.session else None
    gauge = now.service.folds.gauge(identifier, options=page_state.options(), language=now.words.language)
    model_menu.draw_choice(now, gauge, "settings_")


def _draw_project(now: PageState) -> None:
    project_choice.draw(now.service, now.words)
    if isinstance(refusal := page_state.notice(), PathError):
        widget.show_error(now.words, refusal)


def _draw_import(now: PageState) -> None:
    labels = now.words.sessions
    st.markdown(labels.open_file_note)
    st.html(widget.icon_button("open-file", "upload_file", labels.open_file, labels.choose_file), width="content")


@delivery.once
def take_file(sent: object) -> None:
    """Widget callback: imports the chats of a file and opens the first; without a text the file is too large."""
    match sent:
        case {"text": str(text)}:
            if count := action.import_sessions(text):
                labels = words_of(st.session_state[page_state.LANGUAGE]).sessions
                page_state.queue_toast((labels.opened_one if count == 1 else labels.opened).format(count=count))
        case {"text": None, "size": int(size)}:
            page_state.set_notice(InputError("import_too_large", f"{size:,}"))
    dialog.close()  # the chat, or why there is none, is behind it
    redraw.page()


class Section(NamedTuple):
    """A tab of the dialog; drawn while it is the one in sight."""

    title: Callable[[Words], str]
    draw: Callable[[PageState], None]
    is_shown: Callable[[ChatService], bool] = lambda _: True


SECTIONS: Final = (
    Section(lambda words: words.instructions, instruction_section.draw),
    Section(lambda words: words.tab_summaries, _draw_summaries),
    Section(lambda words: words.model, _draw_model),
    Section(lambda words: words.project.tab, _draw_project, project_choice.is_on),
    Section(lambda words: words.programs.title, program_section.draw),
    Section(lambda words: words.sessions.open_file, _draw_import),
)
