"""Lets a run end only when the server has sent what it drew, since Streamlit drops some of what is left.

A run hands each drawing to the server's event loop and ends. If the browser asks for another run before the loop comes
to those drawings, they count as an old run's and are ignored: a refused message never comes back to its field, a tab
stays empty. If the next run draws one part anew, that part's unsent drawings are dropped, though not those of the parts
inside it, which then have no place. Pages that follow an answer ask several times a second, and the loop of a busy
server is late.

If it asks for the whole page just behind a fragment, the page is drawn into the fragment, and the browser's own goes
blank, unless the run is set back to its place.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import ParamSpec

import streamlit as st
from streamlit import runtime
from streamlit.delta_generator_singletons import context_dg_stack, get_default_dg_stack_value
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState

_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.002
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
    """Draws the whole page in its block, in its own place; at its end, waits for all of it at once."""
    # Streamlit has no call for it: the thread still stands where the fragment did that it drew last.
    context_dg_stack.set(get_default_dg_stack_value())
    _run.is_whole = True
    try:
        yield
    finally:
        _run.is_whole = False
    _wait()


def is_whole() -> bool:
    """Whether this run draws the whole page."""
    return _run.is_whole


def is_served() -> bool:
    """Whether a server shows what is drawn; a page under test has none."""
    return _Server.loop is not None


def is_wanted() -> bool:
    """Whether another part of the page has been asked for, which is drawn when this run has ended."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or context.script_requests is None:
        return False
    asked = context.script_requests._rerun_data.fragment_id_queue  # noqa: SLF001  # has no other name
    return bool(set(asked) - _fragments())


def note_automatic() -> None:
    """Says that the fragment that is being drawn need not be drawn when its run is joined with another's."""
    st.session_state[_AUTOMATIC] = {*st.session_state.get(_AUTOMATIC, ()), ThreadState.get().fragment_id}


def pressed_fragments() -> int | None:
    """Returns how many fragments a user's press has to have drawn in this run, which may join several requests.

    Returns:
        None if the whole page has to be drawn.
    """
    fragments = _fragments()
    return len(fragments - st.session_state.get(_AUTOMATIC, set())) if fragments else None


def _fragments() -> set[str]:
    context = get_script_run_ctx(suppress_warning=True)
    return set((context and context.fragment_ids_this_run) or ())


def delivered(draw: Callable[_P, None]) -> Callable[_P, None]:
    """Wraps what a fragment or a dialog draws: a run of it alone ends when that is sent."""

    @functools.wraps(draw)
    def draw_and_wait(*args: _P.args, **kwargs: _P.kwargs) -> None:
        draw(*args, **kwargs)
        if not _run.is_whole:
            _wait()

    return draw_and_wait


def _wait() -> None:
    loop, context = _Server.loop, get_script_run_ctx(suppress_warning=True)
    if loop is None:
        return
    identifier = context.session_id if context else ""
    sent = threading.Event()

    def look() -> None:
        if _has_unsent(identifier):
            loop.call_later(_LOOK_SECONDS, look)
        else:
            sent.set()

    with suppress(RuntimeError):  # the server is ending, and its loop is closed
        loop.call_soon_threadsafe(look)
        sent.wait(_PATIENCE_SECONDS)


def _has_unsent(identifier: str) -> bool:
    if not runtime.exists():
        return False
    tab = runtime.get_instance()._session_mgr.get_active_session_info(identifier)  # noqa: SLF001  # has no other name
    return tab is not None and not tab.session._browser_queue.is_empty()  # noqa: SLF001  # nor has this
