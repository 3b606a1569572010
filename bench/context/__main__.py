"""`make bench-context`: runs every strategy and its peers over one scripted chat; writes table, plot and verdict."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Final

from bench.context.plot import draw
from bench.context.prefix import all_views, check_views, section
from bench.context.report import write_report
from bench.context.run import CHECKPOINTS, Run, run_all
from bench.context.script import build_script
from bench.context.verdict import check

ANSWER_CHARS: Final = (300, 1_200, 2_000)
_DOCS: Final = Path(__file__).parents[2] / "docs"


def main() -> int:
    """Runs the bench and writes `docs/bench-context.md` and `.png`; returns 0 if every requirement is met."""
    # langmem 0.0.30 targets an older LangGraph and warns at each import.
    warnings.simplefilter("ignore", DeprecationWarning)
    began = time.monotonic()
    runs: list[Run] = []
    for chars in ANSWER_CHARS:
        print(f"answers of {chars} characters", flush=True)
        runs += run_all(build_script(max(CHECKPOINTS), chars), chars, _tell)
    print("folds in place", flush=True)
    views = all_views()
    lines = [*check(runs), *check_views(*views)]
    for is_met, words in lines:
        print("ok  " if is_met else "FAIL", words)
    write_report(_DOCS / "bench-context.md", runs, lines, beside=list(section(*views)))
    draw(_DOCS / "bench-context.png", runs)
    failed = sum(not is_met for is_met, _ in lines)
    print(f"wrote docs/bench-context.md and docs/bench-context.png in {time.monotonic() - began:.0f} s")
    print(f"verdict: {failed} of {len(lines)} requirements NOT met" if failed else f"verdict: all {len(lines)} met")
    return 1 if failed else 0


def _tell(run: Run) -> None:
    last = run.at[max(run.at)]
    print(f"  {run.name}: {last.sent_tokens:,} tokens sent, {last.kept:.0%} of the facts kept", flush=True)


if __name__ == "__main__":
    sys.exit(main())
