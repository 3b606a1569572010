from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from graph.service import ChatService
from tests.browser.conftest import preparing, visiting
from tests.browser.site import Site, opened_site, sign_in, sign_out
from tests.browser.stage import Stage, words_in
from tests.browser.state_project import inside
from tests.fake.identity_provider import IdentityProvider
from tests.fake.openai_server import FakeOpenAI

LOOK = "light, Korean, 1280"


class Shared(NamedTuple):
    """A site whose users all may choose one project; `service` is another server's."""

    site: Site
    root: Path
    service: ChatService


@pytest.fixture
def shared(tmp_path: Path, endpoint: FakeOpenAI) -> Iterator[Shared]:
    root = tmp_path / "가게"
    root.mkdir()
    roots = {"PROJECT_ROOTS": str(root)}
    with (
        IdentityProvider() as provider,
        opened_site(tmp_path, endpoint, provider, roots) as site,
        preparing(tmp_path, endpoint, **roots, **provider.settings(site.address)) as service,
    ):
        yield Shared(site, root, service)


def choose_project(stage: Stage, root: Path) -> None:
    stage.visitor.open()
    stage.visitor.open_settings()
    stage.visitor.find("project_listed").get_by_role("combobox").click()
    stage.visitor.page.get_by_role("option", name=root.name).first.click()
    expect(stage.visitor.find("project_below")).to_be_visible()
    stage.visitor.open_settings()
    stage.panel.get_by_role("tab", name=stage.words.project.tab).click()
    expect(inside(stage, "decisions")).to_be_visible()


def decide(stage: Stage, text: str) -> None:
    inside(stage, "icon_new_decisions").locator("button").click()
    stage.panel.get_by_role("textbox").first.fill(text)
    inside(stage, "save").locator("button").click()
    expect(inside(stage, "save")).to_have_count(0)  # the text that is typed counts as the page's, too
    expect(inside(stage, "decisions")).to_contain_text(text)


def test_the_tab_of_a_project_shows_what_was_noted_by_whoever_is_signed_in(
    chromium: Browser, shared: Shared, fake_openai: FakeOpenAI
) -> None:
    site, root, service = shared
    with visiting(chromium, site.address) as visitor:
        stage = Stage(visitor, words_in(LOOK), is_narrow=False, endpoint=fake_openai, service=service)
        sign_in(visitor, "minsu")
        choose_project(stage, root)
        decide(stage, "포트는 8501")
        sign_out(visitor)
        sign_in(visitor, "yeonghui")
        choose_project(stage, root)
        expect(inside(stage, "decisions")).to_contain_text(stage.words.project.no_decisions)
        decide(stage, "포트는 9090")
        expect(visitor.page.get_by_text("8501")).to_have_count(0)
        for subject, decision in (("minsu", "포트는 8501"), ("yeonghui", "포트는 9090")):
            projects = service.for_owner(site.owner(subject)).projects
            assert [each.text for each in projects.get(str(root)).decisions] == [decision]
        sign_out(visitor)
        sign_in(visitor, "minsu")
        choose_project(stage, root)
        expect(inside(stage, "decisions")).to_contain_text("포트는 8501")
        expect(visitor.page.get_by_text("9090")).to_have_count(0)
