"""`make bench-door`: what the door for programs adds to an answer, and what 500 open streams leave of the page.

    python -m bench.door [--samples 50] [--streams 500] [--looks 5]

The product runs as its users run it; the endpoint behind it is scripted, and stands on loopback like all else.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser

from bench.door.beside import look
from bench.door.crowd import Crowd
from bench.door.first_words import Pair, compare_long_chat, compare_second_turns
from bench.door.program import Program
from bench.page import endpoint
from bench.page.app import PRODUCT, opened_browser, started_app
from bench.page.wire import Wire

MOST_MORE: Final = 40.0  # milliseconds
MOST_MORE_BESIDE: Final = 1_000.0  # a user who waits for longer notices that the page hangs
HISTORY: Final = 100
_KEY: Final = "sk-bench"
_TOKENS: Final = tuple(f"bench-token-number-{number}" for number in range(8))  # one may have 64 answers under way


def main() -> int:
    """Runs both comparisons and prints them; returns 0 if each is within its bound."""
    parser = argparse.ArgumentParser(prog="python -m bench.door")
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--looks", type=int, default=5)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-bench-")))
        upstream = stack.enter_context(endpoint.serving())
        port = stack.enter_context(started_app(folder, PRODUCT, _settings(upstream.url, folder))).port
        is_quick = _compare_first_words(upstream.url, _door(port), options.samples)
        wire = Wire(port)
        stack.callback(wire.close)
        browser = stack.enter_context(opened_browser())
        crowd = Crowd(_door(port), _TOKENS)
        is_usable = _compare_pages(browser, wire, crowd, upstream.may_end, options.streams, options.looks)
    is_met = is_quick and is_usable
    print("\nverdict:", "all within bounds" if is_met else "NOT within bounds")
    return 0 if is_met else 1


def _settings(url: str, folder: Path) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": _KEY,
        "CHAT_MODEL": "bench-model",
        "MODEL_WINDOW_TOKENS": "100000",
        "MODEL_DEADLINE_SECONDS": "3600",
        "TURNFOLD_DATA_DIR": str(folder / "data"),
        "CHAT_API_TOKENS": ",".join(f"bench{number}:local:{token}" for number, token in enumerate(_TOKENS)),
        "CONCURRENT_TURNS": "1000",
        "TURNS_PER_MINUTE": "1000000",
    }


def _door(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def _compare_first_words(upstream_url: str, door_url: str, samples: int) -> bool:
    """Prints when the first words come on both ways; returns whether the door is quick enough."""
    straight, door = Program(upstream_url, _KEY), Program(door_url, _TOKENS[0])
    print(f"first words, median of {samples}", flush=True)
    is_met = _report(f"turn 2 of {samples} chats", compare_second_turns(straight, door, samples))
    title = f"a chat of {HISTORY} to {HISTORY + 2 * samples} messages"
    return _report(title, compare_long_chat(straight, door, samples, history=HISTORY)) and is_met


def _report(title: str, pair: Pair) -> bool:
    told = f"straight {pair.straight:6.1f} ms   door {pair.door:6.1f} ms   more by {pair.more:5.1f} ms"
    print(f"  {title:30} {told} (bound {MOST_MORE:.0f} ms)", flush=True)
    return pair.more <= MOST_MORE


def _compare_pages(
    browser: Browser, wire: Wire, crowd: Crowd, may_end: threading.Event, streams: int, looks: int
) -> bool:
    """Prints what a user sees with and without the streams; returns whether the page stays usable and all end."""
    pace = f"each with a word every {endpoint.SLOW_SECONDS:g} s"
    print(f"\nthe page beside {streams} open streams, {pace}, median of {looks}", flush=True)
    look(browser, wire, "first", 1)
    alone = look(browser, wire, "alone", looks)
    began = time.perf_counter()
    with crowd.opened(streams):
        print(f"  all have their first words after {time.perf_counter() - began:.1f} s", flush=True)
        beside = look(browser, wire, "beside", looks)
        may_end.set()
        began = time.perf_counter()
        whole = crowd.whole_count()
    print(
        f"  {whole} of {streams} had their whole answer {time.perf_counter() - began:.1f} s after its end", flush=True
    )
    is_met = whole == streams
    for name, without, with_streams in zip(alone._fields, alone, beside, strict=True):
        more = with_streams - without
        is_met &= more <= MOST_MORE_BESIDE
        told = f"alone {without:6.0f} ms   beside {with_streams:6.0f} ms   more by {more:6.0f} ms"
        print(f"  {name:8} {told} (bound {MOST_MORE_BESIDE:.0f} ms)", flush=True)
    return is_met


if __name__ == "__main__":
    sys.exit(main())
