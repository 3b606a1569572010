"""`make bench-page`: times the page beside a bare Streamlit chat over the same endpoint; checks the design's bounds.

python -m bench.page [--samples 7] [--turns 1000]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser

from bench.page import endpoint
from bench.page.app import PRODUCT, opened_browser, started_app
from bench.page.measure import Chat, Sample
from bench.page.wire import Wire
from graph.server.settings import Settings
from graph.service import open_service

MAX_RATIO: Final = 1.3
MAX_BYTES_RATIO: Final = 3.0
SHOWN_TURNS: Final = 30
_BARE: Final = Path(__file__).parent / "bare.py"
_KEY: Final = "sk-bench"
_LONG: Final = "long-session"
_SETTLE_MILLISECONDS: Final = 4_000
_PAST: Final = f"{endpoint.AT_ONCE} 다음 단계와 남은 예산을 정리해 주세요."


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
    """Runs all comparisons and prints them; returns 0 if each is within its bound."""
    parser = argparse.ArgumentParser(prog="python -m bench.page")
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--turns", type=int, default=1_000)
    options = parser.parse_args()
    is_met = True
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(endpoint.serving()).url
        settings = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": _KEY, "CHAT_MODEL": "bench-model"}
        settings |= {"MODEL_WINDOW_TOKENS": "100000", "TURNFOLD_DATA_DIR": str(folder / "data")}
        _fill(settings, options.turns)
        past = {"PAST_TURNS": "0", "PAST_TEXT": endpoint.ANSWER}
        ours = _wired(stack, folder, PRODUCT, settings)
        bare = _wired(stack, folder, _BARE, {**settings, **past})
        long_past = {**past, "PAST_TURNS": str(SHOWN_TURNS)}
        long_bare = _wired(stack, folder, _BARE, {**settings, **long_past})
        browser = stack.enter_context(opened_browser())
        for case in (
            Case("the first message", bare, is_first=True),
            Case("a short chat", bare),
            Case(f"{options.turns} turns, {SHOWN_TURNS} shown", long_bare, last_turn=options.turns),
            Case("two tabs", bare, beside="tab"),
            Case("another session streams", bare, beside="stream"),
        ):
            print(f"\n{case.title}", flush=True)
            is_met &= _report(*_compare(browser, case, ours, options.samples), is_first=case.is_first)
    print("\nverdict:", "all within bounds" if is_met else "NOT within bounds")
    return 0 if is_met else 1


def _fill(settings: dict[str, str], turns: int) -> None:
    """Writes the long session, by the product's own means."""
    values = {name.lower(): value for name, value in settings.items()} | {"turns_per_minute": "1000000"}
    with open_service(Settings.model_validate(values)) as service:
        for turn in range(1, turns + 1):
            service.turns.send(_LONG, f"{_PAST} ({turn})", wait_seconds=30)
            for _ in service.turns.follow(_LONG):
                pass


def _wired(stack: ExitStack, folder: Path, script: Path, settings: dict[str, str]) -> Wire:
    """Runs an app until the stack ends; returns the relay in front of it."""
    wire = Wire(stack.enter_context(started_app(folder, script, settings)).port)
    stack.callback(wire.close)
    return wire


def _compare(browser: Browser, case: Case, our_wire: Wire, samples: int) -> tuple[list[Sample], list[Sample]]:
    """Asks both chats in turn; the first answer of each warms up and doesn't count."""
    contexts = [browser.new_context(viewport={"width": 1280, "height": 800}, locale="ko-KR") for _ in range(2)]
    path = f"/?session={_LONG}" if case.last_turn else ""
    bare = Chat(contexts[0], case.bare)
    ours = Chat(contexts[1], our_wire, path, ending=".st-key-last_actions_{turn}")
    taken: tuple[list[Sample], list[Sample]] = ([], [])
    name = case.beside or "q"
    for number in range(samples + 1):
        turn = case.last_turn + 1 + (0 if case.is_first else number)
        for chat, list_of in zip((bare, ours), taken, strict=True):
            if case.is_first:
                chat.open()
            others = _others(chat, case.beside, number)
            sample = chat.ask(f"{endpoint.TIMED}{name}{number} 지금까지의 일을 알려 주세요.", turn)
            for other in others:
                other.leave()
            if number:
                list_of.append(sample)
    for context in contexts:
        context.close()
    return taken


def _others(chat: Chat, beside: str, number: int) -> list[Chat]:
    """Opens the tab that stands beside the measured one: on the same session, or on one that streams."""
    if not beside:
        return []
    other = chat.beside(is_same=beside == "tab")
    if beside == "stream":
        other.send(f"{endpoint.ENDLESS} {number}")
    # The measured tab has drawn by then that the other one's chat is there: that isn't the answer's.
    other.page.wait_for_timeout(_SETTLE_MILLISECONDS)
    chat.page.bring_to_front()
    return [other]


def _report(bare: list[Sample], ours: list[Sample], *, is_first: bool) -> bool:
    """Prints the medians and their ratios; returns whether all are within bounds.

    The first message of a chat has its page drawn with its answer: no more may be sent for both than to the bare page.
    """
    is_met = True
    for name in ("bubble", "words", "settled"):
        mine, other = (statistics.median(getattr(sample, name) for sample in side) for side in (ours, bare))
        ratio = mine / other
        is_met &= ratio <= MAX_RATIO
        told = f"  {name:8} ours {mine:6.0f} ms   bare {other:6.0f} ms   ratio {ratio:.2f} (bound {MAX_RATIO})"
        print(told, flush=True)
    shares = [
        statistics.median(sample.received_bytes / sample.answer_bytes for sample in side) for side in (ours, bare)
    ]
    bound = shares[1] if is_first else MAX_BYTES_RATIO
    is_met &= shares[0] <= bound
    print(f"  bytes    ours {shares[0]:.1f} x the answer   bare {shares[1]:.1f} x   (bound {bound:.1f})")
    return is_met


if __name__ == "__main__":
    sys.exit(main())
