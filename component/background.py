"""Runs one job that waits for a model in a thread, such as a compaction, and keeps the last change of a summary.

One job at a time per tab.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from component import dialog, page_state
from component.bridge import delivery, service_provider
from component.words.wording import describe_compaction, words_of
from graph.value.error import TurnfoldError
from graph.value.record import Record

if TYPE_CHECKING:
    from graph.service.folds import Folds
    from graph.value.view import SessionView

_PENDING = "pending_job"
_POLL_SECONDS = 0.3
_AT_ONCE_SECONDS = 0.3


class _Job(NamedTuple):
    label: str
    made: Future[Record]
    report: Callable[[Record], None]
    can_stop: bool


def start(
    label: str, make: Callable[[Folds], Record], report: Callable[[Record], None], *, can_stop: bool = False
) -> None:
    """Starts making a record in a thread; `report` reports it in a run of the script, in this run if it is immediate.

    A `TurnfoldError` of `make` becomes the page's notice. `can_stop`: `turns.stop` ends the job.
    """
    if is_pending():
        page_state.queue_toast(words_of(st.session_state[page_state.LANGUAGE]).steering.still_making)
        return
    try:
        folds = service_provider.current().folds
    except TurnfoldError as error:
        page_state.set_notice(error)
        return
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="make")
    made = pool.submit(make, folds)
    pool.shutdown(wait=False)  # the thread ends with the job
    st.session_state[_PENDING] = _Job(label, made, report, can_stop)
    wait([made], timeout=_AT_ONCE_SECONDS)
    _end()


def is_pending() -> bool:
    return _PENDING in st.session_state


def can_stop() -> bool:
    job: _Job | None = st.session_state.get(_PENDING)
    return job is not None and job.can_stop


@delivery.fragment(run_every=_POLL_SECONDS)
def draw() -> None:
    job: _Job | None = st.session_state.get(_PENDING)
    if not dialog.is_open() and _end():  # the rerun would lose text typed in a dialog
        st.rerun()
    if job is not None:
        st.html(f'<p class="phase" role="status">{job.label}</p>')


def _end() -> bool:
    job: _Job | None = st.session_state.get(_PENDING)
    if job is None:
        return True
    if not job.made.done():
        return False
    del st.session_state[_PENDING]
    page_state.attempt(lambda: job.report(job.made.result()))
    return True


def start_compaction(identifier: str, instruction: str = "") -> None:
    """Compacts a session; the line to undo it says what was done."""
    words = words_of(st.session_state[page_state.LANGUAGE])

    def report(record: Record) -> None:
        keep(identifier, describe_compaction(words, record), back_to=record.id, is_compaction=True)

    start(words.compacting, lambda folds: folds.compact(identifier, instruction=instruction), report, can_stop=True)


_CHANGE = "last_change"


class Change(NamedTuple):
    """A change of a summary; `back_to` is the id of the replaced record, or of the compaction to undo."""

    session_id: str
    back_to: str
    is_compaction: bool
    text: str = ""
    turn_count: int = 0


def keep(session_id: str, text: str, *, back_to: str, is_compaction: bool = False) -> None:
    """Stores a change; the line to undo it is shown until the next message or the next change."""
    turn_count = service_provider.current().sessions.get(session_id).turn_count
    st.session_state[_CHANGE] = Change(session_id, back_to, is_compaction, text, turn_count)


def last_change(session: SessionView | None) -> Change | None:
    """Returns the change of this session that can be undone, which no message has followed."""
    change: Change | None = st.session_state.get(_CHANGE)
    if session is None or change is None:
        return None
    return change if (session.session_id, session.turn_count) == (change.session_id, change.turn_count) else None


def forget_change() -> None:
    st.session_state.pop(_CHANGE, None)
