"""Lets a run end only when the server has sent what it drew and its end, since Streamlit drops some of what is left.

A run hands each drawing, and its end, to the server's event loop. If the next run begins before the loop has sent them,
drawings are dropped: a refused message never comes back to its field, a tab stays empty, or a part inside another has
no place. An unsent end is taken for that of a run that was broken off, and then the browser never takes away what the
run didn't draw any more: Stop stays, though nothing runs. If the thread ends before the loop knows, a new one takes its
place, and what the old one left counts as nobody's. Pages that follow an answer ask several times a second, and the
loop of a busy server is late. So the thread waits at each end, before it looks for the next request.

If the page asks for the whole of itself just behind a fragment, the page is drawn into the fragment, and the browser's
own goes blank, unless the run is set back to its place.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, ParamSpec

import streamlit as st
from streamlit import runtime
from streamlit.delta_generator_singletons import context_dg_stack, get_default_dg_stack_value
from streamlit.runtime.scriptrunner import RerunData, ScriptRunnerEvent, get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState

from component.bridge import service_provider

if TYPE_CHECKING:
    from streamlit.runtime.app_session import AppSession

_PATIENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.002
_ENDS = {
    ScriptRunnerEvent.SCRIPT_STOPPED_WITH_SUCCESS,
    ScriptRunnerEvent.FRAGMENT_STOPPED_WITH_SUCCESS,
    ScriptRunnerEvent.SCRIPT_STOPPED_FOR_RERUN,
}
_AUTOMATIC = "automatic_fragments"
_P = ParamSpec("_P")


class _Server:
    loop: asyncio.AbstractEventLoop | None = None


class _Run(threading.local):
    is_whole = False


_run = _Run()


def use_loop(loop: asyncio.AbstractEventLoop | None) -> None:
    """Says which loop sends the drawings; without one (a page under test) nothing waits."""
    _Server.loop = loop


@contextmanager
def whole_run() -> Iterator[None]:
    """Draws the whole page in its block, in its own place; its run ends when all of it is sent."""
    _hold_end()
    # Streamlit has no call for it: the thread still stands where the fragment did that it drew last.
    context_dg_stack.set(get_default_dg_stack_value())
    _run.is_whole = True
    try:
        yield
    finally:
        _run.is_whole = False


def is_whole() -> bool:
    """Whether this run draws the whole page."""
    return _run.is_whole


def is_asked_for() -> bool:
    """Whether the fragment that is being drawn was itself asked for, and isn't a part of something that was."""
    return ThreadState.get().fragment_id in _fragments()


def is_served() -> bool:
    """Whether a server shows what is drawn; a page under test has none."""
    return _Server.loop is not None


def is_wanted() -> bool:
    """Whether another part of the page waits for the fragment that is being drawn, in this run or for the next one."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or context.script_requests is None:
        return False
    asked = context.script_requests._rerun_data.fragment_id_queue  # noqa: SLF001  # has no other name
    return bool({*asked, *_fragments()} - {ThreadState.get().fragment_id})


def note_automatic(*, by_timer: bool = False) -> None:
    """Says that the fragment that is being drawn need not be drawn when its run is joined with another's."""
    automatic = st.session_state.get(_AUTOMATIC, {})
    st.session_state[_AUTOMATIC] = {**automatic, ThreadState.get().fragment_id: by_timer}


def draw_once_more() -> None:
    """Has the fragment that is being drawn drawn again when this run has ended, before the browser's timer asks."""
    _request(ThreadState.get().fragment_id)


def keep_drawn(own: int) -> None:
    """Has what this run was for drawn later, though it is about to be broken off for other parts.

    That is what follows by a timer, and what another press needs whose request was joined with this one.

    Args:
        own: How many fragments the callback that breaks the run off was pressed in.
    """
    fragments, automatic = _fragments(), st.session_state.get(_AUTOMATIC, {})
    pressed = fragments - set(automatic)
    timed = {fragment for fragment in fragments if automatic.get(fragment)}
    for fragment in timed | (pressed if len(pressed) > own else set()):
        _request(fragment)


