"""Draws the panel's tab of what the model was sent in a turn, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from component import input_bar, input_group, input_history, input_request
from component.page_state import PageState
from component.word import Words
from graph.value.input_view import CallInput

_NEWEST: Final = 0  # stands for whichever turn is the newest


def draw(now: PageState, place: str) -> None:
    """Draws the tab; `place` ("rail" or "drawer") makes its element keys unique."""
    said = now.words.input
    st.subheader(said.title, anchor=False)
    identifier = now.session.session_id if now.session else ""
    turns = now.service.folds.called_turns(identifier) if identifier else ()
    if not turns:
        st.markdown(f":small[:gray[{said.nothing}]]")
        return
    turn = _choose_turn(now.words, turns, f"{place}_{identifier}")
    calls = now.service.folds.inputs(identifier, turn)
    if not calls:
        st.markdown(f":small[:gray[{said.not_called}]]")
        return
    call = _choose_call(now.words, calls, f"{place}_{identifier}_{turn}")
    groups = input_group.groups_of(call, turn)
    input_bar.draw(now.words, call, turn, groups)
    with st.container(border=True, gap="xsmall", key=f"input_blocks_{place}"):
        input_group.draw(now.words, groups, f"{place}_{identifier}_{turn}_{call.attempt}_{call.ordinal}")
    with st.container(gap="xsmall"):
        if call.is_verified:
            st.markdown(f":small[:gray[:material/verified: {said.verified}]]")
        else:
            st.markdown(f":small[:orange[:material/warning: {said.unverified}]]")
        if call.cacheable_tokens:
            st.markdown(f":small[:gray[:material/bolt: {said.cacheable_help}]]")
    input_history.draw(now, identifier, turn, call, place)
    input_request.draw(now, identifier, turn, call, place)


def _choose_turn(words: Words, turns: Sequence[int], key: str) -> int:
    said = words.input
    chosen = st.selectbox(
        said.choose_turn,
        [_NEWEST, *reversed(turns[:-1])],
        format_func=lambda turn: said.newest if turn == _NEWEST else said.in_turn.format(turn=turn),
        key=f"input_turn_{key}",
        label_visibility="collapsed",
    )
    return chosen or turns[-1]


def _choose_call(words: Words, calls: Sequence[CallInput], key: str) -> CallInput:
    """Returns the last answer, if the reader doesn't choose another call."""
    if len(calls) == 1:
        return calls[0]
    answers = [place for place, call in enumerate(calls) if call.kind == "answer"]
    place = st.selectbox(
        words.input.choose_call,
        range(len(calls)),
        index=answers[-1] if answers else len(calls) - 1,
        format_func=lambda place: _name_of(words, calls, calls[place]),
        key=f"input_call_{key}_{len(calls)}",
        label_visibility="collapsed",
    )
    return calls[place]


def _name_of(words: Words, calls: Sequence[CallInput], call: CallInput) -> str:
    said = words.input
    template = said.call if calls[-1].attempt == 1 else said.call_again
    name = template.format(number=call.ordinal, count=len(calls), attempt=call.attempt)
    if call.kind == "reasoning":
        name = said.call_by_tool.format(call=name)
    return said.call_failed.format(call=name) if call.error_code else name
