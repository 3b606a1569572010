from __future__ import annotations

from typing import Any, Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from component.wording import words_of
from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.stage import Stage
from tests.browser.state import WALKS
from tests.fake.openai_server import FakeOpenAI

RULES: Final = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}
AXE: Final = Axe()
FADED_IN: Final = """() => document.getAnimations().every(
    (one) => one.playState !== "running" || one.effect.getTiming().iterations === Infinity)"""
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light, Korean, 1280": {"color_scheme": "light", "locale": "ko-KR"},
    "dark, English, 390": {
        "color_scheme": "dark",
        "locale": "en-US",
        "viewport": {"width": 390, "height": 844},
        "has_touch": True,
    },
}


def violations(page: Page) -> list[str]:
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.axe_script)
    found = page.evaluate("async (options) => (await axe.run(options)).violations", RULES)
    nodes = [(rule["id"], node) for rule in found for node in rule["nodes"]]
    return [f"{name}: {node['html'][:300]}\n{node['failureSummary']}" for name, node in nodes]


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("look", LOOKS)
def test_no_state_breaks_a_rule(
    look: str,
    walk: str,
    chromium: Browser,
    address: str,
    fake_openai: FakeOpenAI,
    other_server: ChatService,
) -> None:
    options = LOOKS[look]
    found: list[str] = []
    with visiting(chromium, address, **options) as visitor:
        words = words_of("en" if options["locale"] == "en-US" else "ko")
        stage = Stage(visitor, words, is_narrow="viewport" in options, endpoint=fake_openai, service=other_server)
        for reach in WALKS[walk]:
            reach(stage)
            visitor.page.wait_for_timeout(100)  # what fades in has begun to
            visitor.page.wait_for_function(FADED_IN)
            found += [f"{reach.__name__}: {violation}" for violation in violations(visitor.page)]
    if found:
        pytest.fail("\n".join(found))
