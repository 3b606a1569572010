"""`make bench-page`: times the page beside a bare Streamlit chat over the same endpoint; checks the design's bounds.

python -m bench.page [--samples 7] [--turns 1000]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

from playwright.sync_api import Browser

from bench import endpoint
from bench.browser import ENDING, WINDOW, Chat, Sample, Wire, opened_browser
from bench.report import Requirement, verdict
from bench.server import PRODUCT, model_settings, started
from graph.server.settings import Settings
from graph.service import open_service

MAX_RATIO = 1.3
MAX_BYTES_RATIO = 3.0
SHOWN_TURNS = 30
BARE = Path(__file__).parent / "bare.py"
LONG = "long-session"


class Case(NamedTuple):
    """What is compared.

    Attributes:
        bare: The bare chat that it is compared with.
        last_turn: How many turns the chat has before.
        beside: Which tab stands beside it: one on the same chat ("tab"), one that streams ("stream") or none.
        is_first: Whether each message begins a chat.
    """

    title: str
    bare: Wire
    last_turn: int = 0
    beside: str = ""
    is_first: bool = False


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.page")
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--turns", type=int, default=1_000)
    options = parser.parse_args()
    with ExitStack() as stack:
        return verdict(_measure(stack, options.samples, options.turns))


def _measure(stack: ExitStack, samples: int, turns: int) -> Iterator[Requirement]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    settings = model_settings(stack.enter_context(endpoint.serving()).url)
    _fill(folder / "ours", settings, turns)

    def wired(name: str, script: Path = BARE, past: int = 0) -> Wire:
        more = {"PAST_TURNS": str(past), "PAST_TEXT": endpoint.ANSWER} if script == BARE else {}
        wire = Wire(stack.enter_context(started(folder / name, {**settings, **more}, script=script)).port)
        stack.callback(wire.close)
        return wire

    ours, bare, long_bare = wired("ours", PRODUCT), wired("bare"), wired("long", past=SHOWN_TURNS)
    browser = stack.enter_context(opened_browser())
    for case in (
        Case("the first message", bare, is_first=True),
        Case("a short chat", bare),
        Case(f"{turns} turns, {SHOWN_TURNS} shown", long_bare, last_turn=turns),
        Case("two tabs", bare, beside="tab"),
        Case("another session streams", bare, beside="stream"),
    ):
        yield from _figures(case, *_compare(browser, case, ours, samples))


def _fill(folder: Path, settings: dict[str, str], turns: int) -> None:
    """Writes the long session, by the product's own means."""
    values = {name.lower(): value for name, value in settings.items()} | {"turnfold_data_dir": str(folder / "data")}
    with open_service(Settings.model_validate(values)) as service:
        for turn in range(1, turns + 1):
            service.turns.send(LONG, f"now-past 다음 단계와 남은 예산을 정리해 주세요. ({turn})", wait_seconds=30)
            for _ in service.turns.follow(LONG):
                pass


def _compare(browser: Browser, case: Case, our_wire: Wire, samples: int) -> tuple[list[Sample], list[Sample]]:
    """Asks both chats by turns; the first answer of each warms up and doesn't count."""
    contexts = [browser.new_context(**WINDOW) for _ in range(2)]
    bare = Chat(contexts[0], case.bare)
    ours = Chat(contexts[1], our_wire, f"/?session={LONG}" if case.last_turn else "", ending=ENDING)
    taken: tuple[list[Sample], list[Sample]] = ([], [])
    for number in range(samples + 1):
        turn = case.last_turn + 1 + (0 if case.is_first else number)
        for chat, samples_of in zip((bare, ours), taken, strict=True):
            if case.is_first:
                chat.open()
            other = _open_beside(chat, case.beside, number) if case.beside else None
            sample = chat.ask(f"ask-{case.beside or 'q'}{number} 지금까지의 일을 알려 주세요.", turn)
            if other:
                other.leave()
            if number:
                samples_of.append(sample)
    for context in contexts:
        context.close()
    return taken


def _open_beside(chat: Chat, beside: str, number: int) -> Chat:
    """Opens the tab that stands beside the measured one: on the same session, or on one that streams."""
    other = chat.beside(is_same=beside == "tab")
    if beside == "stream":
        other.send(f"endless-{number}")
    # The measured tab has drawn by then that the other one's chat is there: that isn't the answer's.
    other.page.wait_for_timeout(4_000)
    chat.page.bring_to_front()
    return other


def _figures(case: Case, bare: list[Sample], ours: list[Sample]) -> Iterator[Requirement]:
    """Yields the medians and whether their ratios are within bounds.

    The first message of a chat has its page drawn with its answer: no more may be sent for both than to the bare page.
    """
    for name in ("bubble", "words", "settled"):
        mine, other = (median(getattr(sample, name) for sample in side) for side in (ours, bare))
        words = f"{name:8} ours {mine:6.0f} ms   bare {other:6.0f} ms   ratio {mine / other:.2f} (at most {MAX_RATIO})"
        yield mine / other <= MAX_RATIO, f"{case.title:25} {words}"
    mine, other = (median(sample.bytes_share for sample in side) for side in (ours, bare))
    bound = other if case.is_first else MAX_BYTES_RATIO
    words = f"bytes    ours {mine:.1f} x the answer   bare {other:.1f} x (at most {bound:.1f})"
    yield mine <= bound, f"{case.title:25} {words}"


if __name__ == "__main__":
    sys.exit(main())
