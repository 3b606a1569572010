"""The states in which a summary is changed from its card."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.stage import Stage
from tests.browser.state_strategy import choose_strategy
from tests.fake.chat import Chat, question

EDITED = "예산은 120만 원이 아니라 200만 원으로 고쳤다."


def steer(stage: Stage, choice: str, card: int = 0) -> None:
    """Chooses something in the menu of a card, counted from the newest."""
    panel = open_panel(stage)
    panel.locator('[class*="st-key-menu_card_"] button').nth(card).click()
    stage.visitor.page.get_by_role("menuitem", name=choice, exact=True).click()


def open_panel(stage: Stage) -> Locator:
    panel = stage.open_panel()
    expect(panel.locator('[class*="st-key-card_"]').first).to_be_visible()
    return panel


def newest_card(stage: Stage) -> Locator:
    """The panel that is open has to stay so."""
    return stage.panel.locator('[class*="st-key-card_"]').first


def card_menu(stage: Stage) -> None:
    chat = Chat(stage.service)
    for number in range(1, 8):
        chat.say(question(number) * 3)
        chat.wait_for_folds()
    stage.visitor.open(f"?session={chat.session_id}")
    open_panel(stage).locator('[class*="st-key-menu_card_"] button').first.click()
    expect(stage.visitor.page.get_by_role("menuitem")).to_have_count(5)


def edit_dialog(stage: Stage) -> None:
    """One that is left has the focus go back to the menu, also where the panel lies over the chat."""
    choice = stage.visitor.page.get_by_role("menuitem", name=stage.words.steering.edit, exact=True)
    choice.click()
    expect(stage.dialog.get_by_role("textbox")).to_be_focused()
    stage.close_dialog()
    menu = newest_card(stage).locator('[class*="st-key-menu_card_"] button').first
    expect(menu).to_be_focused()
    menu.click()
    choice.click()
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
    expect(newest_card(stage)).to_contain_text(EDITED)
    expect(newest_card(stage)).to_contain_text(stage.words.steering.edited)


def taken_back(stage: Stage) -> None:
    surface = "panel" if stage.is_narrow else "bar"
    stage.button(f"take_back_{surface}").click()
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
    expect(newest_card(stage)).to_contain_text(EDITED)


def edited_summary_sent(stage: Stage) -> None:
    """It survives a reload, and is what the model reads."""
    stage.visitor.page.reload()
    stage.visitor.settle()
    expect(open_panel(stage)).to_contain_text(stage.words.steering.edited)
    stage.close_panel()
    asked = f"고친 뒤에 묻습니다 ({stage.words.language})."
    stage.visitor.ask(asked, first=8)
    (body,) = stage.endpoint.bodies("chat", to=asked)
    assert EDITED in str(body["messages"][0])


def remake_dialog(stage: Stage) -> None:
    steer(stage, stage.words.steering.remake)
    expect(stage.dialog.get_by_role("slider")).to_be_visible()


def remade(stage: Stage) -> None:
    stage.dialog.get_by_role("slider").press("ArrowRight")
    stage.dialog.get_by_role("textbox").fill("예산을 남겨 주세요")
    stage.button("dialog_confirm").click()
    expect(stage.visitor.find("change_bar")).to_contain_text("→")
    expect(stage.dialog).to_have_count(0)
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
    expect_folded(stage, 3)


def folded_again(stage: Stage) -> None:
    steer(stage, stage.words.steering.fold_again)
    expect(stage.visitor.find("change_bar")).to_contain_text(stage.words.steering.fold_again_done.format(turns="4-6"))
    expect(newest_card(stage)).not_to_contain_text(stage.words.steering.undone)
    expect_folded(stage, 6)


def message_pinned(stage: Stage) -> None:
    stage.close_panel()
    stage.visitor.turn(1).hover()
    pin = stage.visitor.turn(1).locator("button.pin")
    pin.first.click()
    expect(pin.first).to_have_attribute("aria-pressed", "true")
    expect(pin.last).to_have_attribute("aria-pressed", "false")


def pinned_message_sent(stage: Stage) -> None:
    """It survives a reload, and is sent word for word though its turn is folded."""
    stage.visitor.page.reload()
    stage.visitor.settle()
    pin = stage.visitor.turn(1).get_by_role("button", name=stage.words.steering.pin).first
    expect(pin).to_have_attribute("aria-pressed", "true")
    asked = f"고정한 뒤에 묻습니다 ({stage.words.language})."
    stage.visitor.ask(asked, first=9)
    (body,) = stage.endpoint.bodies("chat", to=asked)
    assert question(1) * 3 in str(body["messages"][0]["content"])


def pins_listed(stage: Stage) -> None:
    box = open_panel(stage).locator(".st-key-pins")
    box.locator("summary").click()
    expect(box.get_by_role("button", name=stage.words.to_turn.format(turn=1))).to_be_visible()


def message_unpinned(stage: Stage) -> None:
    box = stage.panel.locator(".st-key-pins")
    box.get_by_role("button", name=stage.words.steering.pin).click()
    expect(box).to_have_count(0)
    expect(stage.visitor.turn(1).locator('button.pin[aria-pressed="true"]')).to_have_count(0)


def pin_refused(stage: Stage) -> None:
    stage.close_panel()
    stage.visitor.ask("고정하기에는 아주 긴 말입니다. " * 900, first=10)
    stage.visitor.turn(10).hover()
    stage.visitor.turn(10).get_by_role("button", name=stage.words.steering.pin).first.click()
    expect(stage.visitor.page.get_by_test_id("stToast")).to_contain_text(
        stage.words.input_reasons["pin_budget"].partition("{")[0]
    )


def nothing_folded(stage: Stage) -> None:
    """A strategy without summaries sends the turns themselves."""
    choose_strategy(stage, "window")
    stage.close_sidebar()
    expect_folded(stage, 0)


def expect_folded(stage: Stage, last: int) -> None:
    """The turns up to this one are shown as folded, and no others."""
    for number in range(1, 8):
        turn = stage.visitor.turn(number)
        if number <= last:
            expect(turn).to_have_attribute("data-folded", "")
        else:
            expect(turn).not_to_have_attribute("data-folded", "")
