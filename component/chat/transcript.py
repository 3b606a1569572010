"""Draws the middle column: questions and answers, fold and reset dividers, the branch's origin; or the empty page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import streamlit as st

from component import action, attaching, page_state, project_choice, redraw, turn_buttons, widget
from component.bridge import delivery
from component.chat import live, picture, tool_question
from component.chat.live import draw_step_list, draw_steps, draw_thoughts
from component.format import count_lines, escape_label, format_count, format_turns, zone_of
from component.markdown import answer_markdown
from component.page_state import PageState
from component.panel.card import draw_summary
from component.project import project_card
from component.redraw import Shown
from component.words.wording import day_line, describe_compaction, describe_strategy, explain, explain_error
from component.words.words import Words
from graph.attachment import Attachment, split_attached
from graph.value.record import Record
from graph.value.view import SessionView, TurnView

_SHOWN_CHARS: Final = 20_000


@delivery.fragment()
def draw_attachment_chip(words: Words, attachment: Attachment, key: str) -> None:
    """Draws an attachment as an expander; the text is sent to the browser when opened."""
    labels, chars = words.attachment, format_count(len(attachment.text))
    beginning = attaching.said_of_beginning(words, attachment)
    label = escape_label(attachment.name)
    label = f"{label} · {beginning}" if beginning else labels.chip.format(name=label, chars=chars)
    label = " · ".join((label, *attaching.said_of_unread(words, attachment)))
    if box := widget.open_box(label, f"attachment_{key}", "attach_file"):
        with box:
            st.code(attachment.text[:_SHOWN_CHARS], language=None, wrap_lines=True)
            if len(attachment.text) > _SHOWN_CHARS:
                widget.draw_note(labels.cut.format(chars=chars))


CLOSED_CHARS = 2_000  # more than twelve lines of the widest bubble
_CLAMPED_LINES = 12
_NARROWEST_LINE_EMS = 14.0
_OPENING = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^`]*$")


class Part(NamedTuple):
    """A piece of a message; `language` is None for text and "" for code without a language."""

    text: str
    language: str | None


@delivery.fragment()
def _draw_long(words: Words, text: str, key: str) -> None:
    # The number of lines depends on the width: the browser hides a button without effect.
    parts = split_code(text)
    widget.draw_clamped(words, key, lambda is_whole: _draw_parts(parts if is_whole else cut_parts(parts, CLOSED_CHARS)))


def _draw_typed(words: Words, text: str, key: str) -> None:
    if len(text) > CLOSED_CHARS or count_lines(text, _NARROWEST_LINE_EMS) > _CLAMPED_LINES:
        _draw_long(words, text, f"question_{key}")
    else:
        _draw_parts(split_code(text))


def _draw_parts(parts: list[Part]) -> None:
    for part in parts:
        if part.language is None:
            st.text(part.text)
        else:
            st.code(part.text, language=part.language or None)


def split_code(text: str) -> list[Part]:
    """Splits a message into text and fenced code, in order; an unclosed fence is text."""
    parts: list[Part] = []
    lines: list[str] = []
    begin, opening = 0, None
    for line in text.split("\n"):
        lines.append(line)
        if opening is None:
            opening = _OPENING.match(line)
            begin = len(lines)
        elif _closes(line, opening["mark"]):
            parts += _text_parts(lines[: begin - 1])
            parts.append(Part("\n".join(lines[begin:-1]), opening["language"]))
            lines, opening = [], None
    return parts + _text_parts(lines) if parts else [Part(text, None)]


def _closes(line: str, mark: str) -> bool:
    rest = line.strip()
    return len(rest) >= len(mark) and rest == mark[0] * len(rest)


def _text_parts(lines: list[str]) -> list[Part]:
    text = "\n".join(lines).strip("\n")
    return [Part(text, None)] if text.strip() else []


def cut_parts(parts: list[Part], chars: int) -> list[Part]:
    cut: list[Part] = []
    for part in parts:
        if chars <= 0:
            break
        cut.append(part._replace(text=part.text[:chars]))
        chars -= len(part.text)
    return cut


@delivery.fragment()
def draw_fold_line(words: Words, record: Record, *, is_sent: bool) -> None:
    """Draws a record's divider; the text is sent to the browser when opened."""
    # The style sheet draws the rules on both sides, which saves three elements a fold.
    key = f"fold_{record.id}" if is_sent and record.kind != "verbatim" else f"fold_{record.id}_whole"
    if box := widget.open_box(_label(words, record, is_sent=is_sent), key, "unfold_less"):
        templates = {"verbatim": words.fold_text_verbatim, "compaction": words.fold_text_compaction}
        template = templates.get(record.kind, words.fold_text) if is_sent else words.fold_text_past
        with box:
            widget.draw_note(template.format(turns=format_turns(record.turns)))
            draw_summary(words, record)


