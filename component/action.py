"""Widget callbacks for clicks and sent messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import streamlit as st

from component import attaching, background, dialog, page_state, redraw
from component.bridge import delivery, service_provider
from component.format import escape_label
from component.words.wording import words_of
from graph.value.error import AttachmentError, BusyError, InputError, NotFoundError, TurnfoldError

if TYPE_CHECKING:
    from graph.service import ChatService
    from graph.value.view import TurnView, Word

_LEFT: Final = "left_by_deletion"  # the chat that was open when it was deleted
HELP_DIALOG: Final = "help"
_SLASH: Final = re.compile(r"\s*/([^\W\d_]+)\s*")
_ASKED_ABOUT: Final = "asked_about_command"
_GIVEN: Final = "words_given"  # to the calls of one turn that ask first
TurnPlace = tuple[str, int, int]  # session, turn, attempt


def take_files() -> None:
    if _service() is not None:
        attaching.take(st.session_state[page_state.FILES].files)
    if not delivery.is_early():
        redraw.changed()


@delivery.once
def send_typed() -> None:
    """Sends a text typed before the page's script was loaded; if refused, it is put back into the input."""
    text = st.session_state[page_state.ASK]
    if _send_here(text):
        redraw.changed()
    else:
        st.session_state[page_state.ASK] = text


def take(text: str, identifier: str, *, message_id: str, is_lost: bool, is_queued: bool = False) -> str | None:
    """Sends a message to a session, or runs it as a command of the open one, for which the files stay.

    Returns the session's id, "" for a command without a session; None if refused.

    Raises:
        BusyError: It has to wait for an answer; or, if `is_queued`, for the user, as the one before it failed or asks.
    """
    service = _service()
    if service is None:
        return None
    command = service.folds.command_of(text)
    if command is None:
        return _take_text(text, identifier, message_id, is_lost=is_lost, is_queued=is_queued)
    attaching.take_back(message_id)
    opened, words = page_state.session_id(), words_of(st.session_state[page_state.LANGUAGE])
    if opened is None:
        page_state.queue_toast(words.command_needs_chat)
        return ""
    if identifier != opened:
        return None
    redraw.need_page()
    name, instruction = command
    if name == "compact":
        background.start_compaction(identifier, instruction)
    elif not _try(lambda: _reset(service, identifier, instruction), passes_on=BusyError.code):
        return None
    return identifier


def _reset(service: ChatService, identifier: str, words: str) -> None:
    if words:
        raise InputError("reset_words")
    service.folds.reset(identifier)
    background.forget_change()


def _is_doubtful(name: str) -> bool:
    """Asks whether an unknown command, probably a typing error, is meant as text; it is, if sent again."""
    words = words_of(st.session_state[page_state.LANGUAGE])
    if st.session_state.pop(_ASKED_ABOUT, None) == name:
        return False
    st.session_state[_ASKED_ABOUT] = name
    nearest = next(iter(get_close_matches(name.lower(), words.commands, 1)), "help")
    told = words.unknown_command.format(command=escape_label(f"/{name}"), nearest=f"/{nearest}")
    page_state.queue_toast(told, ":material/info:")
    return True


def _take_text(text: str, identifier: str, message_id: str, *, is_lost: bool, is_queued: bool) -> str | None:
    """Sends a message, or shows the help; as `take`."""
    if slash := _SLASH.fullmatch(text):
        if slash[1].lower() == "help":
            attaching.take_back(message_id)
            redraw.need_page()
            dialog.request(HELP_DIALOG)
            return ""
        if _is_doubtful(slash[1]):
            attaching.take_back(message_id)
            return None
    is_sent = _try(
        lambda: _send_once(text, identifier, message_id, is_lost=is_lost, is_queued=is_queued),
        passes_on=BusyError.code,
    )
    (attaching.sent if is_sent else attaching.take_back)(message_id)
    return identifier if is_sent else None


