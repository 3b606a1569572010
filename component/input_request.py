"""Draws the body of the request that a call sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import streamlit as st

from component import clamped, copy_button
from component.format import count_lines
from component.page_state import PageState
from component.word import Words
from graph.value.input_view import CallInput, SentRequest

_SHOWN_CHARS: Final = 20_000
_CLAMPED_LINES: Final = 16
_LINE_EMS: Final = 18.0


def draw(now: PageState, identifier: str, turn: int, call: CallInput, place: str) -> None:
    """Draws the box; the request is built when it is opened."""
    said, key = now.words.input, f"{place}_{identifier}_{turn}_{call.attempt}_{call.ordinal}"
    icon = ":material/data_object:"
    box = st.expander(said.request, key=f"input_request_{key}", icon=icon, type="compact", on_change="rerun")
    if not box.open:
        return
    with box:
        request = now.service.folds.request(identifier, turn, attempt=call.attempt, ordinal=call.ordinal)
        for note in _notes(now.words, request):
            st.markdown(f":small[{note}]")
        if request.body is not None:
            _draw_body(now.words, request.body, key, f"request-{turn}-{call.attempt}-{call.ordinal}.json")


def _notes(words: Words, request: SentRequest) -> Iterator[str]:
    said = words.input
    if request.body is None:
        yield f":orange[:material/warning: {said.request_gone}]"
        return
    if request.is_verified:
        yield f":gray[:material/verified: {said.request_verified}]"
    else:
        yield f":orange[:material/warning: {said.request_unverified}]"
    if request.is_of_program:
        yield f":orange[:material/warning: {said.request_of_program}]"
    elif request.lacks_tools:
        yield f":orange[:material/warning: {said.request_without_tools}]"
    yield f":gray[{said.request_embedded if request.is_embedded else said.request_rest}]"


def _draw_body(words: Words, body: str, key: str, file_name: str) -> None:
    said, shown = words.input, body[:_SHOWN_CHARS]
    if count_lines(shown, _LINE_EMS) <= _CLAMPED_LINES:
        _draw_code(shown)
    else:
        clamped.draw(words, f"input_request_{key}", lambda _: _draw_code(shown))
    if len(shown) < len(body):
        st.markdown(f":small[:gray[{said.request_cut}]]")
    with st.container(horizontal=True, gap="small"):
        copy_button.draw(words.copy, body)
        st.download_button(
            said.request_file,
            body,
            file_name=file_name,
            mime="application/json",
            key=f"input_file_{key}",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
        )


def _draw_code(text: str) -> None:
    st.code(text, language=None, wrap_lines=True)  # its colours would be those of the light theme in the drawer