def _label(words: Words, record: Record, *, is_sent: bool) -> str:
    if record.kind == "compaction":
        return words.fold_divider_compaction.format(change=describe_compaction(words, record))
    template = words.fold_divider if is_sent else words.fold_divider_past
    template = words.fold_divider_verbatim if record.kind == "verbatim" else template
    original, summary = format_count(record.original_chars), format_count(record.summary_chars)
    return template.format(turns=format_turns(record.turns), original=original, summary=summary)


@contextmanager
def _centred(text: str, key: str) -> Iterator[None]:
    """Draws a line in the middle of the column; what the body draws stands behind it."""
    with st.container(horizontal=True, horizontal_alignment="center", vertical_alignment="center", key=key):
        st.markdown(f":small[:gray[{text}]]", width="content", text_alignment="center")
        yield


def draw_origin(now: PageState) -> None:
    if now.session is None or not now.session.forked_from:
        return
    origin, turn = now.session.forked_from, now.session.forked_after
    labels = now.words.sessions
    title = escape_label(now.service.sessions.get(origin).title) or now.words.untitled
    text = labels.branch_of.format(title=title, turn=turn) if turn else labels.branch_of_all.format(title=title)
    with _centred(f":material/alt_route: {text}", "branch_of"):
        widget.draw_action(labels.to_origin, "to_origin", "", page_state.open_session, origin, max(turn, 1))


FAILURES_TO_TELL = 3
_BY_BLOCK = ("interval", "due")
_WITHOUT_RECORDS = "window"


@delivery.fragment(key=redraw.TITLE)
def _draw_title(now: PageState) -> None:
    """Draws the chat's title above it, in the room that Streamlit's header leaves free, and in the tab."""
    now = page_state.look_again(now)
    redraw.note(redraw.TITLE, now.session.title if now.session else "")
    st.set_page_config(page_title=redraw.tab_title())
    if now.session is not None:
        text = html.escape(now.session.title or now.words.untitled)
        mark = "branch" if now.session.forked_from else ""
        with st.container(key="chat_title"):
            st.html(f'<h1 class="{mark}" title="{text}">{text}</h1>')


def draw(now: PageState) -> None:
    with st.container(key="above"):
        _draw_title(now)
    if now.session is None or now.session.turn_count == 0:
        _draw_empty(now)
        return
    identifier = now.session.session_id
    shown = redraw.read(now.service, identifier, page_state.shown_turns())
    slots = redraw.begin(shown, now.session)
    # Optional elements have their own container or are last in one, so that nothing after them is drawn again.
    with st.container(key="chat", gap="medium"):
        st.empty()  # replaces the empty page, which would stay above the turns until the run ends
        with st.container(horizontal=True, horizontal_alignment="center"):
            if count := shown.transcript.earlier_count:
                st.html(f'<p class="unprinted">{now.words.unprinted.format(count=count)}</p>', width="content")
                label = now.words.earlier.format(count=count)
                more = page_state.shown_turns() + page_state.TURNS_PER_PAGE
                widget.draw_more(label, "earlier", page_state.SHOWN_TURNS, more, "history")
        with st.container(key="begun_by"):
            if now.session.client:
                widget.draw_program(now.words.started_by_program, now.session.client, "center")
            draw_origin(now)
        draw_brought_instructions(now, "brought")
        if project_choice.is_on(now.service):
            with st.container(), widget.error_box(now.words):
                if not shown.transcript.earlier_count:
                    project_card.draw_origin(now)
        for turn in shown.transcript.turns:
            if turn.number not in slots:
                _draw_turn(now, identifier, turn, shown, now)
        for number in slots:
            delivery.fragment(key=redraw.key(number))(_draw_slot)(now, identifier, number, shown)


def draw_brought_instructions(now: PageState, key: str) -> None:
    """Draws what a chat's file would have the model told, to be used or not."""
    if now.session is None or not (text := now.session.brought_instructions):
        return
    words, take = now.words, partial(action.take_brought_instructions, now.session.session_id)
    with st.container(border=True, gap="small", key=key):
        st.markdown(f":material/assignment_late: {words.brought_instructions}")
        _draw_typed(words, text, key)
        with st.container(horizontal=True):
            widget.draw_action(words.use_brought, f"{key}_use", "", partial(take, is_used=True), type="secondary")
            widget.draw_action(words.drop_brought, f"{key}_drop", "", partial(take, is_used=False), type="secondary")


def _draw_slot(page: PageState, identifier: str, number: int, shown: Shown) -> None:
    """Draws a turn in the reserved fragment; nothing before the turn exists."""
    with widget.error_box(page.words):
        now = page_state.look_again(page)
        if now.session is None or now.session.turn_count < number:
            return
        if not delivery.is_whole():
            shown = redraw.read_slots(now.service, now.session)
        turn = shown.turn(number)
        _draw_turn(now, identifier, turn, shown, page)
        if turn.is_last:
            _draw_notices(now.words, now.session)
        redraw.note_drawn(now.session, turn, shown, has_words=True)
        return
    _draw_watch(page)


