"""The section of the API: the programs that are let in, and their tokens."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from functools import partial
from urllib.parse import urlsplit

import streamlit as st

from component import dialog, widget
from component.bridge import delivery, service_provider
from component.format import escape_label, zone_of
from component.page_state import PageState
from component.words.words import Words
from graph.value.view import MadeToken, ProgramToken

_NAME, _TOOLS, _PERSONAL = "program_name", "program_tools", "program_personal"
_MADE, _ASKED = "made_token", "asked_program"


def draw(now: PageState) -> None:
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
        widget.show_error(words, dialog.outcome(_NAME)[1])
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
    forget()
    st.session_state[_ASKED] = token_id


@delivery.once
def _try(act: Callable[[], None]) -> None:
    forget()
    dialog.attempt(_NAME, act)


def forget() -> None:
    for key in (_MADE, _ASKED):
        st.session_state.pop(key, None)
