"""`make bench-context`: runs every strategy and its peers over one scripted chat; writes table, plot and verdict."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl

from bench.context import prefix
from bench.context.contenders import Meter, Prepare, full_history, trimmed
from bench.context.figures import CHECKPOINTS, PAYS, VIEWS, Run, check, run_ours, run_peer
from bench.context.peers import langmem, middleware
from bench.context.recall import recalled_shares
from bench.context.script import ScriptedTurn, build_script
from bench.report import table, verdict, write_page
from bench.server import ROOT

ANSWER_CHARS = (300, 1_200, 2_000)
OUR_NAMES = ("interval", PAYS, "rolling", "compaction", "window")
FULL = "full history"
_BUDGETS = (8_000, 16_000)
_COLUMNS = (
    ";sent;largest;unchanged;summaries in / out;cost A;cost B;cost C;facts;by age, oldest first;recall;own ms a turn"
).split(";")
_STYLES = {
    "interval": ("#0b6e4f", "-", 2.4),
    PAYS: ("#0b6e4f", "--", 1.2),
    "rolling": ("#d1495b", "-", 1.4),
    "compaction": ("#edae49", "-", 1.4),
    "window": ("#7d8597", "-", 1.4),
    "full history": ("#30343f", ":", 1.6),
    "SummarizationMiddleware 8k": ("#3066be", "--", 1.2),
    "langmem 8k": ("#8d5fd3", "--", 1.2),
    "trim_messages 8k": ("#4a9ca8", "--", 1.2),
}


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
    for name in OUR_NAMES:
        yield run_ours(name, script, answer_chars, recalled)
    makers: dict[str, Callable[[Meter], Prepare]] = {FULL: lambda _: full_history}
    for budget in _BUDGETS:
        size = f"{budget // 1_000}k"
        makers[f"SummarizationMiddleware {size}"] = partial(middleware, budget)
        makers[f"langmem {size}"] = partial(langmem, budget)
        makers[f"trim_messages {size}"] = lambda _, budget=budget: trimmed(budget)
    for name, make in makers.items():
        yield run_peer(name, make, script, answer_chars)


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
