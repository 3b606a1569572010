"""Requests a session's title and cleans the model's answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from graph.core.attached import own_words
from graph.core.language import is_written_in
from graph.core.text import LEADING_MARKS, plain_text, title_of
from graph.core.title_text import first_words
from graph.core.turn import is_final_answer, text_of
from graph.fold.clean import clean_draft
from graph.fold.request import LastInput, language_of
from graph.fold.review import has_own_markup
from prompt.summary import title_generator
from prompt.system.framing import Language

# Number of turns that a title is based on.
TITLED_TURNS: Final = 2
_QUOTED_CHARS: Final = 600
_LONGEST_LINE: Final = 120
_UNSEEN: Final = {"Cc", "Cf"}
_KEPT: Final = "\u200d"  # joins emoji
_LABEL: Final = re.compile(
    r"(?:(?:the|a|suggested|chat|conversation|session)\s+)*title\s*[:：]\s*|(?:(?:대화|채팅)\s*)?제목\s*[:：]\s*",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(r"(?:\+|1[.)])\s+")
_LINK: Final = re.compile(r"!?\[([^\[\]]{1,200})\]\([^()\s]{0,200}\)")
_MARKUP: Final = re.compile(r"\*\*|~~|`")
_EMPHASIS: Final = re.compile(r"(?<![\w*])\*([^\s*][^*]*)\*(?![\w*])")
_PAIRS: Final = ("**", "__", '""', "''", "“”", "‘’", "„“", "«»", "‹›", "「」", "『』", "《》", "〈〉")
_COLONS: Final = (":", "：")
_ENDS: Final = " .。．｡,、;；:："


def title_request(messages: Iterable[AnyMessage], language: Language) -> list[AnyMessage]:
    """Returns the request for a title: the rules, and the first turns, clipped, without tool calls and results."""
    conversation = [message for message in messages if isinstance(message, HumanMessage) or is_final_answer(message)]
    written_in = language_of(conversation, language)
    quoted = title_generator.get_prompt([_clipped(message) for message in conversation], written_in)
    return [SystemMessage(title_generator.get_rules(written_in)), HumanMessage(quoted)]


def title_in_place(last: LastInput, language: Language) -> list[AnyMessage]:
    """Returns the last input, its answer, and one instruction: on one slot quoted turns evict the chat's prefix."""
    conversation = [message for message in last.model_input.messages if isinstance(message, HumanMessage)]
    return [
        *last.model_input.messages,
        last.answer,
        HumanMessage(title_generator.get_instruction(language_of(conversation, language))),
    ]


def clean_title(text: str, scripts: Collection[str] = ()) -> str:
    """Returns the title in a model's answer, one line of at most 80 characters; "" if there is none.

    Reasoning, labels, quotes, Markdown and a final period are removed. A first line of over 120 characters is an answer
    to the chat, not a title; a title in a script that the user doesn't write is refused, and one with our own markup.
    """
    lines = [line for cut in clean_draft(plain_text(text)).splitlines() if (line := _seen(cut))]
    line = next((line for line in lines if not line.endswith(_COLONS)), "".join(lines[:1]))
    title = title_of(_bare(line)) if len(line) <= _LONGEST_LINE else ""
    return title if _says_something(title) and is_written_in(title, scripts) and not has_own_markup(line) else ""


def _seen(line: str) -> str:
    retained = (sign for sign in " ".join(line.split()) if unicodedata.category(sign) not in _UNSEEN or sign == _KEPT)
    return " ".join("".join(retained).replace("\ufffd", "").split())


def _bare(line: str) -> str:
    bare = _EMPHASIS.sub(r"\1", _MARKUP.sub("", _LINK.sub(r"\1", line)))
    while True:
        before = bare
        bare = bare.lstrip(LEADING_MARKS)
        for mark in (_LEAD, _LABEL):
            if found := mark.match(bare):
                bare = bare[found.end() :]
        bare = _unquoted(bare.rstrip(_ENDS))
        if bare == before:
            return bare


def _unquoted(line: str) -> str:
    for opening, closing in _PAIRS:
        inner = line[1:-1].strip(opening + closing)
        if line[:1] == opening and line[1:][-1:] == closing and opening not in inner and closing not in inner:
            return inner
    return line


def _says_something(title: str) -> bool:
    return any(sign.isalnum() or unicodedata.category(sign) == "So" for sign in title)


def _clipped(message: AnyMessage) -> AnyMessage:
    is_asked = isinstance(message, HumanMessage)
    text = (own_words(text_of(message)) if is_asked else text_of(message)).strip()
    text = (is_asked and first_words(text)) or text
    clipped = text if len(text) <= _QUOTED_CHARS else text[: _QUOTED_CHARS - 1].rstrip() + "…"
    return HumanMessage(clipped) if is_asked else AIMessage(clipped)
