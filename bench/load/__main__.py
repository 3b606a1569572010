"""`make load`: a hundred programs and twenty pages on two servers with one Postgres, beside one of each alone.

    python -m bench.load [--programs 100] [--pages 20] [--turns 6] [--alone 30] [--write]

The users have pauses, as people have, and every chat is read back at the end. The endpoint behind the servers says how
long it took itself; the times are what is above that. `--write` puts the table into docs/scale.md and docs/scale.ko.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench.load.chat import PAUSE_SECONDS
from bench.load.endpoint import MODEL, serving
from bench.load.page import opened_browser
from bench.load.report import table, write
from bench.load.stage import OWNER, Figures, Servers, Stage, measure
from bench.page.app import PRODUCT, started_app
from tests.fake.postgres import serve_postgres

_SERVERS: Final = 2
_ALONE_PAUSE_SECONDS: Final = 2.0  # long enough for the folds of a turn to be made before the next one
# A server's first answers take longer: it reads modules, and makes connections.
_WARM_UP: Final = Stage("warm", 1, _SERVERS, _SERVERS, 0.0)
_PAGE_TOKEN: Final = "token-of-the-pages-0123456789"  # noqa: S105  # opens nothing but these servers
_SHOWN_ERRORS: Final = 5


def main() -> int:
    """Measures all stages and prints them; returns 0 if nothing went wrong and nothing was lost."""
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--alone", type=int, default=30, help="how many turns the one user has")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    stages = (
        Stage("a", 1, 0, options.alone, _ALONE_PAUSE_SECONDS),
        Stage("b", 0, 1, options.alone, _ALONE_PAUSE_SECONDS),
        Stage("c", options.programs, 0, options.turns, PAUSE_SECONDS),
        Stage("d", options.programs, options.pages, options.turns, PAUSE_SECONDS),
    )
    with _serving(options.programs) as servers:
        figures = asyncio.run(_measure_all(stages, servers))
    print(f"\n{table(figures, 'en')}")
    if options.write:
        write(figures, PRODUCT.parent)
    is_met = not any(each.errors or each.lost for each in figures)
    print("\nverdict:", "no error, nothing lost" if is_met else "NOT without errors or losses")
    return 0 if is_met else 1


async def _measure_all(stages: tuple[Stage, ...], servers: Servers) -> list[Figures]:
    figures = []
    async with opened_browser() as browser:
        await measure(_WARM_UP, servers, browser)
        for stage in stages:
            print(f"{stage.programs} programs, {stage.pages} pages, {stage.turns} turns each", flush=True)
            figures.append(await measure(stage, servers, browser))
            for error in figures[-1].errors[:_SHOWN_ERRORS]:
                print(f"  {error}", flush=True)
    return figures


@contextmanager
def _serving(programs: int) -> Iterator[Servers]:
    """Runs a database, the endpoint and the servers while the block runs."""
    tokens = [f"token-of-user-number-{number:04}" for number in range(programs)]
    listed = [f"user{number}:user{number}:{token}" for number, token in enumerate(tokens)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-load-")))
        database = stack.enter_context(serve_postgres()).make_database()
        settings = {
            "CHAT_DATABASE_URL": database,
            "OPENAI_BASE_URL": stack.enter_context(serving()),
            "OPENAI_API_KEY": "sk-bench",
            "CHAT_MODEL": MODEL,
            "MODEL_WINDOW_TOKENS": "100000",
            "TURNFOLD_DATA_DIR": str(folder / "data"),
            "TURNFOLD_OWNER": OWNER,
            "CHAT_API_TOKENS": ",".join([*listed, f"pages:{OWNER}:{_PAGE_TOKEN}"]),
            "CONCURRENT_TURNS": "1000",
            "TURNS_PER_MINUTE": "1000000",
        }
        apps = [stack.enter_context(started_app(folder, PRODUCT, settings)) for _ in range(_SERVERS)]
        ports, process_ids = zip(*apps, strict=True)
        yield Servers(ports, process_ids, tokens, _PAGE_TOKEN, database)


if __name__ == "__main__":
    sys.exit(main())
