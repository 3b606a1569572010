"""Shows an error of ours where the part that met it would have stood."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from component.word import Words
from component.wording import explain_error
from graph.error import TurnfoldError


@contextmanager
def error_box(words: Words) -> Iterator[None]:
    """Draws the sentence of an error that the body raises, and lets the rest of the page go on."""
    try:
        yield
    except TurnfoldError as error:
        tell(words, error)


def tell(words: Words, error: TurnfoldError) -> None:
    """Draws the sentence of an error."""
    st.error(explain_error(words, error), icon=":material/error:")
