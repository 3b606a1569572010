"""How many SQL statements the page costs: a bound for an open chat, a turn, and tabs that nobody touches."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx2
from playwright.sync_api import Browser

from tests.browser.conftest import ROOT, scripted_settings, started, visiting
from tests.fake.chat import question
from tests.fake.openai_server import FakeOpenAI

TABS: Final = 3
IDLE_SECONDS: Final = 4
MOST_OF_OPENING: Final = 35  # with what the watcher reads meanwhile
MOST_OF_A_TURN: Final = 130


def test_each_thing_is_read_once_and_tabs_at_rest_read_nothing(
    chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI
) -> None:
    shutil.copytree(ROOT / ".streamlit", tmp_path / ".streamlit")
    script = ROOT / "tests" / "fake" / "counting_app.py"
    with ExitStack() as stack:
        address = stack.enter_context(started(tmp_path, scripted_settings(fake_openai), script=script))

        def count() -> int:
            return int(httpx2.get(f"{address}/statements").text)

        visitor = stack.enter_context(visiting(chromium, address))
        visitor.open()
        visitor.ask(question(1), question(2))
        at = count()
        visitor.write(question(3))
        visitor.wait_for_end(3)
        visitor.settle()
        assert count() - at <= MOST_OF_A_TURN
        visitor.page.wait_for_timeout(3_000)
        for _ in range(TABS):
            other = stack.enter_context(visiting(chromium, address))
            at = count()
            other.open(f"?session={visitor.session_id}")
            other.wait_for_end(3)
            assert count() - at <= MOST_OF_OPENING
        visitor.page.wait_for_timeout(3_000)
        at = count()
        visitor.page.wait_for_timeout(1_000 * IDLE_SECONDS)
        assert count() - at <= 2 * IDLE_SECONDS + 2  # one a second, on a machine that may be late
