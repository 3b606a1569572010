"""Opens the page and has it answer a message, to see what the streams of programs leave of it."""

from __future__ import annotations

import time
from statistics import median
from typing import NamedTuple

from playwright.sync_api import Browser

from bench.page.endpoint import TIMED
from bench.page.measure import Chat
from bench.page.wire import Wire


class Sight(NamedTuple):
    """Milliseconds to what a user sees: the page itself, then what `bench.page.measure.Sample` has of a message."""

    opened: float
    bubble: float
    words: float
    settled: float


def look(browser: Browser, wire: Wire, name: str, samples: int) -> Sight:
    """Opens the page anew for each sample and sends a message; returns the medians."""
    return Sight(
        *(median(seen) for seen in zip(*(_see(browser, wire, f"{name}{n}") for n in range(samples)), strict=True))
    )


def _see(browser: Browser, wire: Wire, name: str) -> Sight:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="ko-KR")
    began = time.perf_counter()
    chat = Chat(context, wire, ending=".st-key-last_actions_{turn}")
    opened = (time.perf_counter() - began) * 1_000
    sample = chat.ask(f"{TIMED}{name} 지금까지의 일을 알려 주세요.", 1)
    context.close()
    return Sight(opened, sample.bubble, sample.words, sample.settled)
