"""Checks the figures against the design's requirements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bench.context.run import FULL, Run

VIEWS: Final = ("with a cache, one model", "with a cache, small summary model", "no cache")
_EARLY_TURNS: Final = 300
_MOST_GROWTH: Final = 1.2
_MOST_MERGES: Final = 3
_LEAST_UNCHANGED: Final = 0.85
_SEED_RECORDS: Final = 16
_COMPARED_TURNS: Final = (200, 1_000)
_LEAST_KEPT: Final = {200: 0.85, 1_000: 0.5}
_LEAST_OLDEST: Final = 0.4
_LEAST_RECALLED: Final = 0.95


def check(runs: Sequence[Run]) -> list[tuple[bool, str]]:
    """Returns each requirement's sentence and whether it is met."""
    return [line for run in runs if run.name == "interval" for line in _of_interval(run, runs)]


def _of_interval(run: Run, runs: Sequence[Run]) -> Iterator[tuple[bool, str]]:
    size = f"{run.answer_chars} characters"
    early, late = max(run.meter.sent_by_turn[: _EARLY_TURNS - 1]), max(run.meter.sent_by_turn[_EARLY_TURNS - 1 :])
    yield (
        late <= _MOST_GROWTH * early,
        (f"{size}: largest input of turns 300-1,000 is {late / early:.2f} x that before ({late:,} / {early:,} tokens)"),
    )
    yield run.first_turn_merges <= _MOST_MERGES, f"{size}: turn 1 was re-summarised {run.first_turn_merges} times"
    yield run.records_at_50 == _SEED_RECORDS, f"{size}: {run.records_at_50} active records at turn 50"
    share = run.at[200].unchanged_share
    yield share >= _LEAST_UNCHANGED, f"{size}: {share:.1%} of the tokens sent in 200 turns are an unchanged prefix"
    yield from _kept(run, size)
    for turns in _COMPARED_TURNS:
        for view, words in enumerate(VIEWS):
            better = [peer.name for peer in runs if _is_better(peer, run, turns, view)]
            yield (
                not better,
                (
                    f"{size}, {turns:,} turns, {words}: cheaper and keeping more than interval: "
                    f"{', '.join(better) or 'none'}"
                ),
            )


def _kept(run: Run, size: str) -> Iterator[tuple[bool, str]]:
    for turns, least in _LEAST_KEPT.items():
        at = run.at[turns]
        yield at.kept >= least, f"{size}, {turns:,} turns: {at.kept:.0%} of the planted facts are in the input"
        oldest = at.kept_by_age[0]
        yield oldest >= _LEAST_OLDEST, f"{size}, {turns:,} turns: {oldest:.0%} of the oldest quarter of them"
        found = at.recalled or 0.0
        yield found >= _LEAST_RECALLED, f"{size}, {turns:,} turns: recall finds {found:.1%} of them by a plain question"


def _is_better(peer: Run, interval: Run, turns: int, view: int) -> bool:
    if peer.is_ours or peer.answer_chars != interval.answer_chars:
        return False
    theirs, mine = peer.at[turns], interval.at[turns]
    return theirs.costs[view] < mine.costs[view] and theirs.kept > mine.kept


def pays_from(runs: Sequence[Run], name: str, answer_chars: int, view: int) -> int | None:
    """Returns the turn from which a strategy stays cheaper than the full history, None if there is none."""
    mine, full = (
        next(run for run in runs if (run.name, run.answer_chars) == (wanted, answer_chars)) for wanted in (name, FULL)
    )
    pairs = zip(mine.meter.costs_by_turn, full.meter.costs_by_turn, strict=True)
    dearer = [turn for turn, (a, b) in enumerate(pairs, start=1) if a[view] > b[view]]
    last = dearer[-1] if dearer else 0
    return None if last == len(full.meter.costs_by_turn) else last + 1
