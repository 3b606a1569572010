from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.axe import violations, walk_without_violation
from tests.browser.conftest import preparing, scripted_settings, started, visiting
from tests.browser.site import choose, come, opened_site
from tests.browser.stage import LOOKS, Stage, words_in
from tests.browser.state_project import walk as walk_through_project
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question
from tests.fake.identity_provider import IdentityProvider
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

pytestmark = pytest.mark.timeout(900)  # a walk is one test of up to thirty states

ALWAYS_NEW = """() => setInterval(() => {
    const part = document.querySelector("[class*='st-key-turn_'] [data-testid='stCode'] pre");
    const fresh = part.cloneNode(true);
    fresh.removeAttribute("tabindex");
    part.after(fresh);
}, 10)"""


def test_what_has_just_come_into_the_page_is_judged_as_it_is_drawn(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "긴 줄이 있는 코드를 보여 주세요."
    fake_openai.script(text("```\n" + "word " * 100 + "\n```"), to=asked)
    visitor.open()
    visitor.ask(asked)
    expect(visitor.turn(1).locator("pre")).to_have_attribute("tabindex", "0")
    visitor.page.evaluate(ALWAYS_NEW)
    assert violations(visitor.page) == []


@pytest.mark.parametrize("look", LOOKS)
def test_no_warning_about_the_context_breaks_a_rule(
    look: str, chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI
) -> None:
    words = words_in(look)
    limits = {
        "CONTEXT_STRATEGY": "compaction",
        "ENABLE_AUTO_COMPACTION": "false",
        "MAX_CONTEXT_TOKENS": "2000",
        "ROLLING_SENDS_UNSUMMARISED": "false",
    }
    with (
        started(tmp_path, {**scripted_settings(fake_openai), **limits}) as address,
        preparing(tmp_path, fake_openai, **limits) as service,
        visiting(chromium, address, **LOOKS[look]) as visitor,
    ):
        chat = Chat(service)
        for notice, told in (("nearly_full", words.nearly_full), ("full", words.full)):
            while not service.sessions.list() or chat.view.context_notice != notice:
                chat.say(question(1))
            visitor.open(f"?session={chat.session_id}")
            expect(visitor.find("chat").get_by_test_id("stAlert")).to_contain_text(told.replace("`", ""))
            assert violations(visitor.page) == []
        service.sessions.configure(chat.session_id, strategy="rolling")
        visitor.open(f"?session={chat.session_id}")
        told = words.unsent.format(count=chat.view.unsent_messages)
        expect(visitor.find("chat").get_by_text(told)).to_be_visible()
        assert violations(visitor.page) == []


@pytest.mark.parametrize("look", LOOKS)
def test_no_state_of_a_project_breaks_a_rule(
    look: str, chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI
) -> None:
    options, root = LOOKS[look], tmp_path / "projects" / "shop"
    root.mkdir(parents=True)
    with (
        started(tmp_path, {**scripted_settings(fake_openai), "PROJECT_ROOTS": str(root)}) as address,
        preparing(tmp_path, fake_openai, PROJECT_ROOTS=str(root)) as service,
        visiting(chromium, address, **options) as visitor,
    ):
        stage = Stage(visitor, words_in(look), is_narrow="viewport" in options, endpoint=fake_openai, service=service)
        walk_without_violation(stage, walk_through_project(root))


@pytest.mark.parametrize("look", LOOKS)
def test_no_way_in_breaks_a_rule(look: str, chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI) -> None:
    options = LOOKS[look]
    with (
        IdentityProvider() as provider,
        opened_site(tmp_path, fake_openai, provider) as site,
        visiting(chromium, site.address, **options) as visitor,
    ):
        come(visitor)
        expect(visitor.page.get_by_text(words_in(look).sign_in.needed)).to_be_visible()
        visitor.expect_language(words_in(look).language)
        assert violations(visitor.page) == []
        choose(visitor, "yeonghui")
        visitor.settle()
        if "viewport" in options:
            visitor.page.get_by_test_id("stExpandSidebarButton").click()
        expect(visitor.find("visitor").get_by_role("button")).to_be_in_viewport()
        assert violations(visitor.page) == []
