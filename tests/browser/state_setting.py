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
    stage.visitor.open_settings(stage.words.tab_summaries)
    expect(stage.visitor.find_choice("strategy")).to_be_visible()


def sections_shown(stage: Stage) -> None:
    """Each section is drawn where it is chosen; no part of it scrolls in itself."""
    for section, part in (
        (stage.words.model, "settings_model"),
        (stage.words.programs.title, "make_token"),
        (stage.words.sessions.open_file, ""),
    ):
        stage.visitor.open_settings(section)
        shown = stage.dialog.locator("button.open-file")
        if part:
            shown = stage.dialog.locator(f'[class*="st-key-{part}"]').first
        expect(shown).to_be_visible()


def draft_kept(stage: Stage) -> None:
    """What is typed stays while the dialog is closed, and is stored by Save alone."""
    own, words = stage.service.instructions, stage.words
    for text in ("초안입니다.", "저장할 글입니다."):
        stage.visitor.open_settings(words.instructions)
        field = stage.visitor.find("instructions_all").get_by_role("textbox")
        field.fill(text)
        expect(stage.visitor.find("counted_instructions_all").locator("[data-count]")).to_have_text(str(len(text)))
        field.press("Escape")
        expect(stage.dialog).to_have_count(0)
        stage.visitor.page.wait_for_timeout(300)  # no hand is faster
        stage.visitor.open_settings(words.instructions)
        expect(field).to_have_value(text)
        expect(stage.dialog).to_contain_text(words.instructions_unsaved)
        assert own.for_all() == ""
    stage.button("save_instructions_all").click()
    expect(stage.dialog).to_contain_text(words.instructions_saved)
    assert own.for_all() == "저장할 글입니다."


def preset_used(stage: Stage) -> None:
    """A text is kept by a name, and put into the field of the chat to come."""
    field = stage.visitor.find("instructions_new").get_by_role("textbox")
    field.fill("한 문장으로 답하세요.")
    stage.visitor.find("preset_name").get_by_role("textbox").fill("짧은 답")
    stage.button("keep_preset").click()
    expect(stage.visitor.find("preset").get_by_role("combobox")).to_have_value("짧은 답")
    field.fill("")
    stage.button("use_preset").click()
    expect(field).to_have_value("한 문장으로 답하세요.")
    stage.button("icon_forget_preset").click()
    expect(stage.button("use_preset")).to_have_count(0)
    assert stage.service.instructions.presets() == {}
    stage.service.instructions.keep_for_all("")


def shortcuts_open(stage: Stage) -> None:
    stage.close_dialog()
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
    stage.visitor.open_settings(stage.words.tab_summaries)
    stage.visitor.find_choice("strategy").get_by_role("combobox").click()
    expect(stage.visitor.page.get_by_role("option").first).to_be_visible()


def without_summaries(stage: Stage) -> None:
    stage.visitor.page.get_by_role("option", name=stage.words.strategies["window"]).click()
    expect(stage.dialog).to_contain_text(stage.words.rate_unused)
    stage.close_dialog()
    expect(stage.visitor.find("settings").locator("p.rate")).to_contain_text(stage.words.rate_unused)
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
