"""Chooses a project on a page under test, presses what changes it, and reads what was changed."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from component.words.wording import words_of
from tests.fake.scripted_service import ScriptedService
from tests.fake.shown_project import ROOT
from tests.page.reading import setting


def choose_project(page: AppTest) -> AppTest:
    setting(page, "project_listed").set_value(ROOT).run()
    return page


def open_project_tab(page: AppTest) -> AppTest:
    choose_project(page)
    page.session_state["panel_tabs"] = words_of(page.session_state["language"]).project.tab
    return page.run()


def changes(service: ScriptedService) -> list[tuple[object, ...]]:
    return [call for call in service.projects.calls if call[0] != "get"]


def pick(page: AppTest, key: str, choice: str) -> AppTest:
    return page.menu_button(key=f"menu_project_{key}").click(choice).run()


def save(page: AppTest, surface: str = "panel") -> AppTest:
    return page.button(key=f"project_confirm_{surface}").click().run()
