"""Measures how many answers of bfcl-memory each contender keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final

from langchain_core.messages import HumanMessage

from bench.quality.contender import AVERAGE, PICKED, SUM, WINDOW, Shorten, contenders, count_chars
from bench.quality.memory import Question, is_kept, normalise, read_questions, read_sessions
from bench.quality.section import RATES, Section

_AHEAD_OF_WINDOW: Final = 0.15
_AHEAD_RATES: Final = (0.3, 0.5)
_METHOD: Final = """\
Data: bfcl-memory, English. All chats of one persona, in their order, are one session: {sessions} sessions, {turns}
turns of the user alone, {chars:,} characters. A question counts if one of its accepted answers stands literally in the
session near the words of its source quotation: n = {questions} of {all}. An answer is kept if it is still there
**with up to two words of its sentence on either side**, so that another "7" doesn't count; letter case, quotation marks
and dashes don't matter.

Each contender may keep the same share of the characters. Ours folds three turns at a time, knowing only what had been
said by then; the others choose from the whole session. `window`: the newest text. `random sentences`: ten draws with
fixed seeds, their average. `tf-idf`: each sentence a document, ranked by the average or the sum of its words' tf-idf.
The weights in `graph/core` were tuned on {tuned} of the questions (even first byte of the SHA-256 of the id), never on
the other {rest}. "size" is what was kept of the characters at 0.3."""


@dataclass(frozen=True)
class Kept:
    """What a contender keeps.

    Attributes:
        everything: Share of all answers at each of `RATES`.
        rest: Share of those that nothing was tuned on.
        tuned: Share of those that weights were tuned on.
        size: Share of the characters at each of `RATES`.
    """

    everything: tuple[float, ...]
    rest: tuple[float, ...]
    tuned: tuple[float, ...]
    size: tuple[float, ...]


def measure(folder: Path) -> Section:
    """Measures all contenders.

    Args:
        folder: Has `bfcl-memory`.

    Raises:
        FileNotFoundError: The data isn't there.
    """
    sessions = read_sessions(folder / "bfcl-memory")
    questions, unplaced = read_questions(folder / "bfcl-memory", sessions)
    kept = {name: keep(sessions, questions, ways) for name, ways in contenders().items()}
    tuned = sum(question.is_for_tuning for question in questions)
    method = _METHOD.format(
        sessions=len(sessions),
        turns=sum(map(len, sessions.values())),
        chars=sum(map(count_chars, sessions.values())),
        questions=len(questions),
        all=len(questions) + unplaced,
        tuned=tuned,
        rest=len(questions) - tuned,
    )
    return Section(
        "Answers that picked sentences keep",
        method,
        tuple(_table(kept, tuned, len(questions) - tuned)),
        tuple(check(kept)),
        {name: each.everything for name, each in kept.items()},
    )


def keep(
    sessions: Mapping[str, Sequence[HumanMessage]], questions: Sequence[Question], ways: Sequence[Shorten]
) -> Kept:
    """Shortens each session at each rate and counts the answers that are left; the average over all ways."""
    rows = [[_kept_by(sessions, questions, way, rate) for way in ways] for rate in RATES]
    shares = [tuple(mean(column) for column in zip(*row, strict=True)) for row in rows]
    everything, rest, tuned, size = zip(*shares, strict=True)
    return Kept(everything, rest, tuned, size)


def _kept_by(
    sessions: Mapping[str, Sequence[HumanMessage]], questions: Sequence[Question], way: Shorten, rate: float
) -> tuple[float, float, float, float]:
    texts = {name: way(messages, rate) for name, messages in sessions.items()}
    plain = {name: normalise(text) for name, text in texts.items()}
    found = [(question.is_for_tuning, is_kept(question.place, plain[question.session])) for question in questions]
    size = sum(map(len, texts.values())) / max(1, sum(map(count_chars, sessions.values())))
    rest, tuned = ([hit for is_tuned, hit in found if is_tuned == half] for half in (False, True))
    return _share([hit for _, hit in found]), _share(rest), _share(tuned), size


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / max(1, len(hits))


def check(kept: Mapping[str, Kept]) -> Iterator[tuple[bool, str]]:
    """Yields the requirements: as good as tf-idf at each rate, and ahead of the window by 15 points at 0.3 and 0.5."""
    for index, rate in enumerate(RATES):
        ours, best = kept[PICKED].everything[index], max(kept[name].everything[index] for name in (AVERAGE, SUM))
        yield ours >= best, f"answers at {rate}: picked sentences keep {ours:.0%}, the better tf-idf {best:.0%}"
    for rate in _AHEAD_RATES:
        index = RATES.index(rate)
        ours, newest = kept[PICKED].everything[index], kept[WINDOW].everything[index]
        yield (
            ours - newest >= _AHEAD_OF_WINDOW,
            f"answers at {rate}: picked sentences keep {ours:.0%}, the window {newest:.0%} (at least 15 points less)",
        )


def _table(kept: Mapping[str, Kept], tuned: int, rest: int) -> Iterator[str]:
    rates = " / ".join(str(rate) for rate in RATES)
    yield f"| kept at {rates} | all (n = {tuned + rest}) | not tuned on (n = {rest}) | tuned on (n = {tuned}) | size |"
    yield "|---|---:|---:|---:|---:|"
    for name, each in kept.items():
        halves = (" / ".join(f"{share:.0%}" for share in half) for half in (each.everything, each.rest, each.tuned))
        label = f"**{name}**" if name == PICKED else name
        yield f"| {label} | {' | '.join(halves)} | {each.size[RATES.index(0.3)]:.0%} |"
