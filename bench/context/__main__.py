"""`make bench-context`: runs every strategy and its peers over one scripted chat; writes table, plot and verdict."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl

from bench.context import prefix
from bench.context.contenders import Costs, Meter, OurRun, Prepare, full_history, langmem, middleware, play, trimmed
from bench.context.recall import recalled_shares
from bench.context.script import ScriptedTurn, build_script
from bench.report import Requirement, percent, table, verdict, write_page
from bench.server import ROOT
from graph.strategy.base import Limits
from graph.strategy.strategies import build_strategies

ANSWER_CHARS = (300, 1_200, 2_000)
CHECKPOINTS = (50, 200, 1_000)
OUR_NAMES = ("interval", "rolling", "compaction", "window")
FULL = "full history"
VIEWS = ("with a cache, one model", "with a cache, small summary model", "no cache")
_QUARTILES = 4
_SAMPLED_SHARE = 0.1
_FACT = re.compile(r"[A-Z]{2}-\d{7}")
_BUDGETS = (8_000, 16_000)
_EARLY_TURNS = 300
_MOST_GROWTH = 1.2
_MOST_MERGES = 3
_LEAST_UNCHANGED = 0.85
_SEED_RECORDS = 16
_COMPARED_TURNS = (200, 1_000)
_LEAST_KEPT = {200: 0.85, 1_000: 0.5}
_LEAST_OLDEST = 0.4
_LEAST_RECALLED = 0.95
_COLUMNS = (
    ";sent;largest;unchanged;summaries in / out;cost A;cost B;cost C;facts;by age, oldest first;recall;own ms a turn"
).split(";")
_STYLES = {
    "interval": ("#0b6e4f", "-", 2.4),
    "rolling": ("#d1495b", "-", 1.4),
    "compaction": ("#edae49", "-", 1.4),
    "window": ("#7d8597", "-", 1.4),
    "full history": ("#30343f", ":", 1.6),
    "SummarizationMiddleware 8k": ("#3066be", "--", 1.2),
    "langmem 8k": ("#8d5fd3", "--", 1.2),
    "trim_messages 8k": ("#4a9ca8", "--", 1.2),
}


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


def main() -> int:
    # langmem 0.0.30 targets an older LangGraph and warns at each import.
    warnings.simplefilter("ignore", DeprecationWarning)
    began = time.monotonic()
    runs: list[Run] = []
    views: list[prefix.View] = []
    for chars in ANSWER_CHARS:
        print(f"answers of {chars} characters", flush=True)
        script = build_script(max(CHECKPOINTS), chars)
        for run in _run_all(script, chars):
            last = run.at[max(run.at)]
            print(f"  {run.name}: {last.sent_tokens:,} tokens sent, {last.retained:.0%} of the facts kept", flush=True)
            runs.append(run)
        views.append(prefix.view(script, chars))
    chars = ANSWER_CHARS[1]
    long_results = prefix.view(prefix.with_results(build_script(prefix.RESULT_TURNS, chars)), chars)
    requirements = [*check(runs), *prefix.check(views, long_results, CHECKPOINTS)]
    lines = [*_page(runs), *prefix.section(views, long_results, CHECKPOINTS), ""]
    write_page(ROOT / "docs/bench-context.md", lines, requirements)
    _draw(ROOT / "docs/bench-context.png", runs)
    print(f"in {time.monotonic() - began:.0f} s")
    return verdict(requirements)


def _run_all(script: Sequence[ScriptedTurn], answer_chars: int) -> Iterator[Run]:
    """Runs all contenders over one script."""
    recalled = recalled_shares(script, CHECKPOINTS)
    facts = [turn.fact for turn in script]
    for name in OUR_NAMES:
        strategy = build_strategies(Limits(), default_name=name, is_enabled=True).default
        ours = OurRun(strategy, Meter())
        run = Run(name, answer_chars, ours.meter, facts, ours=ours)
        play(ours.prepare, ours.meter, script, run.take)
        if strategy.sends_records:  # the others don't offer `recall`
            run.at = {turns: figures._replace(recalled=recalled[turns]) for turns, figures in run.at.items()}
        yield run
    makers: dict[str, Callable[[Meter], Prepare]] = {FULL: lambda _: full_history}
    for budget in _BUDGETS:
        size = f"{budget // 1_000}k"
        makers[f"SummarizationMiddleware {size}"] = partial(middleware, budget)
        makers[f"langmem {size}"] = partial(langmem, budget)
        makers[f"trim_messages {size}"] = lambda _, budget=budget: trimmed(budget)
    for name, make in makers.items():
        run = Run(name, answer_chars, Meter(), facts)
        play(make(run.meter), run.meter, script, run.take)
        yield run


def check(runs: Sequence[Run]) -> Iterator[Requirement]:
    """Yields the design's requirements of the default strategy."""
    for run in runs:
        if run.name == "interval":
            yield from _of_interval(run, runs)


