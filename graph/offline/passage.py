"""Reads the earlier conversation from a model input, sentence by sentence, and finds what relates to a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from graph.core.casual import is_casual
from graph.core.sentence import ASKING, DATE, INTRODUCTION, content_terms, split_sentences
from graph.core.turn import is_note, is_recalled
from graph.offline.intent import without_note
from graph.offline.phrase import is_own_phrase
from graph.offline.project_block import Project
from prompt.project import memory as words
from prompt.system.framing import SPEAKER, SUMMARY_HEADING, VERBATIM_NOTE
from prompt.tool.recalled import recalled_texts

_HEADING: Final = re.compile("^(?:" + "|".join(map(re.escape, SUMMARY_HEADING.values())) + ")$", re.MULTILINE)
_RECORD: Final = re.compile(r"^\[(?:Turns )?(\d+(?:-\d+)?)턴?\] ?", re.MULTILINE)
_SPEAKERS: Final = "|".join(sorted({name for names in SPEAKER.values() for name in names.values()}))
_QUOTED_SPEAKER: Final = re.compile(rf"^(?:{_SPEAKERS}): ")
_LEAST_SCORE: Final = 0.25
_MISSING_WEIGHT: Final = 0.3
# What kind of fact answers which question: "what's my name" shares no word with its answer "I'm Alex".
_ASKED_KINDS: Final = (
    (re.compile(r"이름|누구|\b(?:name|who)\b", re.IGNORECASE), INTRODUCTION, 0.5),
    (re.compile(r"언제|며칠|날짜|몇\s?[시월일]|\b(?:when|date|day)\b", re.IGNORECASE), DATE, 0.15),
    (
        re.compile(r"얼마|비용|예산|가격|\b(?:how much|cost|price|budget)\b", re.IGNORECASE),
        re.compile(r"\d\s?(?:만|천|백)?\s?원|[$€£₩]\s?\d"),
        0.15,
    ),
)


@dataclass(frozen=True)
class Passage:
    """A sentence said earlier.

    Attributes:
        turns: The turns of its summary ("1-3"), or the turn that `recall` found it in ("2"); "" if it comes from a raw
            message.
        is_recalled: Whether `recall` found it.
        noted: The marks of what stands in the project's memory, its date first; None if it doesn't come from there.
    """

    text: str
    turns: str
    is_recalled: bool = False
    noted: str | None = None


def read_passages(messages: Sequence[BaseMessage]) -> list[Passage]:
    """Returns the sentences before the last user message, oldest first and without duplicates.

    Questions, requests, small talk and the offline model's own phrases are left out; so are answers in raw turns,
    which repeat what the user said.
    """
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    passages: dict[str, Passage] = {}
    for text, turns in _sources(messages[:last]):
        for statement in _statements(text):
            passages.setdefault(statement, Passage(statement, turns))
    return list(passages.values())


def read_recalled(result: str) -> list[Passage]:
    """Returns the sentences that a result of `recall` shows, the oldest turn first and without duplicates."""
    passages: dict[str, Passage] = {}
    for said in sorted(recalled_texts(result), key=lambda said: said.turn):
        for statement in _statements(said.text):
            passages.setdefault(statement, Passage(statement, str(said.turn), is_recalled=True))
    return list(passages.values())


def read_noted(project: Project) -> list[Passage]:
    """Returns the sentences of a project's memory: of its summary, its decisions and what the user said last."""
    passages: dict[str, Passage] = {}
    for item in (
        item for label in (words.SUMMARY, words.DECISIONS, words.RECENT_DIALOG) for item in project.get(label, ())
    ):
        for statement in _statements(item.text):
            passages.setdefault(statement, Passage(statement, "", noted=item.marks))
    return list(passages.values())


def _statements(text: str) -> Iterator[str]:
    for sentence in split_sentences(text):
        clean = without_note(_QUOTED_SPEAKER.sub("", sentence))
        is_empty = clean in ("", *VERBATIM_NOTE.values())
        if not (is_empty or ASKING.search(clean) or is_own_phrase(clean) or is_casual(clean)):
            yield clean


def _sources(messages: Sequence[BaseMessage]) -> Iterator[tuple[str, str]]:
    """Yields each text with the turns of its summary, "" for a raw message's."""
    for message in messages:
        if isinstance(message, SystemMessage):
            heading = _HEADING.search(message.text)
            parts = _RECORD.split(message.text[heading.end() :]) if heading else []
            yield from zip(parts[0::2], ("", *parts[1::2]), strict=False)
        elif not (isinstance(message, AIMessage) or is_recalled(message) or is_note(message)):
            yield message.text, ""


def has_summaries(messages: Sequence[BaseMessage]) -> bool:
    """Whether the system prompt has summaries."""
    return any(isinstance(message, SystemMessage) and _HEADING.search(message.text) for message in messages)


def find_relevant(passages: Sequence[Passage], question: str, limit: int) -> list[Passage]:
    """Returns the passages that share most terms with the question, best first; none if they share too little.

    Rare terms count for more. Of equal passages the later one goes first, as it may correct the earlier.
    """
    asked = content_terms(question)
    terms = [content_terms(passage.text) for passage in passages]
    counts = Counter(term for found in terms for term in found)
    weights = {term: log(1 + len(passages) / counts[term]) for term in asked if counts[term]}
    whole = (sum(weights.values()) + _MISSING_WEIGHT * (len(asked) - len(weights))) or 1.0
    kinds = [(answer, bonus) for asking, answer, bonus in _ASKED_KINDS if asking.search(question)]
    scores = [
        sum(weights[term] for term in found & weights.keys()) / whole
        + sum(bonus for answer, bonus in kinds if answer.search(passage.text))
        for passage, found in zip(passages, terms, strict=True)
    ]
    least = max(_LEAST_SCORE, max(scores, default=0.0) / 2)
    found = [index for index, score in enumerate(scores) if score >= least]
    found.sort(key=lambda index: (scores[index], index), reverse=True)
    return [passages[index] for index in found[:limit]]
