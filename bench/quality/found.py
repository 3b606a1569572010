"""Measures whether the search behind `recall` finds the turn that has an answer, and how long it takes."""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple

from bench.quality.archive import search_over
from bench.quality.entity import read_marked
from bench.quality.memory import is_kept, normalise, read_asked, read_questions, read_sessions
from bench.quality.section import Section
from graph.store.search import SearchStore

PLACES: Final = (1, 3, 5, 10)
_LEAST_KOREAN: Final = 0.85
_MOST_SECONDS: Final = 0.02
_LONG_TURNS: Final = 10_000
_TIMED: Final = 500
_SEED: Final = 7
_KOREAN: Final = "klue-ner, two nouns"
_ENGLISH: Final = "bfcl-memory, the question as it stands"
# By whether the noun ends in a consonant; only these tell a noun from a verb without a dictionary.
_TELLING: Final = (("를", "가", "와", "에서", "에게"), ("을", "이", "과", "에서", "에게"))
_ASKED: Final = (
    ("는", "가", "를", "와", "의", "도", "에서", "까지", "로"),
    ("은", "이", "을", "과", "의", "도", "에서", "까지", "으로"),
)
_NO_END: Final = "만것지"  # another particle, or the end of a verb
_WORD: Final = re.compile(r"(?<![가-힣\w])[가-힣]{3,}(?![가-힣\w])")
_METHOD: Final = """\
The search that serves `recall`, over a real SQLite file: it ranks the turns of a session, of which `recall` shows the
five best. "@5" is the share of queries whose turn is among them.

bfcl-memory, English: each persona's chats are one session ({sessions} sessions of {shortest} to {longest} turns, the
user's side alone), the query is the question as it stands, and its turn is one that has the answer with up to two words
on either side (n = {questions}). klue-ner, Korean: {sentences:,} sentences, each a turn of one session. Of every
sentence with two nouns that can be told by their particles (을/를, 이/가, 과/와 after the right syllable, 에서,
에게), two different ones are drawn with a fixed seed and asked for with other particles (n = {pairs:,}), such as
"{query}" for "{sentence}". Another sentence that has both nouns counts as not found. The time is that of {timed} of
these queries in a session of {long:,} turns (the sentences over again), SQL and all."""


class Wanted(NamedTuple):
    """A query, its session, and the turns of which one must be found."""

    session: str
    query: str
    turns: frozenset[int]


def measure(folder: Path) -> Section:
    """Measures both sets and the time.

    Args:
        folder: Has `bfcl-memory` and `klue-ner`.

    Raises:
        FileNotFoundError: The data isn't there.
    """
    sessions = {
        name: [message.text for message in messages] for name, messages in read_sessions(folder / "bfcl-memory").items()
    }
    sentences = [marked.text for marked in read_marked(folder)]
    english, korean = list(_questions(folder / "bfcl-memory", sessions)), list(noun_queries(sentences))
    with tempfile.TemporaryDirectory(prefix="turnfold-bench-") as files:
        with search_over(Path(files) / "both.db", {**sessions, "korean": sentences}) as search:
            found = {_ENGLISH: ranks(search, english), _KOREAN: ranks(search, korean)}
        again = sentences * (_LONG_TURNS // len(sentences) + 1)
        with search_over(Path(files) / "long.db", {"korean": again[:_LONG_TURNS]}) as search:
            seconds = _times(search, korean[:: max(1, len(korean) // _TIMED)][:_TIMED])
    lengths = sorted(map(len, sessions.values()))
    method = _METHOD.format(
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
    at_five, middle = share_within(found[_KOREAN], 5), median(seconds)
    requirements = (
        (at_five >= _LEAST_KOREAN, f"recall@5, two nouns in Korean: {at_five:.0%} (at least 85 %)"),
        (
            middle < _MOST_SECONDS,
            f"a search in {_LONG_TURNS:,} turns takes {middle * 1000:.1f} ms (median, less than 20 ms)",
        ),
    )
    return Section("Turns that recall finds", method, tuple(_table(found, seconds)), requirements)


def noun_queries(sentences: Sequence[str]) -> Iterator[Wanted]:
    """Yields for each sentence with two nouns a query of two, drawn with a fixed seed, with other particles."""
    draw = random.Random(_SEED)  # noqa: S311  # a repeatable draw, no secret
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


def _questions(folder: Path, sessions: Mapping[str, Sequence[str]]) -> Iterator[Wanted]:
    asked = read_asked(folder)
    plain = {name: [normalise(text) for text in texts] for name, texts in sessions.items()}
    for question in read_questions(folder, read_sessions(folder))[0]:
        texts = plain[question.session]
        turns = frozenset(number for number, text in enumerate(texts, start=1) if is_kept(question.place, text))
        yield Wanted(question.session, asked[question.id], turns)


def ranks(search: SearchStore, wanted: Sequence[Wanted]) -> list[int]:
    """Returns for each query the place of the first right turn, from 1; 0 if it isn't among the first ten."""
    return [_rank(_find(search, each), each.turns) for each in wanted]


def _find(search: SearchStore, wanted: Wanted) -> list[int]:
    return search.turns(wanted.session, wanted.query, before_turn=_LONG_TURNS + 1, limit=PLACES[-1])


def _rank(found: Sequence[int], turns: frozenset[int]) -> int:
    return next((place for place, turn in enumerate(found, start=1) if turn in turns), 0)


def share_within(places: Sequence[int], most: int) -> float:
    """Returns the share of queries whose turn is among the first `most`."""
    return sum(0 < place <= most for place in places) / max(1, len(places))


def _times(search: SearchStore, wanted: Sequence[Wanted]) -> list[float]:
    """Returns the seconds of each query."""
    seconds = []
    for each in wanted:
        began = time.perf_counter()
        _find(search, each)
        seconds.append(time.perf_counter() - began)
    return seconds


def _table(found: Mapping[str, Sequence[int]], seconds: Sequence[float]) -> Iterator[str]:
    yield f"| queries | n | {' | '.join(f'@{most}' for most in PLACES)} |"
    yield f"|---|---:|{'---:|' * len(PLACES)}"
    for name, places in found.items():
        shares = " | ".join(f"{share_within(places, most):.0%}" for most in PLACES)
        yield f"| {name} | {len(places):,} | {shares} |"
    yield ""
    yield (
        f"Time at {_LONG_TURNS:,} turns: median {median(seconds) * 1000:.1f} ms, "
        f"95 of 100 within {quantiles(seconds, n=20)[-1] * 1000:.1f} ms."
    )
