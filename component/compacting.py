"""Compacts by hand in a worker, so that the page stays usable meanwhile, shows that it happens, and Stop ends it."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait

import streamlit as st

from component import dialog, page_state, service_provider
from component.page_state import PageState
from component.word import Words
from component.wording import describe_compaction
from graph.error import TurnfoldError
from graph.record import Record

_PENDING = "pending_compaction"
_POLL_SECONDS = 0.3
_AT_ONCE_SECONDS = 0.3


def start(words: Words, identifier: str) -> None:
    """Begins to compact the context of a session; what comes of it at once is told at once."""
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compact")
    made = pool.submit(service_provider.current().folds.compact, identifier)
    pool.shutdown(wait=False)  # it ends by itself when the compaction is done
    st.session_state[_PENDING] = made
    wait([made], timeout=_AT_ONCE_SECONDS)
    _tell(words)


def is_pending() -> bool:
    """Whether a compaction that this tab asked for isn't done or told yet."""
    return _PENDING in st.session_state


@st.fragment(run_every=_POLL_SECONDS)
def draw(now: PageState) -> None:
    """Draws that a compaction is being made, until it's done; then the page is drawn with what came of it."""
    if not dialog.is_open() and _tell(now.words):
        st.rerun()
    st.html(f'<p class="phase" role="status">{now.words.compacting}</p>')


def _tell(words: Words) -> bool:
    """Tells what came of the compaction if it's done; returns whether it is."""
    made: Future[Record] | None = st.session_state.get(_PENDING)
    if made is not None and not made.done():
        return False
    if made is not None:
        del st.session_state[_PENDING]
        try:
            record = made.result()
        except TurnfoldError as error:
            page_state.set_notice(error)
        else:
            page_state.clear_notice()
            st.toast(describe_compaction(words, record), icon=":material/compress:")
    return True
