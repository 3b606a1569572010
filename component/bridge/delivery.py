"""Delays the end of a run until the server has sent everything drawn, as Streamlit may drop unsent messages.

A run queues each drawing, and its end, on the server's event loop. If the next run starts before the loop has sent
them, drawings are dropped: a refused message never returns to its input, a tab stays empty, or a nested element has no
parent. An unsent end is taken for that of an interrupted run, and the browser then keeps elements the run no longer
drew: the stop button stays after the turn. If the thread ends unnoticed by the loop, a new thread replaces it, and the
old one's messages are discarded. Pages that follow an answer send several requests a second, and the loop of a busy
server is late. So the thread waits at each end before it takes the next request.

If a request for the whole page directly follows a fragment run, Streamlit draws the page into the fragment's container
and the browser's page goes blank, unless the container stack is reset.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, ParamSpec

import streamlit as st
from streamlit import runtime
from streamlit.delta_generator_singletons import context_dg_stack, get_default_dg_stack_value
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.app_session import AppSessionState
from streamlit.runtime.forward_msg_cache import populate_hash_if_needed
from streamlit.runtime.scriptrunner import RerunData, ScriptRunnerEvent, get_script_run_ctx
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.scriptrunner_utils.script_run_context import RunLocation, ThreadState

from component.bridge import service_provider

if TYPE_CHECKING:
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from streamlit.runtime.app_session import AppSession

_PATIENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.002
_GONE_SECONDS = 300.0  # Streamlit forgets a tab sooner
_HASH_CHARS = 8
_ENDS = {
    ScriptRunnerEvent.SCRIPT_STOPPED_WITH_SUCCESS,
    ScriptRunnerEvent.FRAGMENT_STOPPED_WITH_SUCCESS,
    ScriptRunnerEvent.SCRIPT_STOPPED_FOR_RERUN,
}
_TIMED = "timed_fragments"
_GONE = ("Couldn't find fragment with id", "The fragment with id %s does not exist anymore")
_P = ParamSpec("_P")


class _Server:
    loop: asyncio.AbstractEventLoop | None = None


def quieten() -> None:
    """Leaves out what Streamlit logs of a fragment that the page has no more.

    A press or a timer that was on its way while the whole page was drawn names one. Streamlit passes over it, nothing
    is lost, and dozens of such lines would look like a broken server.
    """
    for name in ("runtime.app_session", "runtime.scriptrunner.script_runner"):
        logging.getLogger(f"streamlit.{name}").addFilter(_is_of_a_living_fragment)


def _is_of_a_living_fragment(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_GONE)


def shorten_hashes() -> None:
    """Cuts the hash of each drawing to 8 of its 32 characters: they don't compress, and are a third of what is sent.

    The browser compares it with that of the drawing before in the same place.
    """

    def populate(msg: ForwardMsg) -> None:
        populate_hash_if_needed(msg)
        msg.hash = msg.hash[:_HASH_CHARS]

    script_run_context.populate_hash_if_needed = populate  # type: ignore[attr-defined]  # has no public name


def use_loop(loop: asyncio.AbstractEventLoop | None) -> None:
    """Sets the event loop that sends the drawings; None (a page under test) disables waiting."""
    _Server.loop = loop


def begin_page() -> None:
    """Has the whole page drawn at the root container, and this run's end wait until everything is sent."""
    _hold_end()
    # Streamlit has no API for this: the thread still has the container stack of the last fragment.
    context_dg_stack.set(get_default_dg_stack_value())


def is_whole() -> bool:
    """Returns True in a run of the whole page, rather than of fragments."""
    return not _fragments()


def is_asked_for() -> bool:
    """Returns True if the current fragment itself was requested, rather than drawn as part of another one."""
    return ThreadState.get().fragment_id in _fragments()


def is_served() -> bool:
    """Returns True with a server; a page under test has none."""
    return _Server.loop is not None


def is_wanted() -> bool:
    """Returns True if a request for another part of the page is waiting, in this run or for the next."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or context.script_requests is None:
        return False
    asked = context.script_requests._rerun_data.fragment_id_queue  # noqa: SLF001  # has no public name
    return bool({*asked, *_fragments()} - {ThreadState.get().fragment_id})


def draw_next(keys: Sequence[str] = ()) -> None:
    """Has the fragments with these keys run right behind this run, without keys the current one.

    Those that run anyway behind a callback aren't drawn twice.

    Raises:
        StreamlitAPIException: The page has no fragment with such a key, as an error box stands in its place.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or context.script_requests is None or not is_served():
        return
    state = ThreadState.get()
    drawn = _fragments() if state.run_location is RunLocation.CALLBACK else ()
    asked = context.fragment_storage.resolve_target(keys) if keys else [str(state.fragment_id)]
    wanted = [fragment for fragment in asked if fragment not in drawn]
    # Streamlit has no API for this: `st.rerun` takes keys in a callback only, and interrupts the run; what that hasn't
    # drawn by then, as the tab whose press came with it, would stay empty.
    if wanted:
        context.script_requests.request_rerun(
            RerunData(
                query_string=context.query_string,
                page_script_hash=context.page_script_hash,
                fragment_id_queue=wanted,
                is_auto_rerun=True,
                cached_message_hashes=context.cached_message_hashes,
                context_info=context.context_info,
            )
        )


