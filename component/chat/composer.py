"""The bottom of the page: context gauge, stop button, panel button, message field, and the messages sent from it.

The page's script stores a message until it is reported as sent or refused (`asset/outbox.js`) and repeats it meanwhile,
since Streamlit drops the first of two requests that wait for a run, and a lost connection what is on its way.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import streamlit as st
from pydantic import BaseModel, Field, ValidationError

from component import action, attaching, background, page_state, project_choice, reading, redraw, turn_buttons, widget
from component.bridge import delivery, service_provider
from component.chat import model_menu, tool_menu
from component.format import format_count, format_percent, format_tokens
from component.page_state import PageState
from component.panel import record_dialog, summary_panel
from component.words.words import Words
from graph.value.error import BusyError, TurnfoldError
from graph.value.view import Gauge

_HEARD: Final = "heard"
_WAITING: Final = "waiting_messages"
_MOST_REPORTED: Final = 8  # the newest are enough: the script repeats messages without a report


class _Sent(BaseModel, strict=True):
    """A message from the script.

    Attributes:
        session: The one it was typed in, or a new one to be created.
        files: The number of the last file that goes with it; 0 if none does.
        waits: Not "" if it isn't to be sent yet, but has files that are to be set aside for it.
        is_queued: It waited its turn, and isn't sent after an answer that failed.
        tries: How often it was reported as waiting.
        behind: How many of its session's messages wait.
    """

    id: str = Field(pattern="^[0-9a-f]{24}$")
    text: str
    session: str = Field(min_length=1)
    is_new: bool
    files: int = 0
    waits: str
    is_queued: bool
    tries: int
    behind: int = 0


@delivery.once
def take_sent(sent: object) -> None:
    """Widget callback: sends the messages and runs the commands that are new."""
    heard: dict[str, str | None] = st.session_state.setdefault(_HEARD, {})
    for message in _messages(sent):
        if message.id not in heard:
            _take(message, heard)
        began = heard.get(message.id) if message.is_new else None
        if began and page_state.session_id() is None:
            page_state.open_session(began)
    redraw.changed()


def take_back(message_id: str) -> None:
    """Forgets a message that waited; its files are again for the next one."""
    st.session_state.get(_WAITING, {}).pop(message_id, None)
    attaching.take_back(f"user-{message_id}")
    redraw.changed()


def _take(message: _Sent, heard: dict[str, str | None]) -> None:
    key = f"user-{message.id}"
    read = 0 if message.tries else st.session_state.get(attaching.READ, 0)
    is_lost = message.files > read and key not in attaching.aside()
    attaching.set_aside(key, 0 if is_lost else message.files)
    waiting: dict[str, int] = st.session_state.setdefault(_WAITING, {})
    try:
        if message.waits:
            raise BusyError  # noqa: TRY301  # reported like one that came too early
        heard[message.id] = action.take(
            message.text, message.session, message_id=key, is_lost=is_lost, is_queued=message.is_queued
        )
        waiting.pop(message.id, None)
    except BusyError:
        waiting[message.id] = message.tries
    if message.id in waiting or message.behind:
        action.expect_message(message.session)


@delivery.fragment(key=redraw.HEARD)
def draw_outbox() -> None:
    """Reports the results of the newest messages to the script, in an invisible element."""
    newest = list(st.session_state.get(_HEARD, {}).items())[-_MOST_REPORTED:]
    taken = " ".join(key for key, session in newest if session is not None)
    refused = " ".join(key for key, session in newest if session is None)
    waiting = " ".join(f"{key}.{tries}" for key, tries in st.session_state.get(_WAITING, {}).items())
    identifier, status = page_state.session_id() or "", ""
    with suppress(TurnfoldError):
        turns = reading.transcript(service_provider.current(), identifier, 1).turns if identifier else ()
        status = turns[-1].status if turns else ""
    st.html(
        f'<i class="heard" hidden data-taken="{taken}" data-refused="{refused}" data-waiting="{waiting}" '
        f'data-session="{html.escape(identifier)}" data-turn="{status}" '
        f'data-pressed="{turn_buttons.pressed_at()}" data-read="{st.session_state.get(attaching.READ, 0)}"></i>'
    )


def _messages(sent: object) -> Iterator[_Sent]:
    for one in sent if isinstance(sent, list) else ():
        with suppress(ValidationError):
            yield _Sent.model_validate(one)


def draw(now: PageState) -> None:
    with st.bottom:
        st.html(
            f"{widget.icon_button('to-end', 'arrow_downward', now.words.to_end)}"
            f'<p class="disconnected" role="alert">{now.words.disconnected}</p>'
            f'<p class="reading" role="status">{now.words.attachment.reading}</p>{_commands(now.words)}'
        )
        _draw_above(now)
        _draw_field(now)
        draw_outbox()


@delivery.fragment()
def _draw_field(now: PageState) -> None:
    # Placed explicitly: with a field at its default place, Streamlit also scrolls the page, against scroll.js.
    st.chat_input(now.words.ask, key=page_state.ASK, on_submit=action.send_typed)
    st.html(widget.icon_button("attach", "add", now.words.attachment.attach))
    # Hidden: it uploads files by themselves, whatever is being written in the field.
    st.chat_input("", key=page_state.FILES, accept_file="multiple", on_submit=action.take_files)


@delivery.fragment(key=redraw.COMPOSER)
def _draw_above(page: PageState) -> None:
    """Draws what changes with each answer: notices and attached files, and the bar with the gauge."""
    # Always one container, so that notices above the bar don't shift the positions of the bar's elements.
    with st.container(key="told", gap="small"):
        error = page_state.notice()
        if error is not None:
            with st.container(horizontal=True, wrap=False, gap="xsmall", vertical_alignment="center", key="notice"):
                widget.show_error(page.words, error)
                widget.draw_action(page.words.steering.close, "icon_close_notice", "close", page_state.set_notice, None)
        with widget.error_box(page.words):
            record_dialog.draw_undo(page, "bar")
        if background.is_pending():
            background.draw()
        with widget.error_box(page.words):
            attaching.draw(page.words)
        over = st.container(key="over")
    is_running = False
    bar = st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False, key="bar")
    with bar, widget.error_box(page.words):
        now = page_state.look_again(page)
        is_running = now.session is not None and now.session.is_running
        redraw.note(redraw.COMPOSER, (now.session is not None and now.session.can_stop, now.following.ready))
        with widget.error_box(now.words):
            files = attaching.attached().values()
            gauge = _gauge(now, files)
            model_menu.draw(now, gauge)
            tool_menu.draw(now)
            _draw_gauge(now, gauge)
            if files and gauge.sent_tokens > gauge.window_tokens:
                with over:
                    _draw_too_large(now.words, gauge, max(attaching.as_sent(), key=attaching.tokens_of).name)
        if now.session is not None and (now.session.can_stop or background.can_stop()):
            looks = {"type": "secondary", "shortcut": "Escape"}
            widget.draw_action(now.words.stop, "stop", "stop_circle", action.stop, now.session.session_id, **looks)
        with widget.error_box(now.words):
            summary_panel.draw_opener(now)
    page_state.draw_in_passing()
    # Drawn last: an answer received meanwhile may have outdated other parts. The end of one that runs is still to come.
    if not delivery.is_whole() and not is_running:
        redraw.ask(redraw.stale_parts(keeps_order=True) or ())


def _gauge(now: PageState, files: Collection[attaching.Kept]) -> Gauge:
    options, language = page_state.options(), now.words.language
    identifier = now.session.session_id if now.session else None
    read = partial(now.service.folds.gauge, identifier, options=options, language=language, files=files)
    if identifier is None or files or project_choice.is_on(now.service):  # a folder changes unheard
        return read()
    return reading.once(now.service, identifier, ("gauge", repr(options), language), read, of="all")


def _commands(words: Words) -> str:
    """Returns the list that the page's script shows while a command is typed."""
    rows = (
        f'<li role="option" id="slash-{name}" data-command="/{name}"><b>/{name}</b> {what}</li>'
        for name, what in words.commands.items()
    )
    return f'<ul class="slash" role="listbox" aria-label="{words.shortcuts_label}" hidden>{"".join(rows)}</ul>'


