"""The cards of a turn that waits for the user's word: what would be called, and what may be said to it."""

from __future__ import annotations

from typing import Final

import streamlit as st

from component import action, widget
from component.format import escape_label
from component.words.words import Words
from graph.value.view import TurnView

_LINES, _CHARS = 12, 800
_ICONS: Final = {"once": "check", "always": "done_all", "no": "block"}


def draw(words: Words, identifier: str, turn: TurnView) -> None:
    place = identifier, turn.number, turn.attempt
    given = action.words_given(place)
    for call in turn.pending:
        key, labels = f"{turn.number}_{turn.attempt}_{call.call_id}", words.tools
        with st.container(border=True, gap="small", key=f"asked_{key}"):
            # Its name first: that is what the server runs, whatever it calls it for people.
            tool, title = escape_label(call.tool), "" if call.title == call.tool else f" ({escape_label(call.title)})"
            st.markdown(labels.wants.format(server=escape_label(call.server), tool=tool, title=title))
            if call.is_repeated:
                widget.draw_note(labels.is_repeated)
            _draw_arguments(words, call.arguments, f"arguments_{key}")
            with st.container(horizontal=True, gap="xsmall"):
                for word, label in labels.words.items():
                    act, kind = action.answer_call, "primary" if given.get(call.call_id) == word else "secondary"
                    widget.draw_action(label, f"{word}_{key}", _ICONS[word], act, place, call.call_id, word, type=kind)


def _draw_arguments(words: Words, text: str, key: str) -> None:
    cut = "\n".join(text.splitlines()[:_LINES])[:_CHARS]
    if cut == text:
        _draw_code(text)
    else:
        widget.draw_clamped(words, key, lambda is_whole: _draw_code(text if is_whole else f"{cut}…"))


def _draw_code(text: str) -> None:
    st.code(text, language="json", wrap_lines=True)