def _request(fragment: str | None) -> None:
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or context.script_requests is None or not is_served():
        return
    # Streamlit has no call for it: `st.rerun` breaks the run off, and what it didn't draw any more stays in the page.
    context.script_requests.request_rerun(
        RerunData(
            query_string=context.query_string,
            page_script_hash=context.page_script_hash,
            fragment_id=fragment,
            is_auto_rerun=True,
            cached_message_hashes=context.cached_message_hashes,
            context_info=context.context_info,
        )
    )


def is_for_page() -> bool:
    """Whether this run was asked to draw the whole page, and not parts of it."""
    return not _fragments()


def is_by_history() -> bool:
    """Whether the reader went back or forth in the browser's history, so that the URL says what to show."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def is_early() -> bool:
    """Returns whether a timer took this callback's press along: the browser sends the press itself right after.

    Streamlit's browser half puts a press into every request until its own is out. Run with the first one, a callback
    runs twice; a text that the first run puts back into its field then counts as unchanged, and is lost. A request for
    any other part is a press's own: those of one moment share one request, for the part of the first of them.
    """
    fragments, automatic = _fragments(), st.session_state.get(_AUTOMATIC, {})
    return bool(fragments) and all(automatic.get(fragment) for fragment in fragments)


def once(act: Callable[_P, None]) -> Callable[_P, None]:
    """Wraps a widget callback that does more when it runs twice: an early press isn't run."""

    @functools.wraps(act)
    def act_once(*args: _P.args, **kwargs: _P.kwargs) -> None:
        if not is_early():
            act(*args, **kwargs)

    return act_once


def _fragments() -> set[str]:
    context = get_script_run_ctx(suppress_warning=True)
    return set((context and context.fragment_ids_this_run) or ())


def delivered(draw: Callable[_P, None]) -> Callable[_P, None]:
    """Wraps what a fragment or a dialog draws: a run of it alone ends when that is sent.

    It draws nothing for a visitor who isn't signed in any more: the whole page is what has to go.
    """

    @functools.wraps(draw)
    def draw_delivered(*args: _P.args, **kwargs: _P.kwargs) -> None:
        _hold_end()
        if not _run.is_whole and service_provider.is_signed_out():
            st.rerun()
        draw(*args, **kwargs)

    return draw_delivered


def _hold_end() -> None:
    """Has this run and the later ones of its thread wait, at their ends, until the server has sent what they drew."""
    session = _app_session(_session_id())
    if session is not None and session._scriptrunner is not None:  # noqa: SLF001  # has no other name
        # Receivers are called in the order they were connected: Streamlit itself knows of the end by then.
        session._scriptrunner.on_event.connect(_on_event)  # noqa: SLF001  # nor has this


def _on_event(_runner: object, *, event: ScriptRunnerEvent, **_about: object) -> None:
    if event in _ENDS:
        identifier = _session_id()
        wait_until(lambda: not _has_unsent(identifier))


def wait_until(is_done: Callable[[], bool]) -> None:
    """Blocks until this holds, by a look on the server's loop; without a server, returns at once."""
    loop = _Server.loop
    if loop is None:
        return
    done = threading.Event()

    def look() -> None:
        if is_done():
            done.set()
        else:
            loop.call_later(_LOOK_SECONDS, look)

    with suppress(RuntimeError):  # the server is ending, and its loop is closed
        loop.call_soon_threadsafe(look)
        done.wait(_PATIENCE_SECONDS)


def _has_unsent(identifier: str) -> bool:
    session = _app_session(identifier)
    return session is not None and not session._browser_queue.is_empty()  # noqa: SLF001  # has no other name


def _session_id() -> str:
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def _app_session(identifier: str) -> AppSession | None:
    """Returns what the server keeps of a tab, None if the browser has left it."""
    return runtime.get_instance().get_app_session(identifier) if runtime.exists() else None
