"""`make bench-quality`: measures on public data what folds keep; writes page, plot and verdict."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.quality import answer, argument, entity, fact_step, found
from bench.quality.plot import draw
from bench.quality.report import write_report
from bench.quality.section import Section

PARTS: Final[Sequence[Callable[[Path], Section]]] = (
    answer.measure,
    argument.measure,
    fact_step.measure,
    entity.report,
    found.measure,
)
_ROOT: Final = Path(__file__).parents[2]
_SOURCES: Final = """\
The bench reads public data sets, each from a folder of its name below the one that --data names:
  bfcl-memory  https://github.com/ShishirPatil/gorilla, berkeley-function-call-leaderboard/bfcl_eval/data:
               BFCL_v4_memory.json, possible_answer/BFCL_v4_memory.json as possible_answer_memory.json,
               memory_prereq_conversation/memory_*.json
  tau-bench    https://github.com/sierra-research/tau-bench, historical_trajectories/gpt-4o-airline.json:
               its first 40 runs as gpt-4o-airline-first40.json
  klue-ner     https://github.com/KLUE-benchmark/KLUE, klue_benchmark/klue-ner-v1.1: klue-ner-v1.1_dev.tsv"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs all parts and writes `docs/bench-quality.md` and `.png`.

    Returns:
        0 if every requirement is met, 1 if not, 2 if the data isn't there.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--data", type=Path, default=_ROOT.parent / "shared" / "data", help="folder of the data sets")
    folder: Path = parser.parse_args(arguments).data
    began = time.monotonic()
    try:
        sections = [measure(folder) for measure in PARTS]
    except FileNotFoundError as error:
        print(f"There is no {error.filename}.\n{_SOURCES}", file=sys.stderr)
        return 2
    lines = [line for section in sections for line in section.requirements]
    for is_met, words in lines:
        print("ok  " if is_met else "FAIL", words)
    write_report(_ROOT / "docs" / "bench-quality.md", sections)
    draw(_ROOT / "docs" / "bench-quality.png", sections)
    failed = sum(not is_met for is_met, _ in lines)
    print(f"wrote docs/bench-quality.md and docs/bench-quality.png in {time.monotonic() - began:.0f} s")
    print(f"verdict: {failed} of {len(lines)} requirements NOT met" if failed else f"verdict: all {len(lines)} met")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