def _send_once(text: str, identifier: str, message_id: str, *, is_lost: bool, is_queued: bool) -> None:
    """Sends a message; if its files are gone, it was already sent or is refused by a `TurnfoldError`."""
    service, files = service_provider.current(), attaching.aside().get(message_id, {}).values()
    newest: Sequence[TurnView] = ()
    if is_queued or is_lost:
        with suppress(NotFoundError):
            newest = service.turns.transcript(identifier).turns
    if is_lost:
        if any(turn.user_message_id == message_id for turn in newest):
            return
        raise AttachmentError("lost")
    is_held = is_queued and newest and newest[-1].status in {"failed", "asking"}
    if is_held and newest[-1].user_message_id != message_id:
        raise BusyError
    message, images = attaching.message_of(text, files), attaching.images_of(files)
    service.turns.send(identifier, message, message_id=message_id, options=page_state.options(), images=images)


def take_brought_instructions(identifier: str, *, is_used: bool) -> None:
    _try(lambda: service_provider.current().instructions.take_brought(identifier, is_used=is_used))
    redraw.page()


def undo_reset(identifier: str) -> None:
    _try(lambda: service_provider.current().folds.undo_reset(identifier))
    redraw.page()


def pin_message(message_id: str, *, is_pinned: bool) -> None:
    def change() -> None:
        folds = service_provider.current().folds
        (folds.pin if is_pinned else folds.unpin)(page_state.session_id() or "", message_id)

    _try(change)


def send(text: str) -> None:
    _send_here(text)


def _send_here(text: str) -> bool:
    service, opened = _service(), page_state.session_id()
    if service is None:
        return False
    identifier = opened or service.sessions.new_id()
    try:
        taken_by = take(text, identifier, message_id=f"user-{uuid4().hex}", is_lost=False)
    except BusyError as error:
        page_state.set_notice(error)
        return False
    if taken_by and opened is None:
        page_state.open_session(identifier)
    return taken_by is not None


def expect_message(identifier: str) -> None:
    """Says that a message waits for the running answer."""

    def expect() -> None:
        with suppress(NotFoundError):  # the first message of a chat is on its way, too
            service_provider.current().folds.expect_message(identifier)

    _try(expect)


def stop(identifier: str) -> None:
    _try(lambda: service_provider.current().turns.stop(identifier))


def choose_tools(on: Sequence[str], off: Sequence[str]) -> None:
    """Switches tools of MCP servers on and off in the open chat, or in the one that the next message begins."""
    identifier = page_state.session_id()

    def choose() -> None:
        mcp, new = service_provider.current().mcp, page_state.new_tools()
        chosen = {*mcp.choices(identifier or "", chosen=new).chosen}.difference(off).union(on)
        if identifier is None:
            st.session_state[page_state.NEW_TOOLS] = tuple(sorted(chosen))
        else:
            mcp.choose(identifier, chosen)

    _try(choose)


def ask_again(offered: str) -> None:
    _try(lambda: service_provider.current().mcp.ask_again(page_state.session_id() or "", offered))


def start_server(name: str) -> None:
    _try(lambda: service_provider.current().mcp.start(name))


def words_given(place: TurnPlace) -> dict[str, Word]:
    """Returns what the user has said so far to the calls that a turn asks about."""
    said_at, given = st.session_state.get(_GIVEN, (None, {}))
    return given if said_at == place else {}


@delivery.once
def answer_call(place: TurnPlace, call_id: str, word: Word) -> None:
    """Says a word to a call; the turn goes on when each of its calls has one."""
    given = {**words_given(place), call_id: word}
    st.session_state[_GIVEN] = place, given

    def answer() -> None:
        mcp = service_provider.current().mcp
        asked = [call.call_id for call in mcp.pending(place[0])]
        if given.keys() >= {*asked}:
            if asked:
                mcp.answer(place[0], {call: given[call] for call in asked}, options=page_state.options())
            del st.session_state[_GIVEN]

    if not _try(answer) or _GIVEN not in st.session_state:  # else a call has no word yet, and its turn is drawn again
        redraw.changed()


