"""Follows a running turn: waits for its news in short runs, so that the other parts of the page answer between them."""

from __future__ import annotations

import time

import streamlit as st

from component import dialog
from component.delivery import delivered
from component.error_box import error_box
from component.format import format_turns
from component.markdown import answer_markdown
from component.page_state import PageState
from component.paragraph import split_paragraphs
from component.step import draw_recalled, draw_step_list
from component.word import Words
from graph.error import NotFoundError
from graph.view import LiveTurn, TurnView

# The browser asks for the next run before the last one ends, so a run waits nearly all the time.
ASK_SECONDS = 0.15
RUN_SECONDS = 0.3
_PAUSE_SECONDS = 0.02  # between looks whether the user wants something else
_DRAW_SECONDS = 0.08  # text is drawn no more often
WATCH_SECONDS = 3
_FRESH = "live_is_fresh"


def draw(now: PageState, identifier: str, number: int, newest_record_id: str) -> None:
    """Draws the running turn and keeps it up to date until it ends."""
    st.session_state[_FRESH] = True
    with st.chat_message("assistant"):
        _follow(now, identifier, number, newest_record_id)


@st.fragment(run_every=WATCH_SECONDS)
@delivered
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


@st.fragment(run_every=ASK_SECONDS)
@delivered
def _follow(now: PageState, identifier: str, number: int, newest_record_id: str) -> None:
    # The drawing of the whole page has just read all of this: only a later look may ask for another one.
    is_fresh = st.session_state.pop(_FRESH, False)
    with error_box(now.words):
        try:
            turn = _draw_news(now, identifier, number, waits=not is_fresh)
            if turn is None:
                _draw_ended(now, identifier, is_fresh=is_fresh)
            elif not (is_fresh or dialog.is_open() or turn.text) and _has_new_record(now, identifier, newest_record_id):
                st.rerun()
        except NotFoundError:
            # Deleted meanwhile, in another tab: the whole page is what has to go.
            st.rerun()


def _draw_news(now: PageState, identifier: str, number: int, *, waits: bool) -> LiveTurn | None:
    """Draws the running turn and its new text while the run lasts; returns it, None once it has ended."""
    until = time.monotonic() + RUN_SECONDS * waits
    drawn = now.service.turns.live(identifier)
    if drawn is None or drawn.number != number:
        return None
    draw_step_list(now.words, drawn.steps)
    draw_recalled(now.words, drawn.steps)
    text = st.container(key="streaming")
    parts = split_paragraphs(answer_markdown(drawn.text))
    boxes = [text.markdown(part, anchors=False) for part in parts]
    phase = st.html(_phase(now.words, drawn))
    while (rest := until - time.monotonic()) > 0:
        st.session_state.get(_FRESH)  # Streamlit ends this run here if the user wants another one
        turn = now.service.turns.live(identifier, seen=drawn, wait_seconds=min(rest, _PAUSE_SECONDS))
        if turn is None or turn.number != number:
            return None
        began = time.monotonic()
        grown = split_paragraphs(answer_markdown(turn.text), parts)
        if turn.steps != drawn.steps or len(grown) < len(parts):
            return turn  # the next run draws it
        for index, part in enumerate(grown):
            if index == len(parts):
                boxes.append(text.markdown(part, anchors=False))
            elif part != parts[index]:
                boxes[index] = boxes[index].markdown(part, anchors=False)
        parts = grown
        if _phase(now.words, turn) != _phase(now.words, drawn):
            phase.html(_phase(now.words, turn))
        if turn != drawn:
            drawn = turn
            time.sleep(max(_DRAW_SECONDS, time.monotonic() - began))  # a very long answer takes its time
    return drawn


def _draw_ended(now: PageState, identifier: str, *, is_fresh: bool) -> None:
    if is_fresh:
        st.html(_status(now.words.phase_closing))
    elif dialog.is_open():
        answer = now.service.turns.transcript(identifier, last=1).turns[-1].answer_text
        st.markdown(answer_markdown(answer), anchors=False)
    else:
        st.rerun()


def _has_new_record(now: PageState, identifier: str, newest_record_id: str) -> bool:
    newest = now.service.folds.records(identifier, last=1)
    return bool(newest) and newest[-1].id != newest_record_id


def _phase(words: Words, turn: LiveTurn) -> str:
    if turn.stop_requested:
        return _status(f"{words.stopping}…")
    if turn.phase == "folding" and turn.phase_turns:
        return _status(words.phase_folding.format(turns=format_turns(turn.phase_turns)))
    return _status({"tool": words.phase_tool, "answering": words.phase_answering}.get(turn.phase, words.phase_waiting))


def _status(text: str) -> str:
    return f'<p class="phase" role="status">{text}</p>'
