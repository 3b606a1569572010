"""Follows a running turn by asking the service a few times a second."""

from __future__ import annotations

import streamlit as st

from component import dialog
from component.error_box import error_box
from component.format import format_turns
from component.markdown import answer_markdown
from component.page_state import PageState
from component.step import draw_step_list
from component.word import Words
from graph.error import NotFoundError
from graph.view import LiveTurn, TurnView

POLL_SECONDS = 0.3
WATCH_SECONDS = 3
_FRESH = "live_is_fresh"


def draw(now: PageState, identifier: str, number: int, newest_record_id: str) -> None:
    """Draws the running turn and keeps it up to date until it ends."""
    st.session_state[_FRESH] = True
    with st.chat_message("assistant"):
        _follow(now, identifier, number, newest_record_id)


@st.fragment(run_every=WATCH_SECONDS)
def watch(now: PageState, identifier: str, drawn: TurnView) -> None:
    """Reruns the page when the session was changed elsewhere, in another tab or by another server."""
    if dialog.is_open():
        return
    with error_box(now.words):
        try:
            session, transcript = now.service.sessions.get(identifier), now.service.turns.transcript(identifier, last=1)
        except NotFoundError:
            st.rerun()
        newest = transcript.turns[-1]
        if session != now.session or (newest.number, newest.attempt) != (drawn.number, drawn.attempt):
            st.rerun()


@st.fragment(run_every=POLL_SECONDS)
def _follow(now: PageState, identifier: str, number: int, newest_record_id: str) -> None:
    # The drawing of the whole page has just read all of this: only a later look may ask for another one.
    is_fresh = st.session_state.pop(_FRESH, False)
    with error_box(now.words):
        try:
            _draw_turn(now, identifier, number, newest_record_id, is_fresh=is_fresh)
        except NotFoundError:
            # Deleted meanwhile, in another tab: the whole page is what has to go.
            st.rerun()


def _draw_turn(now: PageState, identifier: str, number: int, newest_record_id: str, *, is_fresh: bool) -> None:
    turn = now.service.turns.live(identifier)
    if turn is None or turn.number != number:
        _draw_ended(now, identifier, is_fresh=is_fresh)
        return
    if not (is_fresh or dialog.is_open() or turn.text) and _has_new_record(now, identifier, newest_record_id):
        st.rerun()
    draw_step_list(now.words, turn.steps)
    _draw_text(turn.text)
    _draw_phase(_phase(now.words, turn))


def _draw_ended(now: PageState, identifier: str, *, is_fresh: bool) -> None:
    if is_fresh:
        _draw_phase(now.words.phase_closing)
    elif dialog.is_open():
        _draw_text(now.service.turns.transcript(identifier, last=1).turns[-1].answer_text)
    else:
        st.rerun()


def _draw_text(text: str) -> None:
    if text:
        with st.container(key="streaming"):
            st.markdown(answer_markdown(text), anchors=False)


def _has_new_record(now: PageState, identifier: str, newest_record_id: str) -> bool:
    newest = now.service.folds.records(identifier, last=1)
    return bool(newest) and newest[-1].id != newest_record_id


def _phase(words: Words, turn: LiveTurn) -> str:
    if turn.stop_requested:
        return f"{words.stopping}…"
    if turn.phase == "folding" and turn.phase_turns:
        return words.phase_folding.format(turns=format_turns(turn.phase_turns))
    return {"tool": words.phase_tool, "answering": words.phase_answering}.get(turn.phase, words.phase_waiting)


def _draw_phase(text: str) -> None:
    st.html(f'<p class="phase" role="status">{text}</p>')