@delivery.once
def go_on(word: str) -> None:
    """Sends the word that has an unfinished answer continued, without the files chosen for the next message."""
    _send_here(word)
    redraw.changed()


def retry(identifier: str) -> None:
    _try(lambda: service_provider.current().turns.retry(identifier, options=page_state.options()))
    redraw.changed()


def regenerate(identifier: str) -> None:
    _try(lambda: service_provider.current().turns.regenerate(identifier, options=page_state.options()))
    redraw.changed()


def regenerate_in_branch(identifier: str, turn: int) -> None:
    options = page_state.options()
    _open_branch(lambda: service_provider.current().turns.regenerate(identifier, turn=turn, options=options).session_id)


def edit(identifier: str, turn: int, text: str, *, is_answer: bool, on_done: Callable[[], None]) -> None:
    """Asks an edited question in a branch, or saves an edited answer."""

    def edit_it() -> str:
        service = service_provider.current()
        if is_answer:
            edited = service.sessions.edit_answer(identifier, turn, text)
        else:
            edited = service.turns.edit(identifier, turn, text, options=page_state.options())
        on_done()  # not behind this: `_open_branch` ends the callback
        return edited

    _open_branch(edit_it)


def _open_branch(make: Callable[[], str]) -> None:
    _try(lambda: page_state.open_session(make()))
    redraw.changed()


def choose_attempt(identifier: str, turn: int, attempt: int) -> None:
    _try(lambda: service_provider.current().sessions.choose_attempt(identifier, turn, attempt))


def open_example() -> None:
    spoken = st.session_state[page_state.LANGUAGE]
    _try(lambda: page_state.open_session(service_provider.current().sessions.open_example(spoken)))


@delivery.once
def rename(identifier: str) -> None:
    """Renames a session to the dialog's title; an empty title keeps the dialog open."""
    title = str(st.session_state[page_state.NEW_TITLE]).strip()
    if not title:
        return
    dialog.close()
    _try(lambda: service_provider.current().sessions.rename(identifier, title))


def pin(identifier: str, *, is_pinned: bool) -> None:
    _try(lambda: service_provider.current().sessions.pin(identifier, is_pinned))
    redraw.changed()


def fork(identifier: str, *, after_turn: int) -> None:
    _open_branch(lambda: service_provider.current().turns.fork(identifier, after_turn=after_turn))


def delete(identifiers: Sequence[str]) -> None:
    """Deletes sessions, with some seconds to undo; leaves the open one if it's among them."""
    opened = page_state.session_id()
    if _try(lambda: service_provider.current().sessions.delete_many(identifiers)):
        st.session_state[page_state.SELECTING] = False
        if opened in identifiers:
            page_state.open_session(None)
            st.session_state[_LEFT] = opened
    redraw.changed()


def undo_delete(identifiers: Sequence[str]) -> None:
    left = st.session_state.get(_LEFT)
    is_done = _try(lambda: service_provider.current().sessions.undo_delete(identifiers))
    if is_done and left in identifiers and page_state.session_id() is None:
        page_state.open_session(left)
    redraw.page()


@delivery.once
def sign_out_everywhere() -> None:
    dialog.close()
    if _try(lambda: service_provider.current().sign_out_everywhere()):
        st.logout()


def import_sessions(text: str) -> int:
    taken: list[str] = []
    if _try(lambda: taken.extend(service_provider.current().sessions.import_session(text.split("\n")))) and taken:
        page_state.open_session(taken[0])
    return len(taken)


def _service() -> ChatService | None:
    try:
        return service_provider.current()
    except TurnfoldError as error:
        page_state.set_notice(error)
        return None


def _try(action: Callable[[], object], *, passes_on: str = "") -> bool:
    if delivery.is_early():
        return False
    return page_state.attempt(action, passes_on)
