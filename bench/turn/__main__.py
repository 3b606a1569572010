"""`make bench-turn`: what a turn costs besides the model: statements, transactions and CPU; and what idle tabs cost.

    python -m bench.turn [--turns 1000] [--rounds 7] [--tabs 1 10 50] [--only service|page] [--where]

The statements are those to the product's own tables: those of LangGraph, and what watches running turns (partial text,
stop, lease), aren't counted. The CPU is beside that of a bare LangGraph chat and of a bare Streamlit chat over the same
endpoint. `--where` lists who sent the statements.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.endpoint import serving
from bench.report import Requirement, verdict
from bench.turn import page, service


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.turn")
    parser.add_argument("--turns", type=int, default=1_000, help="of the long session")
    parser.add_argument("--rounds", type=int, default=7, help="of turns whose CPU is compared")
    parser.add_argument("--tabs", type=int, nargs="+", default=page.TABS, help="how many idle ones, fewest first")
    parser.add_argument("--only", choices=("service", "page"))
    parser.add_argument("--where", action="store_true", help="list who sent the statements")
    with ExitStack() as stack:
        return verdict(_measure(stack, parser.parse_args()))


def _measure(stack: ExitStack, options: argparse.Namespace) -> Iterator[Requirement]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-bench-")))
    url = stack.enter_context(serving()).url
    if options.only != "page":
        yield from service.measure(folder, url, turns=options.turns, rounds=options.rounds, has_where=options.where)
    if options.only != "service":
        yield from page.measure(stack, folder, url, rounds=options.rounds, tabs=options.tabs, has_where=options.where)


if __name__ == "__main__":
    sys.exit(main())