def _draw_notices(words: Words, session: SessionView) -> None:
    if session.fold_failures >= FAILURES_TO_TELL:
        text = words.fold_warning.format(count=session.fold_failures)
        reason = explain(words, session.fold_error_code) if session.fold_error_code else ""
        st.warning(f"{text} {reason}".strip(), icon=":material/warning:")
    if session.context_notice == "full":
        st.warning(words.full, icon=":material/warning:")
    elif session.context_notice == "nearly_full":
        st.info(words.nearly_full, icon=":material/info:")
    if session.project_problem is not None:
        reason = explain_error(words, session.project_problem)
        st.warning(f"{words.project.problem} {reason}", icon=":material/warning:")
    if session.unsent_messages:
        st.markdown(f":material/visibility_off: :small[:gray[{words.unsent.format(count=session.unsent_messages)}]]")


def _draw_empty(now: PageState) -> None:
    words = now.words
    with st.container(), st.container(key="empty", gap="small"):
        if project_choice.is_on(now.service):
            project_card.draw(now)
            if project_card.is_known():  # the project's suggestions replace the general ones
                return
        st.title(words.empty_title, anchor=False, text_alignment="center")
        strategy, fold_when = page_state.chosen(page_state.STRATEGY), page_state.chosen(page_state.FOLD_WHEN)
        note = describe_strategy(words, strategy, fold_when, now.service.settings.window_turns)
        intro = words.empty_intro if (strategy, fold_when) == _BY_BLOCK else note
        st.markdown(f":gray[{intro}]", text_alignment="center")
        with st.grid(2, min_column_width=220, key="suggestions"):
            example, icon = action.open_example, ":material/auto_stories:"
            st.button(words.open_example, key="open_example", icon=icon, width="stretch", on_click=example)
            offered = words.suggestions_offline if now.service.settings.is_offline else words.suggestions
            for number, (icon, text) in enumerate(offered.items()):
                key = f"suggestion_{number}"
                st.button(text, key=key, icon=icon, width="stretch", on_click=action.send, args=(text,))
        if now.service.settings.is_offline:
            st.markdown(f":small[:gray[{words.offline_note}]]", text_alignment="center")


def _draw_turn(now: PageState, identifier: str, turn: TurnView, shown: Shown, page: PageState) -> None:
    _draw_day(now, turn, shown)
    with st.container(key=f"turn_{turn.number}", gap="small"):
        _draw_words(now, identifier, turn, shown)
        draw_tail = delivery.fragment(key=redraw.key(turn.number, "tail"))(_draw_tail)
        (draw_tail if redraw.has_slot(turn.number) else _draw_tail)(page, identifier, turn, shown)


def _draw_tail(page: PageState, identifier: str, turn: TurnView, shown: Shown) -> None:
    """Draws what stands below a turn's words and changes with the next message: its actions and dividers."""
    with widget.error_box(page.words):
        now = page_state.look_again(page)
        if now.session is not None and delivery.is_asked_for():
            shown = redraw.read_slots(now.service, now.session)
            turn = shown.turn(turn.number)
            redraw.note_drawn(now.session, turn, shown, has_words=False)
        if turn.status != "running":
            _draw_actions(now, identifier, turn, shown)
        is_sent = now.session is not None and now.session.strategy != _WITHOUT_RECORDS
        for record in redraw.ending_with(turn, shown.records):
            draw_fold_line(now.words, record, is_sent=is_sent)
        for record in redraw.ending_with(turn, shown.past):
            with st.container(key=f"past_{record.id}"):  # dimmed by the style sheet
                draw_fold_line(now.words, record, is_sent=False)
        if turn.number in shown.transcript.reset_after:
            with _centred(f":material/restart_alt: {now.words.reset_divider}", f"reset_{turn.number}"):
                if shown.transcript.can_undo_reset and turn.is_last:
                    widget.draw_action(now.words.undo, "undo_reset", "undo", action.undo_reset, identifier)
    if turn.is_last and turn.status != "running":
        _draw_watch(page)


def _draw_watch(page: PageState) -> None:
    if page.session is not None:
        with st.container(key="watch"):
            live.watch(page, page.session)


def _draw_day(now: PageState, turn: TurnView, shown: Shown) -> None:
    if turn.started_at is None:
        return
    index = turn.number - shown.transcript.turns[0].number
    before = shown.transcript.turns[index - 1].started_at if index else shown.transcript.previous_at
    if line := day_line(now.words, turn.started_at, before, zone_of(now.time_zone)):
        st.html(line)


