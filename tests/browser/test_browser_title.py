from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import scripted_settings, started, visiting
from tests.browser.stage import LOOKS
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_server import FakeOpenAI

WORDS = {
    "light, Korean, 1280": ("서버를 새 곳으로 옮기려고 합니다.", "언제가 좋을까요?", "서버 이전 계획"),
    "dark, English, 390": (
        "We want to move a server to a new place.",
        "When should we do it?",
        "Plan for moving a server",
    ),
}
DRAFT = "아직 쓰고 있는 말"


@pytest.fixture(scope="module")
def titling_address(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(tmp_path_factory.mktemp("titling"), {**scripted_settings(endpoint), "AUTO_TITLES": "true"}) as url:
        yield url


@pytest.mark.parametrize("look", LOOKS)
def test_a_title_comes_into_the_list_by_itself(
    chromium: Browser, titling_address: str, fake_openai: FakeOpenAI, look: str
) -> None:
    first, second, title = WORDS[look]
    may_answer = threading.Event()

    def answer(_: Body) -> Reply:
        assert may_answer.wait(60)
        return text(f'"{title}."')

    fake_openai.script(answer, kind="title", to=first)
    with visiting(chromium, titling_address, **LOOKS[look]) as visitor:
        visitor.open()
        visitor.ask(first, second)
        if "viewport" in LOOKS[look]:
            visitor.page.get_by_test_id("stExpandSidebarButton").click()
        listed = visitor.find(f"session_{visitor.session_id}").locator("button")
        expect(listed).to_have_text(first)
        visitor.page.evaluate("() => { window.isSamePage = true; }")
        visitor.field.fill(DRAFT)
        may_answer.set()
        expect(listed).to_have_text(title)
        expect(visitor.field).to_have_value(DRAFT)
        assert visitor.page.evaluate("() => window.isSamePage")
