"""The states of the settings: the keys, the language, the theme and the strategy."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect

from component.words.text import LANGUAGE_NAMES, Language
from component.words.wording import words_of
from tests.browser.stage import Stage

BACKGROUNDS: Final = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 23)"}


def settings_open(stage: Stage) -> None:
    stage.visitor.open()
    stage.open_sidebar()
    stage.visitor.open_settings()
    expect(stage.visitor.find_choice("strategy")).to_be_visible()
    expect(stage.visitor.find("search")).to_be_in_viewport()  # and the chats with it


def shortcuts_open(stage: Stage) -> None:
    stage.button("icon_help").click()
    expect(stage.dialog.locator("table")).to_be_visible()


def languages_changed(stage: Stage) -> None:
    stage.close_dialog()
    for language in (other_language(stage), stage.words.language):
        choose_language(stage, language)
        expect(stage.visitor.find("new_chat")).to_contain_text(words_of(language).new_chat)


def themes_changed(stage: Stage) -> None:
    own, other = ("dark", "light") if stage.is_dark else ("light", "dark")
    for theme, shown in ((other, other), (own, own), ("system", own)):
        choose_theme(stage, theme)
        expect_theme(stage, shown)
        stage.visitor.settle()


def choices_hold(stage: Stage) -> None:
    """A reload keeps the language and the theme that were chosen."""
    own, other = ("dark", "light") if stage.is_dark else ("light", "dark")
    choose_theme(stage, other)
    choose_language(stage, other_language(stage))
    stage.visitor.page.reload()
    stage.visitor.settle()
    expect_theme(stage, other)
    stage.open_sidebar()
    themes = words_of(other_language(stage)).themes
    expect(stage.visitor.find("theme").get_by_role("radio", name=themes[other])).to_be_checked()
    stage.visitor.find("theme").get_by_role("radio", name=themes["system"]).click()
    expect_theme(stage, own)
    choose_language(stage, stage.words.language)


def strategies_listed(stage: Stage) -> None:
    stage.visitor.open_settings()
    stage.visitor.find_choice("strategy").get_by_role("combobox").click()
    expect(stage.visitor.page.get_by_role("option").first).to_be_visible()


def without_summaries(stage: Stage) -> None:
    stage.visitor.page.get_by_role("option", name=stage.words.strategies["window"]).click()
    expect(stage.visitor.find("settings").locator("p.rate")).to_have_text(stage.words.rate)
    expect(stage.panel.locator("[type=range]")).to_be_disabled()


def other_language(stage: Stage) -> Language:
    return "ko" if stage.words.language == "en" else "en"


def choose_language(stage: Stage, language: Language) -> None:
    stage.visitor.find("language").get_by_role("radio", name=LANGUAGE_NAMES[language]).click()
    stage.visitor.expect_language(language)


def choose_theme(stage: Stage, theme: str) -> None:
    stage.visitor.find("theme").get_by_role("radio", name=stage.words.themes[theme]).click()


def expect_theme(stage: Stage, theme: str) -> None:
    expect(stage.visitor.page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUNDS[theme])
    expect(stage.visitor.page.get_by_test_id("stMainMenu")).to_be_hidden()
    expect(stage.visitor.page.get_by_test_id("stMainMenuPopover")).to_have_count(0)
