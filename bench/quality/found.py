"""What is found: marked entities by the facts' extractor, and turns by the search behind `recall`."""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from bench.quality.data import Marked, has_answer, normalise, read_marked, read_questions, read_sessions, search_over
from bench.report import Section, percent, table
from graph.fold.fact_find import fact_spans
from graph.store.search import SearchStore

TIMES_AND_QUANTITIES = ("DT", "TI", "QT")
_TAGS = {
    "**dates, times, quantities**": TIMES_AND_QUANTITIES,
    "dates": ("DT",),
    "times": ("TI",),
    "quantities": ("QT",),
    "persons": ("PS",),
    "organisations": ("OG",),
    "places": ("LC",),
}
_KINDS_OF_TIME_AND_QUANTITY = {"date", "money", "number", "count", "vague", "identifier"}
_LEAST_FOUND = 0.85
_MOST_FALSE = 1.0
_ENTITIES = """\
Data: klue-ner, Korean. The extractor's facts are compared with the entities that people marked in {sentences:,}
sentences: the first, third, fifth …; its patterns were made on the others alone. An entity is found if facts hold each
of its digits and at least half of its characters; a date, time or quantity by a fact of that sort, not by a name or
quoted term around it. "comparable" leaves out what is too vague to be compared (오늘, 하나); "whole" wants every
character. A false fact overlaps no marked entity: {false:.2f} a sentence of {facts:.2f}."""

FIRST = (1, 3, 5, 10)
_LEAST_KOREAN = 0.85
_MOST_SECONDS = 0.02
_LONG_TURNS = 10_000
_TIMED = 500
_SEED = 7
# By whether the noun ends in a consonant; only these tell a noun from a verb without a dictionary.
_TELLING = (("를", "가", "와", "에서", "에게"), ("을", "이", "과", "에서", "에게"))
_ASKED = (
    ("는", "가", "를", "와", "의", "도", "에서", "까지", "로"),
    ("은", "이", "을", "과", "의", "도", "에서", "까지", "으로"),
)
_NO_END = "만것지"  # another particle, or the end of a verb
_WORD = re.compile(r"(?<![가-힣\w])[가-힣]{3,}(?![가-힣\w])")
_TURNS = """\
The search that serves `recall`, over a real SQLite file: it ranks the turns of a session, of which `recall` shows the
best two whole and three more by a sentence. "@5" is the share of queries whose turn is among them.

bfcl-memory, English: each persona's chats are one session ({sessions} sessions of {shortest} to {longest} turns, the
user's side alone), the query is the question as it stands, and its turn is one that has the answer with up to two words
on either side (n = {questions}). klue-ner, Korean: {sentences:,} sentences, each a turn of one session. Of every
sentence with two nouns that can be told by their particles (을/를, 이/가, 과/와 after the right syllable, 에서,
에게), two different ones are drawn with a fixed seed and asked for with other particles (n = {pairs:,}), such as
"{query}" for "{sentence}". Another sentence that has both nouns counts as not found. The time is that of {timed} of
these queries in a session of {long:,} turns (the sentences over again), SQL and all."""

Span = tuple[int, int, str]
"""Where a fact begins and ends, and its kind."""


class Wanted(NamedTuple):
    """A query, its session, and the turns of which one must be found."""

    session: str
    query: str
    turns: frozenset[int]


def entities(folder: Path) -> Section:
    """Compares the facts with the entities marked in every second sentence; the patterns were made on the others."""
    sentences = read_marked(folder)[0::2]
    facts = false = 0
    marked, found, compared, whole = (Counter[str]() for _ in range(4))
    for sentence in sentences:
        spans = [(start, end, str(fact.kind)) for start, end, fact in fact_spans(sentence.text)]
        clear = [span for span in spans if span[2] != "vague"]
        facts += len(spans)
        false += sum(
            not any(start < other and begin < end for _, begin, other in sentence.entities) for start, end, _ in spans
        )
        for tag, start, end in sentence.entities:
            marked[tag] += 1
            found[tag] += _is_found(sentence, tag, start, end, spans)
            compared[tag] += _is_found(sentence, tag, start, end, clear)
            whole[tag] += all(_covered(spans, start, end))

    def share(part: Counter[str], tags: Sequence[str]) -> float:
        return sum(part[tag] for tag in tags) / max(1, sum(marked[tag] for tag in tags))

    rows = (
        [
            name,
            f"{sum(marked[tag] for tag in tags):,}",
            *(percent(share(part, tags)) for part in (found, compared, whole)),
        ]
        for name, tags in _TAGS.items()
    )
    of_times, false_share = share(found, TIMES_AND_QUANTITIES), false / len(sentences)
    return Section(
        "Marked entities that the extractor finds",
        _ENTITIES.format(sentences=len(sentences), false=false_share, facts=facts / len(sentences)),
        list(table(["marked", "n", "found", "comparable", "whole"], rows)),
        [
            (of_times >= _LEAST_FOUND, f"dates, times and quantities found: {of_times:.0%} (at least 85 %)"),
            (false_share <= _MOST_FALSE, f"false facts a sentence: {false_share:.2f} (at most 1)"),
        ],
    )