def _of_interval(run: Run, runs: Sequence[Run]) -> Iterator[Requirement]:
    size = f"{run.answer_chars} characters"
    early, late = max(run.meter.sent_by_turn[: _EARLY_TURNS - 1]), max(run.meter.sent_by_turn[_EARLY_TURNS - 1 :])
    yield (
        late <= _MOST_GROWTH * early,
        f"{size}: largest input of turns 300-1,000 is {late / early:.2f} x that before ({late:,} / {early:,} tokens)",
    )
    merges = run.ours.first_turn_merges
    yield merges <= _MOST_MERGES, f"{size}: turn 1 was re-summarised {merges} times"
    yield run.records_at_50 == _SEED_RECORDS, f"{size}: {run.records_at_50} active records at turn 50"
    share = run.at[200].unchanged_share
    yield share >= _LEAST_UNCHANGED, f"{size}: {share:.1%} of the tokens sent in 200 turns are an unchanged prefix"
    for turns, least in _LEAST_KEPT.items():
        at, begin = run.at[turns], f"{size}, {turns:,} turns:"
        yield at.retained >= least, f"{begin} {at.retained:.0%} of the planted facts are in the input"
        yield at.retained_by_age[0] >= _LEAST_OLDEST, f"{begin} {at.retained_by_age[0]:.0%} of the oldest quarter of them"
        found = at.recalled or 0.0
        yield found >= _LEAST_RECALLED, f"{begin} recall finds {found:.1%} of them by a plain question"
    peers = [peer for peer in runs if not peer.ours and peer.answer_chars == run.answer_chars]
    for turns in _COMPARED_TURNS:
        mine = run.at[turns]
        for number, words in enumerate(VIEWS):
            better = [
                peer.name
                for peer in peers
                if peer.at[turns].costs[number] < mine.costs[number] and peer.at[turns].retained > mine.retained
            ]
            begin = f"{size}, {turns:,} turns, {words}: cheaper and keeping more than interval:"
            yield not better, f"{begin} {', '.join(better) or 'none'}"


def _pays_from(runs: Sequence[Run], name: str, answer_chars: int, number: int) -> str:
    """Returns the turn from which a strategy stays cheaper than the full history."""
    mine, full = (
        next(run.meter for run in runs if (run.name, run.answer_chars) == (wanted, answer_chars))
        for wanted in (name, FULL)
    )
    pairs = zip(mine.costs_by_turn, full.costs_by_turn, strict=True)
    last = max((turn for turn, (a, b) in enumerate(pairs, start=1) if a[number] > b[number]), default=0)
    return "not in 1,000" if last == len(full.costs_by_turn) else f"{last + 1:,}"


def _page(runs: Sequence[Run]) -> Iterator[str]:
    """Yields the lines of the page before those about folds in place."""
    peers = ", ".join(f"{name} {version(name)}" for name in ("langchain", "langmem", "langchain-core"))
    introduction = (Path(__file__).parent / "introduction.md").read_text(encoding="utf-8")
    yield introduction.replace("{peers}", peers)
    yield from ("## From which turn on folding pays", "")
    yield from ("The first turn from which on the whole chat has cost less than with the full history, for good:", "")
    yield from table(
        ["strategy", "price", *(f"{chars:,} characters" for chars in ANSWER_CHARS)],
        (
            [f"`{name}`", words, *(_pays_from(runs, name, chars, number) for chars in ANSWER_CHARS)]
            for name in OUR_NAMES
            for number, words in enumerate(VIEWS)
        ),
        left=2,
    )
    for chars in ANSWER_CHARS:
        for turns in CHECKPOINTS:
            yield from ("", f"## {turns:,} turns, answers of {chars:,} characters", "")
            yield from table(
                _COLUMNS,
                (
                    [f"**{run.name}**" if run.ours else run.name, *run.at[turns].cells()]
                    for run in runs
                    if run.answer_chars == chars
                ),
            )
    yield ""


def _draw(path: Path, runs: Sequence[Run]) -> None:
    """Writes a PNG with tokens of each turn's input, and with cost against planted facts kept after 1,000 turns."""
    mpl.use("agg")
    from matplotlib import pyplot as plt  # after the backend is chosen

    shown = [run for run in runs if run.answer_chars == ANSWER_CHARS[1] and run.name in _STYLES]
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), dpi=110)
    for run in shown:
        colour, line, width = _STYLES[run.name]
        tokens = run.meter.sent_by_turn
        left.plot(range(1, len(tokens) + 1), tokens, color=colour, linestyle=line, linewidth=width, label=run.name)
        last = run.at[max(run.at)]
        point = (last.costs[0], 100 * last.retained)
        right.scatter(*point, color=colour, s=60)
        right.annotate(run.name, point, (6, 4), textcoords="offset points", fontsize=8)
    left.set_title("Largest input of each turn (answers of 1,200 characters)", fontsize=10)
    left.set(xlabel="turn", ylabel="tokens (o200k)", yscale="log")
    left.set_ylim(top=6_000_000)  # room for the legend
    left.legend(fontsize=8, ncol=3, loc="upper center")
    right.set_title("Cost and memory after 1,000 turns (cache, one model)", fontsize=10)
    right.set(xlabel="cost, in input tokens at full price", ylabel="planted facts still in the input, %", xscale="log")
    for axes in (left, right):
        axes.grid(visible=True, alpha=0.25)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
