"""What a model input says of the conversation before, sentence by sentence, and which of it bears on a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from graph.core.assembly import SUMMARY_HEADING
from graph.core.casual import is_casual
from graph.core.phrase import is_own_phrase
from graph.core.sentence import content_terms, split_sentences

_RECORD: Final = re.compile(r"^\[(\d+(?:-\d+)?)턴\] ?", re.MULTILINE)
_QUOTED_SPEAKER: Final = re.compile(r"^(?:사용자|AI|도구): ")
_VERBATIM: Final = "(원문)"
_ASKING: Final = re.compile(r"[?？]$")
_LEAST_SCORE: Final = 0.25


@dataclass(frozen=True)
class Passage:
    """A sentence said before; `turns` is the range of the summary that it stands in ("1-3"), "" if it's raw."""

    text: str
    turns: str


def read_passages(messages: Sequence[BaseMessage]) -> list[Passage]:
    """Returns what was said before the last user message, oldest first, each sentence once.

    Questions, small talk and the offline model's own phrases are left out; so are answers in raw turns, as they repeat.
    """
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    passages: dict[str, Passage] = {}
    for text, turns in _sources(messages[:last]):
        for sentence in split_sentences(text):
            clean = _QUOTED_SPEAKER.sub("", sentence)
            if clean == _VERBATIM or _ASKING.search(clean) or is_own_phrase(clean) or is_casual(clean):
                continue
            passages.setdefault(clean, Passage(clean, turns))
    return list(passages.values())


def _sources(messages: Sequence[BaseMessage]) -> Iterator[tuple[str, str]]:
    """Yields each text with the turns of its summary, "" for a raw message."""
    for message in messages:
        if isinstance(message, SystemMessage):
            _, _, summaries = message.text.partition(SUMMARY_HEADING)
            parts = _RECORD.split(summaries)
            yield from zip(parts[2::2], parts[1::2], strict=True)
        elif not isinstance(message, AIMessage):
            yield message.text, ""


def find_relevant(passages: Sequence[Passage], question: str, limit: int) -> list[Passage]:
    """Returns the passages that share most content with the question, best first; none if they share too little.

    Terms that few passages have count for more. Of equals the later one goes first, as it may correct the earlier.
    """
    asked = content_terms(question)
    terms = [content_terms(passage.text) for passage in passages]
    counts = Counter(term for found in terms for term in found)
    weights = {term: log(1 + len(passages) / counts[term]) for term in asked if counts[term]}
    if not weights:
        return []
    whole = sum(weights.values()) + 0.3 * (len(asked) - len(weights))
    scored = [
        (sum(weights[term] for term in found & weights.keys()) / whole, index) for index, found in enumerate(terms)
    ]
    best = max(score for score, _ in scored)
    least = max(_LEAST_SCORE, best / 2)
    chosen = sorted((pair for pair in scored if pair[0] >= least), reverse=True)[:limit]
    return [passages[index] for _, index in chosen]
