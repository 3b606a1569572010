"""Draws the middle column: the turns of the session, or the empty page."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from component import action, fold_line, live, page_state, question, reset_divider
from component.markdown import answer_markdown
from component.page_state import PageState
from component.step import draw_steps
from component.word import Words
from component.wording import explain
from graph.record import Record
from graph.view import SessionView, TurnView

FAILURES_TO_TELL = 3
_BY_TURNS = "interval"
_WITHOUT_RECORDS = "window"


def draw(now: PageState) -> None:
    """Draws the turns that this tab shows, oldest first."""
    if now.session is None or now.session.turn_count == 0:
        _draw_empty(now)
        st.container()  # where a chat has its watch
        return
    identifier = now.session.session_id
    transcript = now.service.turns.transcript(identifier, last=page_state.shown_turns())
    # A block is three turns, so these records reach back to the oldest turn shown.
    records = now.service.folds.records(identifier, last=len(transcript.turns) // 3 + 1)
    resets = [turn for turn in transcript.reset_after if turn >= transcript.turns[0].number]
    past = now.service.folds.past_records(identifier, last=len(transcript.turns) // 3 + 1) if resets else ()
    # What comes and goes has a container of its own or the last place in one, so that nothing behind it is drawn anew.
    with st.container(key="chat", gap="medium"):
        with st.container(horizontal=True, horizontal_alignment="center"):
            if transcript.earlier_count:
                _draw_earlier(now.words, transcript.earlier_count)
        for turn in transcript.turns:
            with st.container(key=f"turn_{turn.number}", gap="small"):
                _draw_turn(now, identifier, turn, records[-1].id if records else "")
                for record in _ending_with(turn.number, records):
                    fold_line.draw(now.words, record, is_sent=now.session.strategy != _WITHOUT_RECORDS)
                for record in _ending_with(turn.number, past):
                    with st.container(key=f"past_{record.id}"):  # dimmed by the style sheet
                        fold_line.draw(now.words, record, is_sent=False)
                if turn.number in resets:
                    can_undo = transcript.can_undo_reset and turn.is_last
                    reset_divider.draw_divider(now.words, identifier, turn.number, can_undo=can_undo)
        _draw_notices(now.words, now.session)
    with st.container():
        if not now.session.is_running:
            live.watch(now, identifier, transcript.turns[-1])
    reset_divider.draw_dialog(now, identifier)


def _draw_earlier(words: Words, count: int) -> None:
    st.button(
        words.earlier.format(count=count),
        key="earlier",
        type="tertiary",
        icon=":material/history:",
        on_click=page_state.show_earlier,
    )


def _draw_notices(words: Words, session: SessionView) -> None:
    """Draws the warnings about failing folds, a full context and unsent messages."""
    if session.fold_failures >= FAILURES_TO_TELL:
        text = words.fold_warning.format(count=session.fold_failures)
        reason = explain(words, session.fold_error_code) if session.fold_error_code else ""
        st.warning(f"{text} {reason}".strip(), icon=":material/warning:")
    if session.context_notice == "full":
        st.warning(words.full, icon=":material/warning:")
    elif session.context_notice == "nearly_full":
        st.info(words.nearly_full, icon=":material/info:")
    if session.unsent_messages:
        st.markdown(f":material/visibility_off: :small[:gray[{words.unsent.format(count=session.unsent_messages)}]]")


def _draw_empty(now: PageState) -> None:
    words = now.words
    with st.container(key="empty", gap="small"):
        st.title(words.empty_title, anchor=False, text_alignment="center")
        strategy = st.session_state[page_state.STRATEGY]
        lead = words.empty_lead if strategy == _BY_TURNS else words.strategy_notes.get(strategy, "")
        st.markdown(f":gray[{lead}]", text_alignment="center")
        with st.grid(2, min_column_width=220, key="suggestions"):
            st.button(
                words.open_example,
                key="open_example",
                icon=":material/auto_stories:",
                width="stretch",
                on_click=action.open_example,
            )
            for number, suggestion in enumerate(words.suggestions):
                st.button(
                    suggestion.text,
                    key=f"suggestion_{number}",
                    icon=suggestion.icon,
                    width="stretch",
                    on_click=action.send,
                    args=(suggestion.text,),
                )
        if now.service.settings.is_offline:
            st.markdown(f":small[:gray[{words.offline_note}]]", text_alignment="center")


def _draw_turn(now: PageState, identifier: str, turn: TurnView, newest_record_id: str) -> None:
    question.draw(now.words, turn.user_text, f"{identifier}_{turn.number}")
    if turn.status == "running":
        live.draw(now, identifier, turn.number, newest_record_id)
        return
    with st.chat_message("assistant"):
        if turn.steps:
            draw_steps(now.words, turn)
        if turn.answer_text:
            st.markdown(answer_markdown(turn.answer_text), anchors=False)
        _draw_outcome(now.words, turn)
    _draw_actions(now.words, identifier, turn)


def _draw_outcome(words: Words, turn: TurnView) -> None:
    if turn.status == "failed":
        reason = explain(words, turn.error_code, turn.error_detail)
        title = "" if turn.answer_text else f"**{words.failed_title}**  \n"  # the title says there is no answer
        kept = f" {words.failed_kept}" if turn.is_last else ""  # an older turn can't be tried again
        st.error(f"{title}{reason}{kept}", icon=":material/error:")
    elif turn.status == "stopped":
        note = words.stopped_partial if turn.answer_text else words.stopped_empty
        st.markdown(f":material/stop_circle: :small[:gray[{note}]]")
    elif turn.is_cut:
        st.markdown(f":material/content_cut: :small[:gray[{words.answer_cut}]]")


def _draw_actions(words: Words, identifier: str, turn: TurnView) -> None:
    if not turn.is_last:
        _draw_copy(words, turn)
        return
    with st.container(horizontal=True, gap="xsmall", key=f"last_actions_{turn.number}"):
        _draw_copy(words, turn)
        if turn.status == "finished":
            st.button(
                words.regenerate,
                key="regenerate",
                type="tertiary",
                icon=":material/refresh:",
                on_click=action.regenerate,
                args=(identifier,),
            )
        else:
            st.button(words.retry, key="retry", icon=":material/refresh:", on_click=action.retry, args=(identifier,))


def _draw_copy(words: Words, turn: TurnView) -> None:
    if turn.answer_text:
        st.html(
            f'<button type="button" class="copy" title="{words.copy}" aria-label="{words.copy}" '
            f'data-copy="{html.escape(turn.answer_text)}"></button>',
            width="content",
        )


def _ending_with(turn: int, records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.turns and record.turns[-1] == turn]
