"""The sidebar's expander of advanced settings, with the dialog of API tokens and the user's own instructions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import streamlit as st

from component import action, background, dialog, page_state, project_choice, redraw, widget
from component.bridge import delivery, service_provider
from component.format import escape_label, format_count, zone_of
from component.page_state import PageState
from component.panel import panel_head
from component.words.text import LANGUAGE_NAMES, LANGUAGES
from component.words.wording import describe_strategy, words_of
from component.words.words import Words
from graph.value.error import InputError, TurnfoldError
from graph.value.view import MadeToken, ProgramToken


@delivery.once
def take_file(sent: object) -> None:
    """Widget callback: imports the chats of a file and opens the first; without a text the file is too large."""
    match sent:
        case {"text": str(text)}:
            if count := action.import_sessions(text):
                labels = words_of(st.session_state[page_state.LANGUAGE]).sessions
                page_state.queue_toast(labels.opened.format(count=count))
        case {"text": None, "size": int(size)}:
            page_state.set_notice(InputError("import_too_large", f"{size:,}"))
    redraw.page()


_THEME_ICONS: Final = {"light": "light_mode", "dark": "dark_mode", "system": "contrast"}
_DIALOG: Final = "programs"
_NAME, _TOOLS, _PERSONAL = "program_name", "program_tools", "program_personal"
_MADE, _ASKED, _REFUSED = "made_token", "asked_program", "refused_program"


def _draw_programs(now: PageState) -> None:
    words, labels, url = now.words, now.words.programs, urlsplit(st.context.url or "")
    address = labels.address.format(address=f"{url.scheme}://{url.netloc}/v1") if url.netloc else ""
    st.markdown(f"{labels.note} {address}".rstrip())
    _draw_made(words)
    with widget.error_box(words), st.container(gap="xsmall"):
        for token in now.service.programs.list():
            _draw_token(words, token, zone_of(now.time_zone))
    _draw_form(words)


def _draw_token(words: Words, token: ProgramToken, zone: tzinfo) -> None:
    labels, name = words.programs, escape_label(token.name)
    with st.container(key=f"token_{token.id}", gap="xsmall"):
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{name}**  \n:small[:gray[{_facts(words, token, zone)}]]")
            key, is_asked = f"withdraw_{token.id}", st.session_state.get(_ASKED) == token.id
            widget.draw_action(labels.withdraw, key, "", _ask, token.id, disabled=is_asked, type="secondary")
        if is_asked:
            st.markdown(labels.withdraw_question.format(name=name))
            with st.container(key="danger"):
                leave = partial(_ask, "")
                dialog.draw_choice(
                    labels.withdraw, _withdraw, token.id, cancel=words.cancel, on_cancel=leave, is_form=False
                )


def _facts(words: Words, token: ProgramToken, zone: tzinfo) -> str:
    labels, made = words.programs, token.created_at.astimezone(zone).date().isoformat()
    use = labels.unused.format(made=made)
    if token.last_used_on is not None:
        use = labels.used.format(made=made, used=token.last_used_on.isoformat())
    facts = [use] if token.is_personal else [use, labels.shared]
    if token.tools is not None:
        names = escape_label(", ".join(sorted(token.tools)))
        facts.append(labels.some_tools.format(tools=names) if token.tools else labels.without_tools)
    return " · ".join(facts)


def _draw_made(words: Words) -> None:
    made: MadeToken | None = st.session_state.get(_MADE)
    if made is None:
        return
    labels, secret = words.programs, made.secret.get_secret_value()
    with st.container(key="made_token", border=True, gap="small"):
        st.markdown(labels.made.format(name=escape_label(made.shown.name)))
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"`{secret}`")
            st.html(widget.copy_button(labels.copy, secret), width="content")


def _draw_form(words: Words) -> None:
    labels = words.programs
    with st.form("new_program", border=False):
        st.text_input(labels.new, key=_NAME, placeholder=words.title_label)
        st.checkbox(labels.tools, value=True, key=_TOOLS)
        with st.container(gap=None):
            st.checkbox(labels.personal, value=True, key=_PERSONAL)
            widget.draw_note(labels.personal_note)
        widget.show_error(words, st.session_state.get(_REFUSED))
        st.form_submit_button(labels.make, key="make_token", type="primary", on_click=_make)


def _make() -> None:
    def make() -> None:
        state, programs = st.session_state, service_provider.current().programs
        tools = None if state[_TOOLS] else ()
        state[_MADE] = programs.admit(state[_NAME], tools=tools, is_personal=state[_PERSONAL])
        state[_NAME] = ""

    _try(make)


def _withdraw(token_id: str) -> None:
    _try(lambda: service_provider.current().programs.withdraw(token_id))


@delivery.once
def _ask(token_id: str) -> None:
    _forget()
    st.session_state[_ASKED] = token_id


@delivery.once
def _try(act: Callable[[], None]) -> None:
    _forget()
    try:
        act()
    except TurnfoldError as error:
        st.session_state[_REFUSED] = error


def _open() -> None:
    # The close may not have arrived: Streamlit may drop the first of two requests at once.
    _forget()
    dialog.request(_DIALOG)


def _forget() -> None:
    for key in (_MADE, _ASKED, _REFUSED):
        st.session_state.pop(key, None)


def draw(now: PageState) -> None:
    with st.expander(now.words.settings, key="settings"):
        if project_choice.is_on(now.service):
            project_choice.draw(now.service, now.words)
        panel_head.draw_rate(now)
        _draw_strategy(now)
        _draw_instructions(now)
        widget.draw_action(now.words.programs.choose, "programs", "terminal", _open)
        if not dialog.is_open():
            _forget()
        dialog.draw(_DIALOG, now.words.programs.title, _draw_programs, now)
        label = now.words.sessions.open_file
        st.html(widget.icon_button("open-file", "upload_file", label, label), width="content")


def draw_foot(now: PageState) -> None:
    """Draws the row of language, theme and help, below the settings."""
    with st.container(key="foot", horizontal=True, gap="xsmall", wrap=False, vertical_alignment="center"):
        draw_choice = partial(st.segmented_control, required=True, label_visibility="collapsed")
        names, keep, key = LANGUAGE_NAMES, page_state.keep_language, page_state.LANGUAGE
        draw_choice(now.words.language_label, LANGUAGES, key=key, format_func=names.__getitem__, on_change=keep)
        themes = {theme: f":material/{icon}: {now.words.themes[theme]}" for theme, icon in _THEME_ICONS.items()}
        draw_choice(now.words.theme, page_state.THEMES, key=page_state.THEME, format_func=themes.__getitem__)
        widget.draw_action(now.words.shortcuts_label, "icon_help", "keyboard", dialog.request, action.HELP_DIALOG)
    dialog.draw(action.HELP_DIALOG, now.words.shortcuts_label, _draw_help, now.words)


def _draw_help(words: Words) -> None:
    rows = (words.shortcut_head, ("---", "---"), *((f"`{keys}`", what) for keys, what in words.shortcuts.items()))
    commands = ((f"`/{name}`", what) for name, what in words.commands.items())
    st.markdown("\n".join(f"| {left} | {right} |" for left, right in (*rows, *commands)))


def _draw_strategy(now: PageState) -> None:
    words = now.words
    names = {name: words.strategies.get(name, name) for name in now.service.sessions.strategies()}
    st.selectbox(words.strategy, [*names], key=widget.choice_key(page_state.STRATEGY), format_func=names.__getitem__)
    name = page_state.chosen(page_state.STRATEGY)
    if name == "interval":
        times, key = words.fold_times, widget.choice_key(page_state.FOLD_WHEN)
        st.selectbox(words.fold_when, [*times], key=key, format_func=times.__getitem__)
    fold_when = page_state.chosen(page_state.FOLD_WHEN)
    widget.draw_note(describe_strategy(words, name, fold_when, now.service.settings.window_turns))
    if now.session is not None and name == "compaction":
        act, options = background.start_compaction, {"type": "secondary", "width": "stretch"}
        is_running, identifier = now.session.is_running, now.session.session_id
        widget.draw_action(words.compact_now, "compact", "compress", act, identifier, disabled=is_running, **options)


_READ: Final = "read_instructions"


def _draw_instructions(now: PageState) -> None:
    """Draws the user's own instructions, for all chats and for the open one; they are kept as they are typed."""
    words, own, state = now.words, now.service.instructions, st.session_state
    with widget.error_box(words):
        key: str = page_state.NEW_INSTRUCTIONS
        keep: Callable[[str], object] = own.checked
        kept: str = state.get(key, "")  # the first message takes it along from here
        if now.session is not None:
            identifier = now.session.session_id
            key, keep = f"instructions_{identifier}", partial(own.keep_of_session, identifier)
            kept = own.of_session(identifier)
        of_all = "instructions_all", own.for_all(), own.keep_for_all, words.instructions_all, words.instructions_help
        of_chat = key, kept, keep, words.instructions_chat, None
        state[_READ] = {text[0]: _draw_text(now, *text) for text in (of_all, of_chat)}


def _draw_text(
    now: PageState, key: str, kept: str, keep: Callable[[str], object], label: str, about: str | None
) -> str:
    """Keeps what was typed, here and not in a callback: an interrupted run may skip that. Returns what was kept."""
    own, state, error = now.service.instructions, st.session_state, None
    typed, read = state.setdefault(key, kept), state.get(_READ, {}).get(key, kept)
    if typed not in {read, kept}:
        try:
            keep(typed)
        except TurnfoldError as refusal:
            error = refusal
        else:
            kept = own.checked(typed)
            page_state.queue_toast(now.words.instructions_saved)
    # What another tab has saved is shown. An assignment without need would take away what the browser has and hasn't
    # sent.
    if error is None and typed != kept:
        state[key] = kept
    st.text_area(label, key=key, height=96, help=about)
    if tokens := own.tokens(kept):
        widget.draw_note(now.words.steering.pin_tokens.format(tokens=format_count(tokens)))
    widget.show_error(now.words, error)
    return read if error else kept