def tab() -> str:
    """Returns a name of this browser tab's connection."""
    return _session_id()


def waker(key: str) -> Callable[[], bool]:
    """Returns what has this tab's fragments with the key run, from any thread, unless a run is under way.

    It returns False once the tab is gone: closed, or without a connection for so long that a new one draws the page.
    """
    context, identifier = get_script_run_ctx(suppress_warning=True), _session_id()
    about, lost_at = context.context_info if context else None, [0.0]

    def run(session: AppSession) -> None:
        # None of these has a public name. Streamlit's own request would take the widgets as of the last run again, and
        # undo what was pressed since.
        if session._scriptrunner is None and session._state is AppSessionState.APP_NOT_RUNNING:  # noqa: SLF001  # see above
            before = session._client_state  # noqa: SLF001  # see above
            with suppress(StreamlitAPIException):  # the page shows something else by now
                wanted = session._fragment_storage.resolve_target(key)  # noqa: SLF001  # see above
                request = RerunData(
                    query_string=before.query_string,
                    page_script_hash=before.page_script_hash,
                    fragment_id_queue=wanted,
                    is_auto_rerun=True,
                    context_info=about,
                )
                session._create_scriptrunner(request)  # noqa: SLF001  # see above

    def wake() -> bool:
        session, loop = _app_session(identifier), _Server.loop
        if session is None or loop is None:
            lost_at[0] = lost_at[0] or time.monotonic()
            return loop is not None and time.monotonic() - lost_at[0] < _GONE_SECONDS
        lost_at[0] = 0.0
        with suppress(RuntimeError):  # the loop is closed at shutdown
            loop.call_soon_threadsafe(run, session)
        return True

    return wake


def is_by_history() -> bool:
    """Returns True after the browser's back or forward, when the URL decides which session to show."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def is_early() -> bool:
    """Returns True if a timer's request carried this press; the browser sends the press itself right after.

    Streamlit's frontend adds a press to every request until the press's own request is sent, and a busy browser sends
    a timer's first. With both the callback would run twice: an answer would be made anew twice, what was opened would
    close again. A request for any other fragment belongs to the press: presses of the same moment share a request.
    """
    fragments = _fragments()
    return bool(fragments) and fragments <= st.session_state.get(_TIMED, set())


def once(act: Callable[_P, None]) -> Callable[_P, None]:
    """Wraps a widget callback that isn't idempotent; skips an early press."""

    @functools.wraps(act)
    def act_once(*args: _P.args, **kwargs: _P.kwargs) -> None:
        if not is_early():
            act(*args, **kwargs)

    return act_once


def _fragments() -> set[str]:
    context = get_script_run_ctx(suppress_warning=True)
    return set((context and context.fragment_ids_this_run) or ())


def delivered(draw: Callable[_P, None], *, is_timed: bool = False) -> Callable[_P, None]:
    """Wraps a fragment's or dialog's drawing: a run of it alone waits at its end until everything is sent.

    Draws the whole page instead if the user is signed out by now.
    """

    @functools.wraps(draw)
    def draw_delivered(*args: _P.args, **kwargs: _P.kwargs) -> None:
        _hold_end()
        if is_timed:
            st.session_state[_TIMED] = {*st.session_state.get(_TIMED, ()), ThreadState.get().fragment_id}
        if not is_whole() and service_provider.is_signed_out():
            st.rerun()
        draw(*args, **kwargs)

    return draw_delivered


def fragment(
    *, key: str | None = None, run_every: float | None = None
) -> Callable[[Callable[_P, None]], Callable[_P, None]]:
    """Makes a drawing a fragment that is `delivered`."""
    return lambda draw: st.fragment(delivered(draw, is_timed=run_every is not None), key=key, run_every=run_every)


def _hold_end() -> None:
    """Makes this run and later runs of the thread wait at the end until the server has sent everything drawn."""
    session = _app_session(_session_id())
    if session is not None and session._scriptrunner is not None:  # noqa: SLF001  # has no public name
        # Receivers are called in the order of connection: Streamlit's own has handled the end by then.
        session._scriptrunner.on_event.connect(_on_event)  # noqa: SLF001  # nor has this


def _on_event(_runner: object, *, event: ScriptRunnerEvent, **_about: object) -> None:
    if event in _ENDS:
        identifier = _session_id()
        wait_until(lambda: not _has_unsent(identifier))


def wait_until(is_done: Callable[[], bool]) -> None:
    """Blocks until the condition holds, checked on the server's loop; returns at once without a server."""

    async def look() -> None:
        while not is_done():  # noqa: ASYNC110  # Streamlit has no event for it
            await asyncio.sleep(_LOOK_SECONDS)

    if _Server.loop is not None and not _Server.loop.is_closed():
        with suppress(TimeoutError, CancelledError):  # the loop is closed at shutdown
            asyncio.run_coroutine_threadsafe(look(), _Server.loop).result(_PATIENCE_SECONDS)


def _has_unsent(identifier: str) -> bool:
    session = _app_session(identifier)
    return session is not None and not session._browser_queue.is_empty()  # noqa: SLF001  # has no public name


def _session_id() -> str:
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def _app_session(identifier: str) -> AppSession | None:
    return runtime.get_instance().get_app_session(identifier) if runtime.exists() else None