def _draw_words(now: PageState, identifier: str, turn: TurnView, shown: Shown) -> None:
    _draw_question(now, identifier, turn, shown)
    if turn.status == "running":
        live.draw(now, identifier, turn.number)
        return
    turn = page_state.shown_version(now.service, identifier, turn)
    with st.chat_message("assistant"):
        if turn.thought_seconds:
            draw_thoughts(now, identifier, turn)
        pending = [step for step in turn.steps if step.status == "running"]
        if ended := tuple(step for step in turn.steps if step.status != "running"):
            draw_steps(now, identifier, replace(turn, steps=ended))
        if turn_buttons.is_open(identifier, turn.number, "edit_answer"):
            turn_buttons.draw_form(now.words, identifier, turn, "edit_answer")
        elif turn.answer_text:
            st.markdown(answer_markdown(turn.answer_text), anchors=False)
        draw_step_list(now, pending)
        tool_question.draw(now.words, identifier, turn)
        _draw_outcome(now.words, turn)


def _draw_question(now: PageState, identifier: str, turn: TurnView, shown: Shown) -> None:
    words, key = now.words, f"{identifier}_{turn.number}"
    if turn_buttons.is_open(identifier, turn.number):
        turn_buttons.draw_form(words, identifier, turn)
        return
    lines = turn.user_text.split("\n")  # the last ones stand for the pictures
    typed, attachments = split_attached("\n".join(lines[: len(lines) - len(turn.images)]))
    with st.chat_message("user"):
        if turn.client and now.session is not None and turn.client != now.session.client:  # that stands above the chat
            widget.draw_program(words.program, turn.client)
        if turn.images:
            with widget.error_box(words):
                picture.draw(words, identifier, turn.images, key)
        if typed or not (attachments or turn.images):
            _draw_typed(words, typed, key)
        for number, attachment in enumerate(attachments):
            draw_attachment_chip(words, attachment, f"{key}_{number}")
        if turn.status != "running":
            turn_buttons.draw_question(words, identifier, turn, is_pinned=turn.user_message_id in shown.pinned)
    if siblings := shown.siblings.get(turn.number):
        turn_buttons.draw_siblings(words, identifier, turn.number, siblings)


def _draw_outcome(words: Words, turn: TurnView) -> None:
    if turn.status == "failed":
        reason = explain(words, turn.error_code, turn.error_detail)
        title = "" if turn.answer_text else f"**{words.failed_title}**  \n"  # the title reports a missing answer
        saved = f" {words.failed_kept}" if turn.is_last else ""  # only the last turn can be retried
        st.error(f"{title}{reason}{saved}", icon=":material/error:")
    elif turn.status == "stopped":
        note = words.stopped_partial if turn.answer_text else words.stopped_empty
        st.markdown(f":material/stop_circle: :small[:gray[{note}]]")
    elif turn.status == "requires_action":
        note = words.client_tools.format(client=escape_label(turn.client))
        st.markdown(f":material/hourglass_empty: :small[:gray[{note}]]")
    elif turn.is_cut:
        note = words.answer_repeats if turn.is_endless else words.answer_cut
        st.markdown(f":material/content_cut: :small[:gray[{note}]]")
    elif turn.is_edited:
        st.markdown(f":material/edit: :small[:gray[{words.sessions.answer_edited}]]")


def _draw_actions(now: PageState, identifier: str, turn: TurnView, shown: Shown) -> None:
    live_attempt, turn = turn.attempt, page_state.shown_version(now.service, identifier, turn)
    is_aside = turn.attempt != live_attempt
    is_pinned, zone = turn.answer_message_id in shown.pinned, zone_of(now.time_zone)
    buttons = turn_buttons.answer(now.words, identifier, turn, zone, is_pinned=is_pinned, is_aside=is_aside)
    if not turn.is_last:
        turn_buttons.draw(buttons, "actions")
        return
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key=f"last_actions_{turn.number}"):
        turn_buttons.draw(buttons)
        if is_aside:
            return
        if turn.status == "finished":
            widget.draw_action(now.words.regenerate, "regenerate", "refresh", action.regenerate, identifier)
        elif turn.status in {"failed", "stopped"}:
            widget.draw_action(now.words.retry, "retry", "refresh", action.retry, identifier, type="secondary")
        if _is_unfinished(turn):
            widget.draw_action(now.words.go_on, "go_on", "play_arrow", action.go_on, now.words.go_on, type="secondary")


def _is_unfinished(turn: TurnView) -> bool:
    """Whether an answer has begun that the next message can have continued: the model is sent what there is of it."""
    is_cut = turn.status in {"failed", "stopped"} or (turn.status == "finished" and turn.is_cut and not turn.is_endless)
    return is_cut and bool(turn.answer_text)
