"""The states in which a summary is changed from its card."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.stage import Stage
from tests.fake.chat import Chat, question

EDITED = "예산은 120만 원이 아니라 200만 원으로 고쳤다."


def steer(stage: Stage, choice: str, card: int = 0) -> None:
    """Chooses something in the menu of a card, counted from the newest."""
    panel = open_panel(stage)
    panel.locator('[class*="st-key-menu_card_"] button').nth(card).click()
    stage.visitor.page.get_by_role("menuitem", name=choice, exact=True).click()


def open_panel(stage: Stage) -> Locator:
    """On a narrow page a dialog has taken the drawer's place."""
    if stage.is_narrow and stage.dialog.count() == 0:
        stage.button("open_panel").click()
    expect(stage.panel.locator('[class*="st-key-card_"]').first).to_be_visible()
    return stage.panel


def newest_card(stage: Stage) -> Locator:
    """The drawer that is open has to stay so."""
    return stage.panel.locator('[class*="st-key-card_"]').first


def card_menu(stage: Stage) -> None:
    chat = Chat(stage.service)
    for number in range(1, 8):
        chat.say(question(number) * 3)
        chat.wait_for_folds()
    stage.visitor.open(f"?session={chat.session_id}")
    open_panel(stage).locator('[class*="st-key-menu_card_"] button').first.click()
    expect(stage.visitor.page.get_by_role("menuitem")).to_have_count(4)


def edit_dialog(stage: Stage) -> None:
    stage.visitor.page.get_by_role("menuitem", name=stage.words.steering.edit, exact=True).click()
    expect(stage.dialog.get_by_role("textbox")).to_be_visible()
    expect(stage.dialog.get_by_role("textbox")).not_to_be_empty()


def edit_refused(stage: Stage) -> None:
    stage.dialog.get_by_role("textbox").fill(EDITED * 100)
    stage.button("dialog_confirm").click()
    expect(stage.dialog.get_by_test_id("stAlert")).to_contain_text(stage.words.input_reasons["not_shorter"])


def edited(stage: Stage) -> None:
    stage.dialog.get_by_role("textbox").fill(EDITED)
    stage.button("dialog_confirm").click()
    expect(stage.visitor.find("change_bar")).to_contain_text("4-6")
    expect(stage.dialog).to_have_count(0)
    open_panel(stage)
    expect(newest_card(stage)).to_contain_text(EDITED)
    expect(newest_card(stage)).to_contain_text(stage.words.steering.edited)


def taken_back(stage: Stage) -> None:
    place = "drawer" if stage.is_narrow else "bar"
    stage.button(f"take_back_{place}").click()
    expect(newest_card(stage)).not_to_contain_text(EDITED)
    expect(stage.visitor.find("change_bar")).to_have_count(0)


def versions(stage: Stage) -> None:
    steer(stage, stage.words.steering.versions)
    expect(stage.dialog.locator(".version").first).to_contain_text("200만")
    expect(stage.dialog.locator(".version del").first).to_be_visible()
    expect(stage.dialog.locator(".version ins").first).to_be_visible()


def version_used(stage: Stage) -> None:
    stage.button("dialog_confirm").click()
    expect(stage.visitor.find("change_bar")).to_contain_text(
        stage.words.steering.use_done.format(turns="4-6", version=2)
    )
    expect(stage.dialog).to_have_count(0)
    open_panel(stage)
    expect(newest_card(stage)).to_contain_text(EDITED)


def remake_dialog(stage: Stage) -> None:
    steer(stage, stage.words.steering.remake)
    expect(stage.dialog.get_by_role("slider")).to_be_visible()


def remade(stage: Stage) -> None:
    stage.dialog.get_by_role("slider").press("ArrowRight")
    stage.dialog.get_by_role("textbox").fill("예산을 남겨 주세요")
    stage.button("dialog_confirm").click()
    expect(stage.visitor.find("change_bar")).to_contain_text("→")
    expect(stage.dialog).to_have_count(0)
    open_panel(stage)
    expect(newest_card(stage)).to_contain_text("v3")
    expect(newest_card(stage)).not_to_contain_text(EDITED)


def only_version(stage: Stage) -> None:
    steer(stage, stage.words.steering.versions, card=1)
    expect(stage.dialog).to_contain_text(stage.words.steering.only_version)


def fold_undone(stage: Stage) -> None:
    stage.button("dialog_cancel").click()
    expect(stage.visitor.page.locator(".version")).to_have_count(0)
    steer(stage, stage.words.steering.undo_fold)
    expect(stage.visitor.find("change_bar")).to_contain_text(stage.words.steering.undo_fold_done.format(turns="4-6"))
    expect(newest_card(stage)).to_contain_text(stage.words.steering.undone)


def folded_again(stage: Stage) -> None:
    steer(stage, stage.words.steering.fold_again)
    expect(stage.visitor.find("change_bar")).to_contain_text(stage.words.steering.fold_again_done.format(turns="4-6"))
    expect(newest_card(stage)).not_to_contain_text(stage.words.steering.undone)


def message_pinned(stage: Stage) -> None:
    if stage.is_narrow:
        stage.close_dialog()
    stage.visitor.turn(7).hover()
    pin = stage.visitor.turn(7).get_by_role("button", name=stage.words.steering.pin)
    pin.last.click()
    expect(pin.last).to_have_attribute("aria-pressed", "true")
    expect(pin.first).to_have_attribute("aria-pressed", "false")


def pins_listed(stage: Stage) -> None:
    box = open_panel(stage).locator('[class*="st-key-pins_"]')
    box.locator("summary").click()
    expect(box.get_by_role("button", name=stage.words.to_turn.format(turn=7))).to_be_visible()


def message_unpinned(stage: Stage) -> None:
    box = stage.panel.locator('[class*="st-key-pins_"]')
    box.get_by_role("button", name=stage.words.steering.pin).click()
    expect(box).to_have_count(0)
    expect(stage.visitor.turn(7).locator('button.pin[aria-pressed="true"]')).to_have_count(0)


def pin_refused(stage: Stage) -> None:
    if stage.is_narrow:
        stage.close_dialog()
    stage.visitor.ask("고정하기에는 아주 긴 말입니다. " * 900, first=8)
    stage.visitor.turn(8).hover()
    stage.visitor.turn(8).get_by_role("button", name=stage.words.steering.pin).first.click()
    expect(stage.visitor.page.get_by_test_id("stToast")).to_contain_text(stage.words.input_reasons["pin_budget"])
