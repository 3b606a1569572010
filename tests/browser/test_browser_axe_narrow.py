from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from graph.service import ChatService
from tests.browser.axe import walk_without_violation
from tests.browser.conftest import visiting
from tests.browser.stage import LOOKS, Stage, words_in
from tests.browser.state import WALKS
from tests.fake.openai_server import FakeOpenAI

LOOK = "dark, English, 390"
pytestmark = pytest.mark.timeout(900)  # a walk is one test of up to thirty states


@pytest.mark.parametrize("walk", WALKS)
def test_no_state_of_a_narrow_page_breaks_a_rule(
    walk: str, chromium: Browser, address: str, fake_openai: FakeOpenAI, other_server: ChatService
) -> None:
    with visiting(chromium, address, **LOOKS[LOOK]) as visitor:
        stage = Stage(visitor, words_in(LOOK), is_narrow=True, endpoint=fake_openai, service=other_server)
        walk_without_violation(stage, [(state.__name__, state) for state in WALKS[walk]])
