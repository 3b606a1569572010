from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from graph.project_view import ProjectView
from graph.service import ChatService
from tests.browser.conftest import preparing, scripted_settings, started, visiting
from tests.browser.sight import MESSAGE, press_enter, sights
from tests.browser.stage import LOOKS, Stage, words_in
from tests.browser.state_project import inside, pick
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_server import FakeOpenAI


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="module")
def server(place: Path, endpoint: FakeOpenAI) -> Iterator[str]:
    with started(place, {**scripted_settings(endpoint), "PROJECT_ROOTS": str(place)}) as url:
        yield url


@pytest.fixture(scope="module")
def other(place: Path, endpoint: FakeOpenAI, server: str) -> Iterator[ChatService]:
    assert server
    with preparing(place, endpoint, PROJECT_ROOTS=str(place)) as service:
        yield service


class Shop:
    """A project on a page in one look; `view` is what the service has of it."""

    def __init__(self, stage: Stage, root: Path) -> None:
        self.stage = stage
        self.root = root
        self.said = stage.words.project

    @property
    def view(self) -> ProjectView:
        return self.stage.service.projects.get(str(self.root))

    def choose(self) -> None:
        """Chooses the project in the settings, by the folder's name."""
        stage = self.stage
        stage.visitor.open()
        stage.open_sidebar()
        stage.visitor.open_settings()
        stage.visitor.find("project_listed").get_by_role("combobox").click()
        stage.visitor.page.get_by_role("option").nth(1).click()
        self.type_folder(self.root.name)
        expect(stage.visitor.find("known")).to_be_visible()
        stage.visitor.open_settings()
        stage.close_sidebar()

    def type_folder(self, name: str) -> None:
        field = self.stage.visitor.find("project_below").get_by_role("textbox")
        field.fill(name)
        field.press("Enter")

    def open_tab(self) -> None:
        if self.stage.is_narrow:
            self.stage.button("open_panel").click()
        self.stage.panel.get_by_role("tab", name=self.said.tab).click()
        expect(inside(self.stage, "plan")).to_be_visible()

    def press(self, name: str) -> None:
        inside(self.stage, name).locator("button").click()

    def menu(self, name: str) -> Locator:
        place = "drawer" if self.stage.is_narrow else "rail"
        return self.stage.panel.locator(f".st-key-menu_project_{name}_{place}").first

    def fill(self, *texts: str) -> None:
        """Fills the open form and saves it."""
        for number, typed in enumerate(texts):
            self.stage.panel.get_by_role("textbox").nth(number).fill(typed)
        self.press("save")
        expect(inside(self.stage, "save")).to_have_count(0)


@contextmanager
def shown(
    chromium: Browser, server: str, place: Path, look: str, fake: FakeOpenAI, other: ChatService, name: str
) -> Iterator[Shop]:
    options, root = LOOKS[look], place / f"{name} {len(list(place.iterdir()))}"
    root.mkdir()
    with visiting(chromium, server, **options) as visitor:
        yield Shop(Stage(visitor, words_in(look), "viewport" in options, fake, other), root)


@pytest.mark.parametrize("look", LOOKS)
def test_everything_in_a_project_is_changed_by_hand(
    look: str, chromium: Browser, server: str, place: Path, fake_openai: FakeOpenAI, other: ChatService
) -> None:
    with shown(chromium, server, place, look, fake_openai, other, "shop") as shop:
        stage, said = shop.stage, shop.said
        (shop.root / "app.py").write_text("x", encoding="utf-8")
        shop.choose()
        shop.open_tab()
        pick(stage, shop.menu("name"), said.edit)
        shop.fill("가게")
        shop.press("icon_new_plan")
        shop.fill("정리", "예전 것을 지운다")
        shop.press("icon_new_plan")
        shop.fill("배포", "이번 주")
        inside(stage, "other_plans").locator("summary").click()
        pick(stage, shop.menu("other_plan_0"), said.switch)
        expect(inside(stage, "plan")).to_contain_text("예전 것을 지운다")
        for title in ("첫째 일", "둘째 일"):
            shop.press("icon_new_tasks")
            shop.fill(title)
            expect(inside(stage, "tasks")).to_contain_text(title)
        pick(stage, shop.menu("task_0"), said.start_task)
        expect(inside(stage, "row_of_task_0")).to_contain_text(said.is_active)
        shop.press("icon_complete_0")
        expect(inside(stage, "tasks").get_by_text(said.done_tasks.format(count=1))).to_be_visible()
        shop.press("icon_new_decisions")
        shop.fill("포트는 8501")
        pick(stage, shop.menu("decision_0"), said.edit)
        shop.fill("포트는 8502")
        expect(inside(stage, "row_of_decision_0")).to_contain_text("포트는 8502")
        shop.press("icon_new_files")
        shop.fill("app.py")
        pick(stage, shop.menu("summary"), said.edit)
        shop.fill("배포를 준비한다.")
        expect(inside(stage, "summary")).to_contain_text("배포를 준비한다.")
        view = shop.view
        assert (view.name, view.summary, [file.path for file in view.open_files]) == (
            "가게",
            "배포를 준비한다.",
            ["app.py"],
        )
        assert [(plan.title, plan.is_active) for plan in view.plans] == [("정리", True), ("배포", False)]
        tasks = [(task.title, task.is_active, task.is_done) for task in view.plans[0].tasks]
        assert tasks == [("첫째 일", False, True), ("둘째 일", True, False)]
        decisions = [(decision.text, decision.is_in_force) for decision in view.decisions]
        assert decisions == [("포트는 8501", False), ("포트는 8502", True)]
        pick(stage, shop.menu("decision_0"), said.forget)
        shop.press("icon_close_0")
        pick(stage, shop.menu("summary"), said.forget)
        pick(stage, shop.menu("active_plan"), said.plan_done)
        expect(inside(stage, "plan")).to_contain_text(said.no_plan)
        view = shop.view
        assert (view.open_files, view.summary, view.active_plan) == ((), "", None)
        assert [decision.text for decision in view.decisions] == ["포트는 8501"]


