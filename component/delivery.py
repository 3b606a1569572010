"""Lets a run end only when the server has taken what it drew, since Streamlit drops what comes too late.

A run hands each drawing to the server's event loop and ends. If the browser asks for another run before the loop comes
to those drawings, they count as an old run's and are ignored: a refused message never comes back to its field, a tab
stays empty. Pages that follow an answer ask several times a second, and the loop of a busy server is late.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import ParamSpec

from streamlit.delta_generator_singletons import context_dg_stack, get_default_dg_stack_value

_PATIENCE_SECONDS = 5.0
_P = ParamSpec("_P")


class _Server:
    loop: asyncio.AbstractEventLoop | None = None


class _Run(threading.local):
    is_whole = False


_run = _Run()


def use_loop(loop: asyncio.AbstractEventLoop | None) -> None:
    """Says which loop takes the drawings; without one (a page under test) nothing waits."""
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


def delivered(draw: Callable[_P, None]) -> Callable[_P, None]:
    """Wraps what a fragment or a dialog draws: a run of it alone ends when that is taken."""

    @functools.wraps(draw)
    def draw_and_wait(*args: _P.args, **kwargs: _P.kwargs) -> None:
        draw(*args, **kwargs)
        if not _run.is_whole:
            _wait()

    return draw_and_wait


def _wait() -> None:
    if _Server.loop is None:
        return
    taken = threading.Event()
    with suppress(RuntimeError):  # the server is ending, and its loop is closed
        _Server.loop.call_soon_threadsafe(taken.set)
        taken.wait(_PATIENCE_SECONDS)
