from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from graph.service import ChatService
from tests.browser.conftest import preparing, scripted_settings, started, visiting
from tests.browser.site import choose, come, opened_site
from tests.browser.stage import ALL_LOOKS, Stage, words_in
from tests.browser.state import WALKS
from tests.browser.state_project import walk as walk_through_project
from tests.fake.chat import Chat, question
from tests.fake.identity_provider import IdentityProvider
from tests.fake.openai_server import FakeOpenAI

RULES: Final = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}
AXE: Final = Axe()
FADED_IN: Final = """() => document.getAnimations().every(
    (one) => one.playState !== "running" || one.effect.getTiming().iterations === Infinity)"""


def wait_for_fades(page: Page) -> None:
    page.wait_for_timeout(100)  # what fades in has begun to
    page.wait_for_function(FADED_IN)


def violations(page: Page) -> list[str]:
    wait_for_fades(page)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.axe_script)
    found = page.evaluate("async (options) => (await axe.run(options)).violations", RULES)
    nodes = [(rule["id"], node) for rule in found for node in rule["nodes"]]
    return [f"{name}: {node['html'][:300]}\n{node['failureSummary']}" for name, node in nodes]


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("look", ALL_LOOKS)
def test_no_state_breaks_a_rule(
    look: str,
    walk: str,
    chromium: Browser,
    address: str,
    fake_openai: FakeOpenAI,
    other_server: ChatService,
) -> None:
    options = ALL_LOOKS[look]
    found: list[str] = []
    with visiting(chromium, address, **options) as visitor:
        stage = Stage(
            visitor, words_in(look), is_narrow="viewport" in options, endpoint=fake_openai, service=other_server
        )
        for reach in WALKS[walk]:
            reach(stage)
            found += [f"{reach.__name__}: {violation}" for violation in violations(visitor.page)]
    if found:
        pytest.fail("\n".join(found))


@pytest.mark.parametrize("look", ALL_LOOKS)
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
        visiting(chromium, address, **ALL_LOOKS[look]) as visitor,
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


@pytest.mark.parametrize("look", ALL_LOOKS)
def test_no_state_of_a_project_breaks_a_rule(
    look: str, chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI
) -> None:
    options, root = ALL_LOOKS[look], tmp_path / "projects" / "shop"
    root.mkdir(parents=True)
    found: list[str] = []
    with (
        started(tmp_path, {**scripted_settings(fake_openai), "PROJECT_ROOTS": str(root)}) as address,
        preparing(tmp_path, fake_openai, PROJECT_ROOTS=str(root)) as service,
        visiting(chromium, address, **options) as visitor,
    ):
        stage = Stage(visitor, words_in(look), is_narrow="viewport" in options, endpoint=fake_openai, service=service)
        for name, reach in walk_through_project(root):
            reach(stage)
            found += [f"{name}: {violation}" for violation in violations(visitor.page)]
    if found:
        pytest.fail("\n".join(found))


@pytest.mark.parametrize("look", ALL_LOOKS)
def test_no_way_in_breaks_a_rule(look: str, chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI) -> None:
    options = ALL_LOOKS[look]
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