def _is_found(sentence: Marked, tag: str, start: int, end: int, facts: Sequence[Span]) -> bool:
    """Whether facts hold every digit of an entity and at least half of its characters.

    Of a date, time or quantity, an identifier or a fact of time, amount or number must hold them; a name or quoted term
    around a year doesn't count.
    """
    is_amount = tag in TIMES_AND_QUANTITIES
    covered = _covered([each for each in facts if not is_amount or each[2] in _KINDS_OF_TIME_AND_QUANTITY], start, end)
    digits = (is_covered for is_covered, char in zip(covered, sentence.text[start:end], strict=True) if char.isdigit())
    return all(digits) and 2 * sum(covered) >= end - start


def _covered(facts: Sequence[Span], start: int, end: int) -> list[bool]:
    return [any(begin <= index < stop for begin, stop, _ in facts) for index in range(start, end)]


def turns(folder: Path) -> Section:
    """Measures whether the search behind `recall` finds the turn that has an answer, and how long it takes."""
    sessions = {name: [message.text for message in messages] for name, messages in read_sessions(folder).items()}
    sentences = [marked.text for marked in read_marked(folder)]
    english, korean = list(questions(folder)), list(noun_queries(sentences))
    with tempfile.TemporaryDirectory(prefix="turnfold-bench-") as files:
        with search_over(Path(files) / "both.db", {**sessions, "korean": sentences}) as search:
            ranks = {
                "bfcl-memory, the question as it stands": [_rank(search, each) for each in english],
                "klue-ner, two nouns": [_rank(search, each) for each in korean],
            }
        again = sentences * (_LONG_TURNS // len(sentences) + 1)
        with search_over(Path(files) / "long.db", {"korean": again[:_LONG_TURNS]}) as search:
            seconds = [_seconds(search, each) for each in korean[:: max(1, len(korean) // _TIMED)][:_TIMED]]
    lengths = sorted(map(len, sessions.values()))
    method = _TURNS.format(
        sessions=len(sessions),
        shortest=lengths[0],
        longest=lengths[-1],
        questions=len(english),
        sentences=len(sentences),
        pairs=len(korean),
        query=korean[0].query,
        sentence=sentences[min(korean[0].turns) - 1],
        timed=len(seconds),
        long=_LONG_TURNS,
    )
    rows = (
        [name, f"{len(each):,}", *(percent(share_within(each, most)) for most in FIRST)]
        for name, each in ranks.items()
    )
    at_five, middle = share_within(ranks["klue-ner, two nouns"], 5), median(seconds)
    times = f"median {middle * 1000:.1f} ms, 95 of 100 within {quantiles(seconds, n=20)[-1] * 1000:.1f} ms."
    return Section(
        "Turns that recall finds",
        method,
        [
            *table(["queries", "n", *(f"@{most}" for most in FIRST)], rows),
            "",
            f"Time at {_LONG_TURNS:,} turns: {times}",
        ],
        [
            (at_five >= _LEAST_KOREAN, f"recall@5, two nouns in Korean: {at_five:.0%} (at least 85 %)"),
            (
                middle < _MOST_SECONDS,
                f"a search in {_LONG_TURNS:,} turns takes {middle * 1000:.1f} ms (median, less than 20 ms)",
            ),
        ],
    )


def questions(folder: Path) -> Iterator[Wanted]:
    sessions = read_sessions(folder)
    plain = {name: [normalise(message.text) for message in messages] for name, messages in sessions.items()}
    for question in read_questions(folder, sessions)[0]:
        texts = enumerate(plain[question.session], start=1)
        right = frozenset(number for number, text in texts if has_answer(text, question.answer))
        yield Wanted(question.session, question.asked, right)


def noun_queries(sentences: Sequence[str]) -> Iterator[Wanted]:
    """Yields for each sentence with two nouns a query of two, drawn with a fixed seed, with other particles."""
    draw = random.Random(_SEED)
    for number, sentence in enumerate(sentences, start=1):
        nouns = sorted(set(_nouns(sentence)))
        if len({noun for noun, _ in nouns}) > 1:
            chosen = draw.sample(sorted(dict(nouns).items()), 2)
            asked = (noun + draw.choice([each for each in _forms(_ASKED, noun) if each != own]) for noun, own in chosen)
            yield Wanted("korean", " ".join(asked), frozenset({number}))


def _nouns(sentence: str) -> Iterator[tuple[str, str]]:
    """Yields nouns of two syllables or more, each with the particle that shows it to be one."""
    for word in _WORD.findall(sentence):
        for length in (1, 2):
            noun, particle = word[:-length], word[-length:]
            if len(noun) > 1 and noun[-1] not in _NO_END and particle in _forms(_TELLING, noun):
                yield noun, particle


def _forms(particles: Sequence[Sequence[str]], noun: str) -> Sequence[str]:
    return particles[(ord(noun[-1]) - ord("가")) % 28 > 0]


def _find(search: SearchStore, wanted: Wanted) -> list[int]:
    return search.turns(wanted.session, wanted.query, before_turn=_LONG_TURNS + 1, limit=FIRST[-1])


def _rank(search: SearchStore, wanted: Wanted) -> int:
    """Returns the rank of the first right turn, from 1; 0 if it isn't among the first ten."""
    found = enumerate(_find(search, wanted), start=1)
    return next((rank for rank, turn in found if turn in wanted.turns), 0)


def share_within(ranks: Sequence[int], most: int) -> float:
    return sum(0 < rank <= most for rank in ranks) / max(1, len(ranks))


def _seconds(search: SearchStore, wanted: Wanted) -> float:
    began = time.perf_counter()
    _find(search, wanted)
    return time.perf_counter() - began
