"""Draws the user's message and its attachments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import streamlit as st

from component import widget
from component.attaching import chip_label
from component.bridge.delivery import delivered
from component.format import count_lines, format_count
from component.words.en import Words
from graph.attachment import Attachment, split_attached

_SHOWN_CHARS: Final = 20_000


@st.fragment
@delivered
def draw_attachment_chip(words: Words, attachment: Attachment, key: str) -> None:
    """Draws an attachment as an expander; the text is sent to the browser when opened."""
    box = st.expander(
        chip_label(words, attachment),
        key=f"attachment_{key}",
        icon=":material/attach_file:",
        type="compact",
        on_change="rerun",
    )
    if not box.open:
        return
    with box:
        st.code(attachment.text[:_SHOWN_CHARS], language=None, wrap_lines=True)
        if len(attachment.text) > _SHOWN_CHARS:
            note = words.attachment.cut.format(chars=format_count(len(attachment.text)))
            st.markdown(f":small[:gray[{note}]]")


CLOSED_CHARS = 2_000  # more than twelve lines of the widest bubble
_CLAMPED_LINES = 12
_NARROWEST_LINE_EMS = 14.0
_OPENING = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^`]*$")


class Part(NamedTuple):
    """A piece of a message; `language` is None for text and "" for code without a language."""

    text: str
    language: str | None


def draw(words: Words, text: str, key: str, client: str = "", draw_action: Callable[[], None] | None = None) -> None:
    """Draws the message in its bubble.

    Args:
        words: The page's texts.
        text: The message.
        key: Makes the element keys unique.
        client: Name of the program that sent the message, "" for the page.
        draw_action: Draws the message's buttons, which the style sheet puts beside the bubble.
    """
    typed, attachments = split_attached(text)
    with st.chat_message("user"):
        if client:
            widget.draw(words, client)
        if typed or not attachments:
            _draw_typed(words, typed, key)
        for number, attachment in enumerate(attachments):
            draw_attachment_chip(words, attachment, f"{key}_{number}")
        if draw_action is not None:
            draw_action()


def _draw_typed(words: Words, text: str, key: str) -> None:
    if len(text) <= CLOSED_CHARS and count_lines(text, _NARROWEST_LINE_EMS) <= _CLAMPED_LINES:
        _draw_parts(split_code(text))
    else:
        _draw_long(words, text, f"question_{key}")


@st.fragment
@delivered
def _draw_long(words: Words, text: str, key: str) -> None:
    # The number of lines depends on the width: the browser hides a button without effect.
    parts = split_code(text)
    widget.draw_clamped(words, key, lambda is_whole: _draw_parts(parts if is_whole else cut_parts(parts, CLOSED_CHARS)))


def _draw_parts(parts: list[Part]) -> None:
    for part in parts:
        if part.language is None:
            st.text(part.text)
        else:
            st.code(part.text, language=part.language or None)


def split_code(text: str) -> list[Part]:
    """Splits a message into text and fenced code, in order; an unclosed fence is text."""
    parts: list[Part] = []
    lines: list[str] = []
    begin, opening = 0, None
    for line in text.split("\n"):
        lines.append(line)
        if opening is None:
            opening = _OPENING.match(line)
            begin = len(lines)
        elif _closes(line, opening["mark"]):
            parts += _text_parts(lines[: begin - 1])
            parts.append(Part("\n".join(lines[begin:-1]), opening["language"]))
            lines, opening = [], None
    return parts + _text_parts(lines) if parts else [Part(text, None)]


def _closes(line: str, mark: str) -> bool:
    rest = line.strip()
    return len(rest) >= len(mark) and rest == mark[0] * len(rest)


def _text_parts(lines: list[str]) -> list[Part]:
    text = "\n".join(lines).strip("\n")
    return [Part(text, None)] if text.strip() else []


def cut_parts(parts: list[Part], chars: int) -> list[Part]:
    cut: list[Part] = []
    for part in parts:
        if chars <= 0:
            break
        cut.append(part._replace(text=part.text[:chars]))
        chars -= len(part.text)
    return cut
