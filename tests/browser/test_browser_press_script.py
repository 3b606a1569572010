"""The script of the plain buttons by itself, called as Streamlit calls it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from component import asset_file
from tests.browser.script import page_with


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    with page_with(chromium, address, '<button data-press="pin">one</button>', asset_file.read("press.js")) as page:
        page.evaluate(
            """() => {
                window.hear = (heard) => script({ data: { heard }, setTriggerValue: (_, value) => sent.push(value) });
            }"""
        )
        yield page


def test_a_script_that_is_mounted_twice_tells_of_one_press(page: Page) -> None:
    page.evaluate("() => { hear(0); hear(0); }")
    page.get_by_role("button").click()
    assert page.evaluate("sent.map((presses) => presses.length)") == [1]


def test_what_was_mounted_before_takes_nothing_away_when_it_goes(page: Page) -> None:
    page.evaluate("() => { const leave = hear(0); hear(0); leave(); }")
    page.get_by_role("button").click()
    assert page.evaluate("sent.length") == 1
    assert page.evaluate("document.documentElement.hasAttribute('data-hears')")


def test_a_press_is_told_again_until_it_is_heard(page: Page) -> None:
    page.clock.install()
    page.evaluate("() => { hear(0); }")
    page.get_by_role("button").click()
    page.clock.run_for(3_100)
    assert page.evaluate("sent.length") == 2
    first, second = page.evaluate("sent.map(([press]) => press.at)")
    assert first == second
    page.evaluate("(heard) => { hear(heard); }", first)
    page.clock.run_for(60_000)
    assert page.evaluate("sent.length") == 2


def test_a_press_that_nobody_hears_is_told_for_half_a_minute(page: Page) -> None:
    page.clock.install()
    page.evaluate("() => { hear(0); }")
    page.get_by_role("button").click()
    page.clock.run_for(300_000)
    assert page.evaluate("sent.length") == 10