@pytest.mark.parametrize("look", LOOKS)
def test_a_folder_that_is_not_there_is_told_and_the_chat_goes_on(
    look: str, chromium: Browser, server: str, place: Path, fake_openai: FakeOpenAI, other: ChatService
) -> None:
    with shown(chromium, server, place, look, fake_openai, other, "gone") as shop:
        stage = shop.stage
        shop.choose()
        stage.open_sidebar()
        stage.visitor.open_settings()
        for typed, reason in (("없는 폴더", "vanished"), ("../..", "not_allowed")):
            shop.type_folder(typed)
            expect(stage.visitor.find("told")).to_contain_text(stage.words.path_reasons[reason])
            expect(stage.visitor.find("project_below").get_by_role("textbox")).to_have_value(shop.root.name)
        stage.visitor.open_settings()
        stage.close_sidebar()
        stage.visitor.ask("그래도 이어서 말합니다.")
        assert other.sessions.get(stage.visitor.session_id).project_root == str(shop.root)


def test_a_press_and_a_text_in_the_tab_count_while_an_answer_is_written(
    chromium: Browser, server: str, place: Path, fake_openai: FakeOpenAI, other: ChatService
) -> None:
    gate, asked = threading.Event(), "프로젝트 탭을 만지는 동안 답해 주세요."

    def answer(_: Body) -> Reply:
        gate.wait(60)
        return text("이제 끝났습니다.")

    fake_openai.script(answer, to=asked)
    look = next(iter(LOOKS))
    with shown(chromium, server, place, look, fake_openai, other, "busy") as shop:
        other.projects.open_plan(str(shop.root), "배포")
        other.projects.open_task(str(shop.root), "첫째 일")
        other.projects.open_task(str(shop.root), "둘째 일")
        shop.choose()
        shop.open_tab()
        shop.stage.visitor.write(asked)
        expect(shop.stage.visitor.find("stop")).to_be_visible()
        shop.press("icon_complete_0")
        expect(inside(shop.stage, "tasks")).to_contain_text(shop.said.done_tasks.format(count=1))
        assert [task.is_done for task in shop.view.plans[0].tasks] == [True, False]
        shop.press("icon_new_decisions")
        shop.stage.panel.get_by_role("textbox").fill("답이 끝나도 남을 글")
        gate.set()
        shop.stage.visitor.wait_for_end(1)
        other.projects.edit_summary(str(shop.root), "다른 곳에서 고친 요약")
        shop.stage.visitor.page.wait_for_timeout(4_000)  # longer than the page waits to look for what others did
        expect(shop.stage.panel.get_by_role("textbox")).to_have_value("답이 끝나도 남을 글")
        shop.press("save")
        expect(inside(shop.stage, "summary")).to_contain_text("다른 곳에서 고친 요약")
        assert [decision.text for decision in shop.view.decisions] == ["답이 끝나도 남을 글"]


@pytest.mark.parametrize("look", LOOKS)
def test_the_card_goes_when_the_first_message_is_sent(
    look: str, chromium: Browser, server: str, place: Path, fake_openai: FakeOpenAI, other: ChatService
) -> None:
    with shown(chromium, server, place, look, fake_openai, other, "first") as shop:
        shop.choose()
        visitor = shop.stage.visitor
        visitor.field.fill("프로젝트에서 하는 첫마디")
        assert press_enter(visitor) == "프로젝트에서 하는 첫마디"
        visitor.wait_for_end(1)
        assert sights(visitor) == {MESSAGE}
