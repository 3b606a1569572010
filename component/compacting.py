"""Starts a manual compaction, which Stop can end."""

from __future__ import annotations

from functools import partial

import streamlit as st

from component import background, page_state, service_provider
from component.word import Words
from component.wording import describe_compaction, words_of
from graph.value.error import TurnfoldError
from graph.value.record import Record


def start(identifier: str) -> None:
    """Starts to compact the context of a session."""
    words = words_of(st.session_state[page_state.LANGUAGE])
    try:
        folds = service_provider.current().folds
    except TurnfoldError as error:
        page_state.set_notice(error)
        return
    compact = partial(folds.compact, identifier)
    background.start(words.compacting, compact, partial(_tell, words), can_stop=True)


def _tell(words: Words, record: Record) -> None:
    page_state.tell_in_passing(describe_compaction(words, record), ":material/compress:")
