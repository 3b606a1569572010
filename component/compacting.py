"""Runs a manual compaction in a thread, so that the page stays usable and Stop can end it."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait

import streamlit as st

from component import delivery, dialog, page_state, service_provider
from component.delivery import delivered
from component.page_state import PageState
from component.word import Words
from component.wording import describe_compaction, words_of
from graph.error import TurnfoldError
from graph.record import Record

_PENDING = "pending_compaction"
_POLL_SECONDS = 0.3
_AT_ONCE_SECONDS = 0.3


def start(identifier: str) -> None:
    """Starts to compact the context of a session; an immediate result is reported in this run of the script."""
    try:
        folds = service_provider.current().folds
    except TurnfoldError as error:
        page_state.set_notice(error)
        return
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compact")
    made = pool.submit(folds.compact, identifier)
    pool.shutdown(wait=False)  # its thread ends with the compaction
    st.session_state[_PENDING] = made
    wait([made], timeout=_AT_ONCE_SECONDS)
    _tell(words_of(st.session_state[page_state.LANGUAGE]))


def is_pending() -> bool:
    """Whether this tab started a compaction whose result isn't reported yet."""
    return _PENDING in st.session_state


@st.fragment(run_every=_POLL_SECONDS)
@delivered
def draw(now: PageState) -> None:
    """Shows that a compaction runs; when it has ended, reruns the page with its result."""
    delivery.note_automatic(by_timer=True)
    if not dialog.is_open() and _tell(now.words):
        st.rerun()
    st.html(f'<p class="phase" role="status">{now.words.compacting}</p>')


def _tell(words: Words) -> bool:
    """Reports the result of the compaction if it has ended; returns whether none is pending any more."""
    made: Future[Record] | None = st.session_state.get(_PENDING)
    if made is None:
        return True
    if not made.done():
        return False
    del st.session_state[_PENDING]
    try:
        record = made.result()
    except TurnfoldError as error:
        page_state.set_notice(error)
    else:
        page_state.set_notice(None)
        page_state.tell_in_passing(describe_compaction(words, record), ":material/compress:")
    return True
