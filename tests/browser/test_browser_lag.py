from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, expect

from tests.browser.conftest import ROOT, scripted_settings, started, visiting
from tests.browser.visitor import Visitor
from tests.fake.chat import question
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI

FAKE: Final = ROOT / "tests" / "fake"
TIMES: Final = 6
THUMB: Final = 'button[data-thumb="up"]'
# Each is looked up when it is pressed: a drawing of its turn in between puts another button in its place.
PRESS_ALL: Final = """(thumb) => [0, 1, 2].forEach((place) => setTimeout(
    () => document.querySelectorAll(thumb)[place].click(), 5 * place,
))"""


@contextmanager
def answering(chromium: Browser, folder: Path, endpoint: FakeOpenAI, script: str, **settings: str) -> Iterator[Visitor]:
    shutil.copytree(ROOT / ".streamlit", folder / ".streamlit")
    asked = "서버가 느릴 때 오래 걸리는 답"
    endpoint.script(hang("여기까지 씁니다. "), to=asked)
    with (
        started(folder, {**scripted_settings(endpoint), **settings}, script=FAKE / script) as address,
        visiting(chromium, address) as visitor,
    ):
        visitor.open()
        visitor.write(asked)
        expect(visitor.turn(1)).to_contain_text("여기까지 씁니다.")
        yield visitor


def stop(visitor: Visitor) -> None:
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(1)


def expect_back(visitor: Visitor, text: str) -> None:
    visitor.write(text)
    expect(visitor.field).to_have_value(text)


def test_nothing_drawn_is_lost_while_the_server_lags(
    chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI
) -> None:
    with answering(chromium, tmp_path, fake_openai, "lagging_app.py") as visitor:
        for number in range(TIMES):
            expect_back(visitor, f"성급한 말 {number}")
        stop(visitor)


def test_nothing_that_is_gone_stays_while_the_server_lags(
    chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI
) -> None:
    with answering(chromium, tmp_path, fake_openai, "lagging_app.py") as visitor:
        stop(visitor)
        for number in range(2, 2 + TIMES):
            visitor.write(question(number))
            expect(visitor.turn(number)).to_be_visible()
            expect(visitor.turn(number - 1).locator("button.copy")).to_be_visible()
            expect(visitor.turn(number - 1).locator(".stButton")).to_have_count(0)
            visitor.wait_for_end(number)
            expect(visitor.find("stop")).to_have_count(0)
            expect(visitor.every("regenerate")).to_have_count(1)
        visitor.write("/reset")
        visitor.find("dialog_confirm").locator("button").click()
        expect(visitor.find("undo_reset")).to_be_visible()
        visitor.ask(question(TIMES + 2), first=TIMES + 2)
        expect(visitor.find("undo_reset")).to_have_count(0)


def test_page_that_is_asked_for_between_two_runs_is_drawn_in_its_place(
    chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI
) -> None:
    between = {"STREAMLIT_RUNNER_POST_SCRIPT_GC": "true"}
    with answering(chromium, tmp_path, fake_openai, "pausing_app.py", **between) as visitor:
        for number in range(TIMES):
            expect_back(visitor, f"성급한 말 {number}")
            expect(visitor.turn(1)).to_be_visible()
            expect(visitor.every("chat")).to_have_count(1)
        stop(visitor)


def test_presses_one_right_after_another_all_count(chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI) -> None:
    with answering(chromium, tmp_path, fake_openai, "lagging_app.py") as visitor:
        stop(visitor)
        visitor.ask(question(2), question(3), first=2)
        expect(visitor.page.locator(THUMB)).to_have_count(3)
        visitor.page.evaluate(PRESS_ALL, THUMB)
        expect(visitor.page.locator(f'{THUMB}[aria-pressed="true"]')).to_have_count(3)
