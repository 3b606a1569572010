"""A thinking model on the page: one line that opens, while it thinks and after; nothing of it is in the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from playwright.sync_api import Browser, Locator, expect

from component.words.wording import words_of
from tests.browser.conftest import visiting
from tests.browser.stage import LOOKS, QUICK_LOOKS
from tests.browser.visitor import Visitor
from tests.fake.openai_reply import Reply, thinking
from tests.fake.openai_server import FakeOpenAI

THOUGHT: Final = "The decoy port is 7777.\n\nSo I say **9090**."
ANSWER: Final = "The port is 9090."
COUNTED: Final = """element => {
    const style = getComputedStyle(element, "::after");
    return [style.content, style.getPropertyValue("--seconds")];
}"""


def line(visitor: Visitor, number: int) -> Locator:
    return visitor.turn(number).locator("[data-testid='stExpander']").first


@pytest.mark.parametrize("look", QUICK_LOOKS)
def test_the_line_of_the_thoughts_counts_opens_and_stays(
    chromium: Browser, address: str, fake_openai: FakeOpenAI, look: str
) -> None:
    whole = thinking("reasoning_content", THOUGHT, ANSWER)
    asked = f"Which port does it use ({look})?"
    started = Reply(events=whole.events[:3], ending="hang")
    fake_openai.script(started, to=asked)
    with visiting(chromium, address, **LOOKS[look]) as visitor:
        words = words_of("en" if "English" in look else "ko")
        visitor.open().write(asked)
        thoughts = line(visitor, 1)
        expect(thoughts.locator("summary")).to_contain_text(words.thinking)
        thoughts.locator("summary").click()
        expect(thoughts).to_contain_text("The decoy")
        visitor.page.wait_for_timeout(1_200)  # the line isn't drawn anew each second, or it would close
        expect(thoughts).to_contain_text("The decoy")
        content, seconds = thoughts.locator("summary p").evaluate(COUNTED)
        assert words.thinking_unit in content
        assert 1 <= int(seconds) < 30
        visitor.find("stop").locator("button").click()
        visitor.wait_for_end(1)
        expect(line(visitor, 1).locator("summary")).to_contain_text(words.thought.split("{seconds}")[1])
        expect(visitor.turn(1)).not_to_contain_text("decoy")
        fake_openai.script(replace(whole, pause_seconds=0.1), to=asked)
        visitor.find("retry").locator("button").click()
        expect(visitor.turn(1)).to_contain_text(ANSWER)
        visitor.wait_for_end(1)
        after_line = line(visitor, 1)
        expect(after_line.locator("summary")).to_contain_text(words.thought.split("{seconds}")[1])
        expect(visitor.turn(1)).not_to_contain_text("decoy")
        after_line.locator("summary").click()
        expect(after_line).to_contain_text("The decoy port is 7777.")


@pytest.mark.slow
def test_text_that_turns_out_to_be_thoughts_is_taken_back(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "Does only the end come?"
    whole = thinking("end_tag", THOUGHT, ANSWER, most=12)
    fake_openai.script(replace(whole, pause_seconds=0.5), to=asked)
    visitor.open().write(asked)
    expect(visitor.find("streaming")).to_contain_text("decoy")
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text(ANSWER)
    expect(visitor.turn(1)).not_to_contain_text("decoy")
    line(visitor, 1).locator("summary").click()
    expect(line(visitor, 1)).to_contain_text("So I say 9090.")
