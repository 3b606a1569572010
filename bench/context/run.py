"""Runs every contender over the script and records its figures after 50, 200 and 1,000 turns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from bench.context.measure import Costs, Meter
from bench.context.ours import OurRun
from bench.context.peers import Contender, FullHistory, Langmem, Middleware, Trimmed, play
from bench.context.recall import recalled_shares
from bench.context.script import ScriptedTurn
from graph.strategy.base import Limits
from graph.strategy.strategies import build_strategies

CHECKPOINTS: Final = (50, 200, 1_000)
OUR_NAMES: Final = ("interval", "rolling", "compaction", "window")
FULL: Final = "full history"
QUARTILES: Final = 4
_SAMPLED_SHARE: Final = 0.1
_FACT: Final = re.compile(r"[A-Z]{2}-\d{7}")
_BUDGETS: Final = (8_000, 16_000)


@dataclass(frozen=True)
class Figures:
    """Figures of one contender after a number of turns.

    Attributes:
        kept: Share of the planted facts in the input, averaged over the last tenth of the turns.
        kept_by_age: The same for each quarter of the facts, the oldest first.
        recalled: Share of the planted facts that `recall` shows when asked by a plain question; None where it isn't
            offered.
        own_ms: The contender's own time per turn.
    """

    turns: int
    sent_tokens: int
    largest_tokens: int
    unchanged_share: float
    summary_in_tokens: int
    summary_out_tokens: int
    costs: Costs
    kept: float
    kept_by_age: tuple[float, ...]
    own_ms: float
    recalled: float | None = None


@dataclass
class Run:
    """One contender over one script.

    Attributes:
        at: Figures by number of turns.
        records_at_50: With interval: how many records were active when turn 50 was sent.
        first_turn_merges: With interval: how often turn 1 was summarised again.
    """

    name: str
    answer_chars: int
    meter: Meter
    at: dict[int, Figures] = field(default_factory=dict)
    records_at_50: int = 0
    first_turn_merges: int = 0

    @property
    def is_ours(self) -> bool:
        """Whether the contender is one of Turnfold's strategies."""
        return self.name in OUR_NAMES


def run_all(script: Sequence[ScriptedTurn], answer_chars: int, told: Callable[[Run], None]) -> list[Run]:
    """Runs all contenders over one script; calls `told` with each finished run."""
    runs = []
    recalled = recalled_shares(script, CHECKPOINTS)
    for name in OUR_NAMES:
        runs.append(_run_ours(name, script, answer_chars, recalled))
        told(runs[-1])
    for name in _peers(Meter()):
        meter = Meter()
        run = Run(name, answer_chars, meter)
        play(_peers(meter)[name], meter, script, _Watch(run, script))
        runs.append(run)
        told(run)
    return runs


def _run_ours(name: str, script: Sequence[ScriptedTurn], answer_chars: int, recalled: Mapping[int, float]) -> Run:
    strategies = build_strategies(Limits(), default_name=name, is_enabled=True)
    ours = OurRun(strategies.default)
    run = Run(name, answer_chars, ours.meter)
    watch = _Watch(run, script)

    def on_input(turn: int, text: str) -> None:
        if turn == CHECKPOINTS[0]:
            run.records_at_50 = len(ours.active)
        watch(turn, text)

    ours.play(script, on_input)
    run.first_turn_merges = ours.first_turn_merges
    if strategies.default.sends_records:  # the others don't offer `recall`
        run.at = {turns: replace(figures, recalled=recalled[turns]) for turns, figures in run.at.items()}
    return run


def _peers(meter: Meter) -> dict[str, Contender]:
    made: dict[str, Contender] = {FULL: FullHistory()}
    for budget in _BUDGETS:
        size = f"{budget // 1_000}k"
        made[f"SummarizationMiddleware {size}"] = Middleware(budget, meter)
        made[f"langmem {size}"] = Langmem(budget, meter)
        made[f"trim_messages {size}"] = Trimmed(budget)
    return made


class _Watch:
    """Searches each turn's last input for the planted facts, and records the figures at the checkpoints."""

    def __init__(self, run: Run, script: Sequence[ScriptedTurn]) -> None:
        self._run = run
        self._facts = [turn.fact for turn in script]
        self._kept: dict[int, list[list[float]]] = {turns: [] for turns in CHECKPOINTS}

    def __call__(self, turn: int, text: str) -> None:
        wanted = [turns for turns in CHECKPOINTS if turns * (1 - _SAMPLED_SHARE) < turn <= turns]
        if wanted:
            found = set(_FACT.findall(text))
            for turns in wanted:
                self._kept[turns].append(_by_age(self._facts[:turn], found))
        if turn in CHECKPOINTS:
            self._run.at[turn] = self._figures(turn)

    def _figures(self, turns: int) -> Figures:
        meter, samples = self._run.meter, self._kept[turns]
        by_age = tuple(sum(column) / len(samples) for column in zip(*samples, strict=True))
        return Figures(
            turns=turns,
            sent_tokens=meter.sent_tokens,
            largest_tokens=max(meter.sent_by_turn),
            unchanged_share=meter.unchanged_share,
            summary_in_tokens=meter.summary_in_tokens,
            summary_out_tokens=meter.summary_out_tokens,
            costs=meter.costs,
            kept=sum(by_age) / len(by_age),
            kept_by_age=by_age,
            own_ms=1_000 * meter.seconds / turns,
        )


def _by_age(facts: Sequence[str], found: set[str]) -> list[float]:
    edges = [len(facts) * quarter // QUARTILES for quarter in range(QUARTILES + 1)]
    parts = [facts[first:last] for first, last in pairwise(edges)]
    return [sum(fact in found for fact in part) / max(1, len(part)) for part in parts]
