"""The figures of a contender over the scripted chat, and what they have to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from bench.context.contenders import Costs, Meter, OurRun, Prepare, play
from bench.context.script import ScriptedTurn
from bench.report import Requirement, percent
from graph.strategy.base import Limits
from graph.strategy.strategies import build_strategies

CHECKPOINTS = (50, 200, 1_000)
_WHEN_IT_PAYS = ", when it pays"
PAYS = f"interval{_WHEN_IT_PAYS}"
VIEWS = ("with a cache, one model", "with a cache, small summary model", "no cache")
_QUARTILES = 4
_SAMPLED_SHARE = 0.1
_FACT = re.compile(r"[A-Z]{2}-\d{7}")
_EARLY_TURNS = 300
_MOST_GROWTH = 1.2
_MOST_MERGES = 3
_LEAST_UNCHANGED = 0.85
_SEED_RECORDS = 16
_LEAST_KEPT = {200: 0.85, 1_000: 0.5}
_LEAST_OLDEST = 0.4
_LEAST_RECALLED = 0.95


class Figures(NamedTuple):
    """Figures of one contender after a number of turns."""

    sent_tokens: int
    largest_tokens: int
    unchanged_share: float
    summary_in_tokens: int
    summary_out_tokens: int
    costs: Costs
    retained: float  # share of the planted facts in the input, averaged over the last tenth of the turns
    retained_by_age: tuple[float, ...]  # the same for each quarter of the facts, the oldest first
    own_ms: float  # the contender's own time per turn
    recalled: float | None = (
        None  # share of the facts that `recall` shows to a plain question; None where it isn't offered
    )

    def cells(self) -> tuple[str, ...]:
        return (
            f"{self.sent_tokens:,}",
            f"{self.largest_tokens:,}",
            percent(self.unchanged_share),
            f"{self.summary_in_tokens:,} / {self.summary_out_tokens:,}",
            *(f"{cost / 1_000:,.0f}" for cost in self.costs),
            percent(self.retained),
            " ".join(map(percent, self.retained_by_age)),
            "" if self.recalled is None else percent(self.recalled),
            f"{self.own_ms:.1f}",
        )


@dataclass
class Run:
    """One contender over one script; searches each turn's last input for the planted facts."""

    name: str
    answer_chars: int
    meter: Meter
    facts: list[str]
    at: dict[int, Figures] = field(default_factory=dict)  # by number of turns
    ours: OurRun | None = None
    records_at_50: int = 0  # how many were active when turn 50 was sent
    _retained: dict[int, list[list[float]]] = field(default_factory=lambda: {turns: [] for turns in CHECKPOINTS})

    def take(self, turn: int, text: str) -> None:
        """Takes a turn's last input, and the figures at the checkpoints."""
        wanted = [turns for turns in CHECKPOINTS if turns * (1 - _SAMPLED_SHARE) < turn <= turns]
        if wanted:
            found = set(_FACT.findall(text))
            edges = [turn * quarter // _QUARTILES for quarter in range(_QUARTILES + 1)]
            parts = [self.facts[first:last] for first, last in pairwise(edges)]
            shares = [sum(fact in found for fact in part) / max(1, len(part)) for part in parts]
            for turns in wanted:
                self._retained[turns].append(shares)
        if self.ours and turn == CHECKPOINTS[0]:
            self.records_at_50 = len(self.ours.active)
        if turn in CHECKPOINTS:
            meter, samples = self.meter, self._retained[turn]
            by_age = tuple(sum(column) / len(samples) for column in zip(*samples, strict=True))
            self.at[turn] = Figures(
                sent_tokens=meter.sent_tokens,
                largest_tokens=max(meter.sent_by_turn),
                unchanged_share=meter.unchanged_tokens / max(1, meter.sent_tokens),
                summary_in_tokens=meter.summary_in_tokens,
                summary_out_tokens=meter.summary_out_tokens,
                costs=meter.costs,
                retained=sum(by_age) / len(by_age),
                retained_by_age=by_age,
                own_ms=1_000 * meter.seconds / turn,
            )


def run_ours(name: str, script: Sequence[ScriptedTurn], answer_chars: int, recalled: Mapping[int, float]) -> Run:
    """Plays a script with a strategy of ours or `PAYS`; `recalled` has the share that `recall` finds, by turns."""
    limits = Limits(fold_when="pays") if name == PAYS else Limits()
    strategy = build_strategies(limits, default_name=name.removesuffix(_WHEN_IT_PAYS), is_enabled=True).default
    ours = OurRun(strategy, Meter())
    run = Run(name, answer_chars, ours.meter, [turn.fact for turn in script], ours=ours)
    play(ours.prepare, ours.meter, script, run.take)
    if strategy.sends_records:  # the others don't offer `recall`
        run.at = {turns: figures._replace(recalled=recalled[turns]) for turns, figures in run.at.items()}
    return run


def run_peer(name: str, make: Callable[[Meter], Prepare], script: Sequence[ScriptedTurn], answer_chars: int) -> Run:
    run = Run(name, answer_chars, Meter(), [turn.fact for turn in script])
    play(make(run.meter), run.meter, script, run.take)
    return run


def check(runs: Sequence[Run]) -> Iterator[Requirement]:
    """Yields the design's requirements of the default strategy, as far as its chat is long enough for them."""
    for run in runs:
        if run.name == "interval":
            yield from _of_interval(run, runs)


def _of_interval(run: Run, runs: Sequence[Run]) -> Iterator[Requirement]:
    size = f"{run.answer_chars} characters"
    sent = run.meter.sent_by_turn
    early, late = max(sent[: _EARLY_TURNS - 1]), max(sent[_EARLY_TURNS - 1 :], default=0)
    if late:
        yield (
            late <= _MOST_GROWTH * early,
            f"{size}: largest input of turns 300-1,000 is {late / early:.2f} x that before ({late:,} / {early:,} tokens)",
        )
    merges = run.ours.first_turn_merges if run.ours else 0
    yield merges <= _MOST_MERGES, f"{size}: turn 1 was re-summarised {merges} times"
    yield run.records_at_50 == _SEED_RECORDS, f"{size}: {run.records_at_50} active records at turn 50"
    share = run.at[200].unchanged_share
    yield share >= _LEAST_UNCHANGED, f"{size}: {share:.1%} of the tokens sent in 200 turns are an unchanged prefix"
    kept = {turns: least for turns, least in _LEAST_KEPT.items() if turns in run.at}
    for turns, least in kept.items():
        at, begin = run.at[turns], f"{size}, {turns:,} turns:"
        yield at.retained >= least, f"{begin} {at.retained:.0%} of the planted facts are in the input"
        yield at.retained_by_age[0] >= _LEAST_OLDEST, f"{begin} {at.retained_by_age[0]:.0%} of the oldest quarter of them"
        found = at.recalled or 0.0
        yield found >= _LEAST_RECALLED, f"{begin} recall finds {found:.1%} of them by a plain question"
    peers = [peer for peer in runs if not peer.ours and peer.answer_chars == run.answer_chars]
    for turns in kept:
        mine = run.at[turns]
        for number, words in enumerate(VIEWS):
            better = [
                peer.name
                for peer in peers
                if peer.at[turns].costs[number] < mine.costs[number] and peer.at[turns].retained > mine.retained
            ]
            begin = f"{size}, {turns:,} turns, {words}: cheaper and keeping more than interval:"
            yield not better, f"{begin} {', '.join(better) or 'none'}"
