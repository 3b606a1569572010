"""Shortens a session as the product's picked sentences do, and in the plain ways that they are measured against."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import log

from langchain_core.messages import AnyMessage

from graph.core.language import split_sentences
from graph.core.turn import split_turns, text_of
from graph.fold.extract import TermCounts, count_terms, extract_summary
from graph.fold.review import facts_to_name
from graph.fold.spec import BLOCK_TURNS, fold_of_messages, target_chars
from graph.strategy.interval import sized

RATES = (0.1, 0.3, 0.5)
Shorten = Callable[[Sequence[AnyMessage], float], str]
PICKED = "picked sentences"
WINDOW = "window"
RANDOM = "random sentences"
AVERAGE = "tf-idf, average"
SUM = "tf-idf, sum"
_SEEDS = range(10)
_WORD = re.compile(r"\w+(?:[-'.]\w+)*")


def contenders() -> Mapping[str, Sequence[Shorten]]:
    """Returns by name what shortens a session to a rate; of several ways the average counts."""
    return {
        PICKED: [picked],
        WINDOW: [window],
        RANDOM: [partial(random_sentences, seed=seed) for seed in _SEEDS],
        AVERAGE: [partial(tf_idf, is_average=True)],
        SUM: [partial(tf_idf, is_average=False)],
    }


def picked(messages: Sequence[AnyMessage], rate: float) -> str:
    """Returns the product's folds: of each three turns, weighed by what had been said by then; the rest as one more."""
    turns = split_turns(messages)
    parts: list[str] = []
    counts = TermCounts(0, {})
    for first in range(0, len(turns), BLOCK_TURNS):
        block = [message for turn in turns[first : first + BLOCK_TURNS] for message in turn]
        counts = count_terms(map(text_of, block), counts)
        parts.append(extract_summary(block, target_chars(count_chars(block), rate), counts=counts))
    return "\n".join(parts)


def named(messages: Sequence[AnyMessage], rate: float) -> str:
    """Returns what requests for the summaries of these turns name to the model, which writes the summary itself."""
    turns = split_turns(messages)
    blocks = [turns[first : first + BLOCK_TURNS] for first in range(0, len(turns), BLOCK_TURNS)]
    sources = [[message for turn in block for message in turn] for block in blocks]
    facts = (facts_to_name(source, _asked_chars(source, rate), "en") for source in sources)
    return "\n".join(fact.text for found in facts for fact in found)


def _asked_chars(source: Sequence[AnyMessage], rate: float) -> int:
    spec = fold_of_messages(source, target_chars(count_chars(source), rate), rate=rate, language="en")
    return sized(spec).asked_chars


def window(messages: Sequence[AnyMessage], rate: float) -> str:
    text = "\n".join(map(text_of, messages))
    return text[len(text) - target_chars(count_chars(messages), rate) :]


def random_sentences(messages: Sequence[AnyMessage], rate: float, *, seed: int) -> str:
    sentences = _sentences(messages)
    order = list(range(len(sentences)))
    random.Random(seed).shuffle(order)
    return _fill(sentences, order, target_chars(count_chars(messages), rate))


def tf_idf(messages: Sequence[AnyMessage], rate: float, *, is_average: bool) -> str:
    """Returns the sentences of the whole session whose words have the highest tf-idf, on average or in sum.

    Each sentence is a document, and idf is `ln(sentences / sentences with the word)`.
    """
    sentences = _sentences(messages)
    words = [Counter(_WORD.findall(sentence.casefold())) for sentence in sentences]
    frequencies = Counter(word for counts in words for word in counts)
    scores = [
        sum(times * log(len(words) / frequencies[word]) for word, times in counts.items())
        / (max(1, counts.total()) if is_average else 1)
        for counts in words
    ]
    order = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))
    return _fill(sentences, order, target_chars(count_chars(messages), rate))


def count_chars(messages: Sequence[AnyMessage]) -> int:
    return sum(len(text_of(message)) for message in messages)


def _sentences(messages: Sequence[AnyMessage]) -> list[str]:
    return [sentence for message in messages for sentence in split_sentences(text_of(message))]


def _fill(sentences: Sequence[str], order: Sequence[int], limit_chars: int) -> str:
    """Joins the sentences that fit, taken in the given order, in the order of the session."""
    taken: list[int] = []
    chars = 0
    for index in order:
        if chars + len(sentences[index]) <= limit_chars:
            taken.append(index)
            chars += len(sentences[index]) + 1
    return "\n".join(sentences[index] for index in sorted(taken))
