"""Reads messages as statements, sentences or rows of JSON, and weighs each by who says it and what for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.fact_wish import is_rule
from graph.core.listing import Row, read_rows
from graph.core.sentence import ASKING, content_terms, split_sentences
from graph.core.turn import is_note, is_recalled, text_of

_EMPHASIS: Final = re.compile(r"\*\*(?=\S)([^*\n]+)(?<=\S)\*\*")
_QUESTION_ENDS: Final = ("?", "？")
_USER_WEIGHT: Final = 1.5
_TOOL_WEIGHT: Final = 1.1
_REQUEST_WEIGHT: Final = 0.6
_ANSWERED_WEIGHT: Final = 0.3
_RULE_WEIGHT: Final = 2.0
_OPEN_WEIGHT: Final = 1.5


@dataclass(frozen=True)
class Statement:
    """A sentence of a text, or a row of JSON.

    Attributes:
        position: Its place among all statements, from 1.
        terms: What it is about.
        weight: How much it counts by who says it and what for; 1 for what the assistant states.
        head: What precedes the first of several rows of one kind: label and keys; "" for a sentence.
    """

    position: int
    text: str
    terms: frozenset[str]
    weight: float
    head: str = ""

    @property
    def headed_text(self) -> str:
        """The text with its head, whose label isn't repeated."""
        if not self.head:
            return self.text
        label = self.head.partition(" (")[0]
        return f"{self.head}: {self.text.removeprefix(f'{label}: ')}"


def read_statements(
    messages: Sequence[AnyMessage], is_dull: Callable[[str], bool]
) -> tuple[list[Statement], list[Statement]]:
    """Returns the useful and the dull statements in order, without duplicates.

    The user's own count for more than the assistant's, their rules and prohibitions most. Questions that the other side
    has answered count for little; so do the assistant's own, once the user has gone on. Those of the last message are
    still open. What `recall` found stands in the turns that it was said in.
    """
    useful: list[Statement] = []
    dull: list[Statement] = []
    seen: set[str] = set()
    last = len(messages) - 1
    for index, (message, is_answered) in enumerate(zip(messages, _answered(messages), strict=True)):
        for text, head in _split("" if is_recalled(message) or is_note(message) else text_of(message)):
            key = text.casefold().rstrip(".!?… ")
            if key in seen:
                continue
            seen.add(key)
            weight = _weigh(message, text, is_answered=is_answered, is_last=index == last)
            statement = Statement(len(seen), text, frozenset(content_terms(text)), weight, head)
            (dull if not statement.terms or is_dull(text) else useful).append(statement)
    return useful, dull


def _split(text: str) -> Iterator[tuple[str, str]]:
    """Yields the sentences of a text without a head, the rows of a JSON text with theirs."""
    for part in read_rows(text) or [text]:
        if isinstance(part, Row):
            yield " ".join(part.text.split()), " ".join(part.head.split())
        else:
            for sentence in split_sentences(_EMPHASIS.sub(r"\1", part)):
                yield sentence, ""


def _answered(messages: Sequence[AnyMessage]) -> list[bool]:
    """Returns for each message whether the other side says something later that isn't only asking back."""
    answered: list[bool] = []
    user_follows = assistant_follows = False
    for message in reversed(messages):
        is_user = isinstance(message, HumanMessage)
        answered.append(assistant_follows if is_user else user_follows)
        if is_user:
            user_follows = user_follows or _states(message)
        elif isinstance(message, AIMessage):
            assistant_follows = assistant_follows or _states(message)
    return answered[::-1]


def _states(message: AnyMessage) -> bool:
    return any(not ASKING.search(sentence) for sentence in split_sentences(text_of(message)))


def _weigh(message: AnyMessage, text: str, *, is_answered: bool, is_last: bool) -> float:
    if isinstance(message, ToolMessage):
        return _TOOL_WEIGHT
    is_own = isinstance(message, AIMessage)
    is_question = text.endswith(_QUESTION_ENDS)
    if is_last and is_question:
        return _OPEN_WEIGHT
    if is_answered and (ASKING.search(text) if is_own else is_question):
        return _ANSWERED_WEIGHT
    if is_own:
        return 1.0
    weight = _USER_WEIGHT if isinstance(message, HumanMessage) else 1.0
    if is_rule(text):
        return weight * _RULE_WEIGHT
    return weight * (_REQUEST_WEIGHT if ASKING.search(text) else 1)
