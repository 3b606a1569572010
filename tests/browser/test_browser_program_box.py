from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.axe import violations
from tests.browser.conftest import scripted_settings, started, visiting
from tests.browser.stage import LOOKS, words_in
from tests.browser.visitor import Visitor
from tests.fake.openai_server import FakeOpenAI

NAME = "편집기"
# Behind a white label; axe doesn't look at this button.
READABLE = "rgb(13, 110, 102)"


@pytest.fixture(scope="module")
def own_address(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without any token in its settings."""
    with started(tmp_path_factory.mktemp("programs"), scripted_settings(endpoint)) as address:
        yield address


def status(address: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    # The first request to a new server reads the modules of its client, for longer than five seconds beside other work.
    url = f"{address.rstrip('/')}/v1/models"
    return httpx2.get(url, headers=headers, trust_env=False, timeout=60).status_code


def open_box(visitor: Visitor) -> Locator:
    visitor.open()
    if (expand := visitor.page.get_by_test_id("stExpandSidebarButton")).is_visible():
        expand.click()
    visitor.open_settings()
    visitor.find("programs").locator("button").click()
    box = visitor.page.get_by_role("dialog")
    expect(visitor.find("make_token")).to_be_visible()
    return box


def make(visitor: Visitor, name: str) -> str:
    """Makes a token and returns it, as the page's button copies it."""
    visitor.find("program_name").get_by_role("textbox").fill(name)
    visitor.find("program_name").get_by_role("textbox").press("Enter")
    visitor.page.evaluate("() => navigator.clipboard.writeText('')")
    visitor.find("made_token").locator("button.copy").click()
    return str(visitor.page.wait_for_function("() => navigator.clipboard.readText()").json_value())


@pytest.mark.parametrize("look", LOOKS)
def test_a_token_that_is_made_and_copied_lets_its_program_in_until_it_is_withdrawn(
    chromium: Browser, own_address: str, look: str
) -> None:
    words = words_in(look)
    assert status(own_address, "tf-guessed-0123456789-abcdef") == 404
    with visiting(chromium, own_address, **LOOKS[look]) as visitor:
        box = open_box(visitor)
        expect(visitor.find("make_token").locator("button")).to_have_css("background-color", READABLE)
        token = make(visitor, NAME)
        expect(box).to_contain_text(token)
        assert violations(visitor.page) == []
        assert status(own_address, token) == 200
        visitor.page.keyboard.press("Escape")
        expect(box).to_have_count(0)
        visitor.find("programs").locator("button").click()
        row = visitor.page.locator('[class*="st-key-token_"]')
        expect(row).to_contain_text(words.programs.used.rpartition("{made}")[2].split("{")[0].strip())
        expect(box).not_to_contain_text(token)
        row.get_by_role("button", name=words.programs.withdraw).click()
        expect(visitor.find("dialog_confirm")).to_be_visible()
        assert violations(visitor.page) == []
        assert status(own_address, token) == 200
        visitor.find("dialog_confirm").locator("button").click()
        expect(row).to_have_count(0)
        assert status(own_address, token) == 404


def test_a_name_that_is_taken_is_refused_and_stays_in_its_field(chromium: Browser, own_address: str) -> None:
    with visiting(chromium, own_address) as visitor:
        box = open_box(visitor)
        make(visitor, NAME)
        field = visitor.find("program_name").get_by_role("textbox")
        field.fill(NAME)
        field.press("Enter")
        expect(box).to_contain_text("같은 이름의 프로그램이 이미 있습니다.")
        expect(field).to_have_value(NAME)
        expect(visitor.find("made_token")).to_have_count(0)