_WHOLE: Final = 100  # per cent


def _draw_too_large(words: Words, gauge: Gauge, name: str) -> None:
    sent, window = format_tokens(gauge.sent_tokens, is_usage=False), format_count(gauge.window_tokens)
    told = words.attachment.over.format(name=f"<b>{html.escape(name)}</b>", sent=sent, window=window)
    st.html(f'<p class="refused" role="alert">{told}</p>')


def _draw_gauge(now: PageState, gauge: Gauge) -> None:
    words = now.words
    percent = format_percent(gauge.sent_tokens, gauge.window_tokens)
    sent = format_tokens(gauge.sent_tokens, is_usage=False)
    hints = [words.gauge_help_estimate]
    if gauge.reported_tokens is not None:
        hints.append(words.gauge_help_usage.format(tokens=format_count(gauge.reported_tokens)))
    if gauge.is_guess:
        hints.append(words.window_guess_help)
    name = html.escape(page_state.chosen(page_state.MODEL))
    st.html(
        f'<div class="gauge{" over" if percent > _WHOLE else ""}" data-model="{name}" title="{"&#10;".join(hints)}">'
        f'<span class="track" role="meter" aria-label="{words.gauge}" aria-valuemin="0" aria-valuemax="100" '
        f'aria-valuenow="{min(percent, 100)}"><span style="width:{min(percent, 100)}%"></span></span>'
        f'<span><span class="word">{words.gauge} </span><b>≈{percent}%</b>'
        f'<span class="figures"> · {sent} / {model_menu.window_label(words, gauge)}</span></span></div>'
    )
