"""Measures which secrets are missed and which ordinary sentences are taken for one; checks the bounds.

    python -m bench.secret [--seed 1] [--data DIR]

With a folder of public data sets it also counts what is masked there, and writes `docs/bench-secret.md`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.secret.kind import secret_samples
from bench.secret.measure import measure, stopped_texts
from bench.secret.public import read_public
from bench.secret.report import report
from bench.secret.sentence import ordinary_sentences
from graph.project.secret import mask_secrets

_EACH: Final = 40
_SENTENCES: Final = 2_000
_PAGE: Final = Path(__file__).parents[2] / "docs" / "bench-secret.md"
_SOURCES: Final = """\
The bench reads public data sets, each from a folder of its name below the one that --data names:
  klue-ner         https://github.com/KLUE-benchmark/KLUE, klue_benchmark/klue-ner-v1.1: klue-ner-v1.1_dev.tsv
  functionchat-ko  https://github.com/kakao/FunctionChat-Bench, data/FunctionChat-Dialog.jsonl
  bfcl-memory      https://github.com/ShishirPatil/gorilla, berkeley-function-call-leaderboard/bfcl_eval/data:
                   memory_prereq_conversation/memory_*.json"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; writes the page if there is public data.

    Returns:
        0 if every bound is met, 1 if not, 2 if the data isn't there.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.secret", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=None, help="folder of the data sets")
    parsed = parser.parse_args(arguments)
    try:
        public = read_public(parsed.data) if parsed.data else {}
    except FileNotFoundError as error:
        print(f"There is no {error.filename}.\n{_SOURCES}", file=sys.stderr)
        return 2
    began = time.monotonic()
    samples = [*secret_samples(parsed.seed, _EACH)]
    sentences = [*ordinary_sentences(parsed.seed, _SENTENCES)]
    figures = measure(samples, sentences, mask_secrets)
    stopped = {name: (len(texts), stopped_texts(texts, mask_secrets)) for name, texts in public.items()}
    for failure in figures.failures:
        print(failure)
    for name, (count, texts) in stopped.items():
        print(f"{name}: {len(texts)} of {count:,} masked", *texts, sep="\n  ")
    for is_met, words in figures.requirements:
        print("ok  " if is_met else "FAIL", words)
    if stopped:
        _PAGE.write_text(report(figures, stopped), encoding="utf-8")
        print(f"wrote docs/{_PAGE.name}")
    failed = sum(not is_met for is_met, _ in figures.requirements)
    print(f"verdict: {'NOT within' if failed else 'within'} bounds, {time.monotonic() - began:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
