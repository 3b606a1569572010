"""The states of the strategies: what the panel's head says of each, a compaction from the settings, many summaries."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect

from component.format import format_count
from component.panel.summary_panel import ROWS_AT_ONCE
from graph.value.view import TurnOptions
from tests.browser.stage import Stage
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import hang
from tests.fake.resending import Program, assistant, user

CARDS: Final = 3
OTHER_MODEL: Final = "another-model"
RECORDS: Final = CARDS + ROWS_AT_ONCE + 2


def said(stage: Stage, number: int) -> str:
    return f"{question(number)} 전략을 바꿀 이야기입니다 ({stage.words.language})."


def _open_settings(stage: Stage) -> None:
    stage.open_sidebar()
    stage.visitor.open_settings(stage.words.tab_summaries)
    expect(stage.visitor.find_choice("strategy")).to_be_visible()


def choose_strategy(stage: Stage, strategy: str) -> None:
    _open_settings(stage)
    stage.visitor.find_choice("strategy").get_by_role("combobox").click()
    stage.visitor.page.get_by_role("option", name=stage.words.strategies[strategy], exact=True).click()
    expect(stage.dialog.get_by_text(stage.words.strategy_notes[strategy].partition("{")[0].strip())).to_be_visible()
    stage.close_dialog()


def expect_tokens_shown(stage: Stage, strategy: str) -> None:
    threshold = format_count(stage.service.folds.next_fold(None, strategy=strategy).threshold_tokens)
    rule = stage.words.no_record_notes[strategy].format(threshold=threshold)
    panel = stage.open_panel()
    expect(panel.get_by_text(f"{stage.words.no_records} {rule}")).to_be_visible()
    expect(panel.get_by_text(stage.words.next_by_tokens.format(tokens=0, threshold=threshold))).to_be_visible()
    expect(panel.get_by_text(stage.words.rate_unused)).to_be_visible()
    expect(panel.get_by_role("slider")).to_be_disabled()


def first_summary_explained(stage: Stage) -> None:
    stage.visitor.open()
    panel, words = stage.open_panel(), stage.words
    expect(panel.locator(".rate-now")).to_contain_text(words.rate_share.format(percent=30))
    expect(panel.get_by_text(words.turns_left.format(count=3))).to_have_count(0)  # the page beside it says so
    expect(panel.locator(".sample[data-begin]:visible")).to_contain_text(words.sample_notes[1].splitlines()[-1])
    stage.open_tab(words.input.tab)
    expect(panel.get_by_text(words.input.nothing)).to_be_visible()
    stage.open_tab(words.tab_summaries)


def slider_moved(stage: Stage) -> None:
    """The settings tell its rate and lead to it; the rate is stored with the chat and folds it."""
    stage.close_panel()
    stage.visitor.ask(question(1))
    stage.open_panel()
    move(stage, "ArrowRight", 4)
    expect(stage.panel.locator(".rate-now")).to_contain_text(stage.words.rate_share.format(percent=50))
    stage.close_panel()
    stage.open_sidebar()
    line = stage.visitor.find("settings").locator("p.rate")
    expect(line).to_contain_text(stage.words.rate_share.format(percent=50))
    stage.visitor.note_marks()
    line.get_by_role("button").click()
    stage.visitor.wait_for_marks(stage.visitor.find("panel_head"))
    expect(stage.panel.get_by_role("slider")).to_be_focused()
    move(stage, "ArrowLeft", 2)
    expect(stage.panel.locator(".rate-now")).to_contain_text(stage.words.rate_share.format(percent=40))
    stage.close_panel()
    stage.visitor.ask(question(2), question(3), question(4), first=2)
    expect(stage.open_panel().get_by_text(stage.words.card_rate.format(rate=0.4), exact=True)).to_be_visible()
    assert Chat(stage.service, stage.visitor.session_id).view.compression_rate == 0.4


def move(stage: Stage, arrow: str, count: int) -> None:
    """Moves the slider by keys; under it stand our words alone, also while it is touched."""
    slider, thumb = stage.visitor.find("rate"), stage.panel.get_by_role("slider")
    thumb.hover(force=True)
    for number in {"0.10", "0.50"} - {f"{float(thumb.input_value()):.2f}"}:
        expect(slider.get_by_text(number, exact=True).filter(visible=True)).to_have_count(0)
    thumb.focus()
    for _ in range(count):
        thumb.press(arrow)


def rolling_chosen(stage: Stage) -> None:
    stage.close_panel()
    stage.visitor.open()
    choose_strategy(stage, "rolling")
    expect(stage.visitor.find("empty")).to_contain_text(stage.words.strategy_notes["rolling"])
    stage.close_sidebar()
    expect_tokens_shown(stage, "rolling")


def compaction_chosen(stage: Stage) -> None:
    stage.close_panel()
    choose_strategy(stage, "compaction")
    stage.close_sidebar()
    expect_tokens_shown(stage, "compaction")


def next_summary_shown(stage: Stage) -> None:
    stage.close_panel()
    chat = Chat(stage.service)
    for number in range(1, 7):
        chat.say(said(stage, number), options=TurnOptions(model=OTHER_MODEL))
        chat.wait_for_folds()
    stage.visitor.open(f"?session={chat.session_id}")
    expect(stage.open_panel()).to_contain_text(stage.words.next_by_turn.format(turn=9, original="1,200", summary="360"))


def models_listed(stage: Stage) -> None:
    stage.close_panel()
    expect(stage.button("model_menu")).to_contain_text(OTHER_MODEL)
    stage.button("model_menu").click()
    stage.visitor.find_choice("model").get_by_role("combobox").click()
    expect(stage.visitor.page.get_by_role("option", name=OTHER_MODEL)).to_be_visible()


def model_chosen(stage: Stage) -> None:
    stage.visitor.page.get_by_role("option", name="scripted-model").click()
    expect(stage.button("model_menu")).to_contain_text("scripted-model")
    expect(stage.visitor.find_choice("model")).to_be_visible()  # the menu stays open
    stage.visitor.page.keyboard.press("Escape")


def compact_offered(stage: Stage) -> None:
    choose_strategy(stage, "compaction")
    _open_settings(stage)
    expect(stage.button("compact")).to_have_text(f"compress{stage.words.compact_now}")


def compacting(stage: Stage) -> None:
    sentence = f"전략을 바꿀 이야기입니다 ({stage.words.language})"
    hanging = stage.endpoint.script(hang(is_silent=True), kind="summary", to=sentence)
    stage.button("compact").click()
    stage.endpoint.wait_until(lambda _: hanging.is_asked_for)
    stage.close_sidebar()
    expect(stage.visitor.page.locator("p.phase")).to_have_text(stage.words.compacting)


def compaction_stopped(stage: Stage) -> None:
    stage.button("stop").click()
    expect(stage.visitor.page.get_by_text(stage.words.input_reasons["compact_stopped"])).to_be_visible()
    expect(stage.visitor.find("stop")).to_have_count(0)
    stage.endpoint.wait_until(lambda endpoint: not endpoint.hanging_count)  # its call has ended, too


def compacted(stage: Stage) -> None:
    _open_settings(stage)
    stage.button("compact").click()
    stage.close_sidebar()
    expect(stage.visitor.find("change_bar")).to_contain_text(stage.words.undo)
    expect(stage.open_panel().locator('[class*="st-key-restore_"]')).to_be_visible()


def many_older_summaries(stage: Stage) -> None:
    stage.close_panel()
    program = Program(stage.service)
    for number in range(1, 3 * (RECORDS - 2) + 1):
        program.messages += [user(f"{number}번째 물건을 셉니다."), assistant(f"{number}번째 물건을 적었습니다.")]
    for number in range(1, 7):  # what a program brings along folds behind two blocks of its own
        last = program.ask(f"{number}번째로 묻습니다. 모두 몇 개인가요? ({stage.words.language})")
    chat = Chat(stage.service, last.session_id)
    chat.wait_for_folds()
    chat.say("그렇군요, 고맙습니다.")
    stage.visitor.open(f"?session={chat.session_id}")
    stage.open_panel().locator('[class*="st-key-older_"] summary').first.click()
    more = stage.panel.locator(".st-key-more_records button")
    expect(more).to_have_text(f"expand_more{stage.words.more_records.format(count=RECORDS - CARDS - ROWS_AT_ONCE)}")


def more_older_summaries(stage: Stage) -> None:
    stage.panel.locator(".st-key-more_records button").click()
    expect(stage.panel.locator(".st-key-more_records")).to_have_count(0)
    oldest = stage.words.card_row_verbatim.partition("]")[0].format(turns="1-3")
    expect(stage.panel.locator('[class*="st-key-older_"] summary').last).to_contain_text(f"{oldest}]")
