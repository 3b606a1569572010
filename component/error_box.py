"""Shows a `TurnfoldError` in place of the part of the page that raised it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from component.word import Words
from component.wording import explain_error
from graph.value.error import TurnfoldError


@contextmanager
def error_box(words: Words) -> Iterator[None]:
    """Catches an error of the body and draws its sentence, so that the rest of the page is drawn."""
    try:
        yield
    except TurnfoldError as error:
        tell(words, error)


def tell(words: Words, error: TurnfoldError) -> None:
    """Draws the sentence of an error."""
    st.error(explain_error(words, error), icon=":material/error:")
