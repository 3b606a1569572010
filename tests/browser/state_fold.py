"""The states of a chat with summaries: its lines and its panel."""

from __future__ import annotations

import re
from typing import Final

from playwright.sync_api import Locator, expect

from component.format import format_count, format_money
from graph.value.record import Record
from graph.value.view import CostView
from tests.browser.stage import Stage
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import ScriptedCall, text, tools

_WEIGHTS = [f"{7 * number} kg" for number in range(1, 61)]
ADDED = {11: "3 kg, 5 kg", 12: ", ".join(_WEIGHTS)}
# Without facts of two sentences.
DRAFT = (
    "(10턴) 서버 이전 10월 10일, 담당 김민수, 예산 1020만 원. (11턴) 10월 11일, 예산 1120만 원. "
    f"(12턴) 10월 12일, 예산 1220만 원: {', '.join(_WEIGHTS[:50])}."
)
# How high the text is, how high a line of it, and where its first letter begins.
FIRST_WORD: Final = """element => {
    const range = document.createRange();
    range.setStart(document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode(), 0);
    const first = range.getBoundingClientRect().top - element.getBoundingClientRect().top;
    return [element.clientHeight, parseFloat(getComputedStyle(element).lineHeight), first];
}"""


def _session(stage: Stage) -> str:
    return stage.visitor.session_id


def sizes_of(record: Record) -> tuple[int, int]:
    return record.original_chars, record.summary_chars


def amount_of(cost: CostView | None) -> str:
    assert cost is not None
    return format_money(cost.total.amount, cost.currency, is_estimate=cost.total.is_estimate)


def stays_in_view(stage: Stage, part: Locator) -> None:
    stage.visitor.page.wait_for_timeout(2000)  # longer than a jump holds its place
    expect(part).to_be_in_viewport()


def folded(stage: Stage) -> None:
    """Thirteen turns, four of them folds; the last one uses a tool."""
    chat, call = Chat(stage.service), ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")
    stage.endpoint.script(text(DRAFT), to=question(12), kind="summary")
    stage.endpoint.script(tools(call), text("정오입니다."), to=question(13) * 4)
    for number in range(1, 14):
        chat.say(question(number) * 4 + ADDED.get(number, ""))
        chat.wait_for_folds()
    stage.visitor.open(f"?session={chat.session_id}")
    expect(stage.visitor.turn(13)).to_be_visible()


def fold_open(stage: Stage) -> None:
    """Its line opens in place, and marks the card beside it."""
    fold = stage.visitor.page.locator('[class*="st-key-fold_"]').last
    line, words = fold.locator("summary"), fold.get_by_text(stage.words.fold_text.format(turns="10-12"))
    for sign in ("stExpanderIcon", "stIconMaterial"):
        expect(line.get_by_test_id(sign)).to_be_in_viewport(ratio=1)
    label = line.locator(":scope > span").bounding_box()
    whole = line.bounding_box()
    assert label is not None
    assert whole is not None
    assert whole["width"] - label["width"] > 40  # more than the gaps: both rules are seen
    stage.visitor.note_marks()
    line.click()
    expect(words).to_be_in_viewport()
    if not stage.is_narrow:
        stage.visitor.wait_for_marks(stage.panel.locator('[class*="st-key-card_"]').first)
    column, opened = stage.visitor.find("chat").bounding_box(), fold.bounding_box()
    assert column is not None
    assert opened is not None
    assert column["x"] <= opened["x"]
    assert column["width"] - 2 < opened["width"] <= column["width"]


def panel_open(stage: Stage) -> None:
    """The newest card says what the table has, clamped to six lines from the first on."""
    stage.visitor.page.keyboard.press("Escape")
    stage.open_panel()
    card, record = (
        stage.panel.locator('[class*="st-key-card_"]').first,
        stage.service.folds.records(_session(stage))[-1],
    )
    expect(card.get_by_text(stage.words.card_title.format(turns="10-12"))).to_be_visible()
    sizes = {"original": format_count(record.original_chars), "summary": format_count(record.summary_chars)}
    percent = round(100 * record.summary_chars / record.original_chars)
    expect(card.get_by_text(stage.words.card_chars.format(**sizes, percent=percent), exact=True)).to_be_visible()
    words = card.locator('[class*="_summary_"] [data-testid="stMarkdownContainer"]').first
    height, line, first = words.evaluate(FIRST_WORD)
    assert 5.5 < height / line < 7  # six lines, and the gaps between paragraphs
    assert 0 <= first < line


def summary_whole(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-more_summary_"] button').first.click()
    expect(stage.panel.locator('[class*="st-key-whole_summary_"]')).to_be_visible()
    words = stage.panel.locator(
        '[class*="st-key-card_"] [class*="_summary_"] [data-testid="stMarkdownContainer"]'
    ).first
    height, line, _ = words.evaluate(FIRST_WORD)
    assert height / line > 10


def facts_open(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-more_summary_"] button').first.click()
    expect(stage.panel.locator('[class*="st-key-whole_summary_"]')).to_have_count(0)
    stage.panel.locator('[class*="st-key-facts_"] summary').first.click()
    expect(stage.panel.get_by_text(stage.words.facts_missing, exact=True)).to_be_visible()


def fact_added(stage: Stage) -> None:
    """With the keyboard, which then stands on the next row; the change is taken back."""
    rows = stage.panel.locator("ul.missing li")
    adds = rows.get_by_role("button", name=stage.words.facts_add)
    count, next_label = rows.count(), adds.nth(1).get_attribute("aria-label")
    adds.first.press("Enter")
    expect(rows).to_have_count(count - 1)
    expect(adds.first).to_be_focused()
    expect(adds.first).to_have_accessible_name(str(next_label))
    stage.button("take_back_panel" if stage.is_narrow else "take_back_bar").click()
    expect(rows).not_to_have_count(count - 1)


def older_rows_open(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-older_"] summary').first.click()
    stage.panel.locator('[class*="st-key-older_"] [class*="st-key-older_"] summary').first.click()
    card = stage.panel.locator('[class*="st-key-older_"] [class*="st-key-card_"]')
    expect(card).to_be_visible()
    card.evaluate("card => card.scrollIntoView()")  # away from the button that closes the panel


def line_struck(stage: Stage) -> None:
    """A line of the user's own words is struck out where it stands; `line_restored` takes that back."""
    stage.panel.locator(".st-key-ledger summary").click()
    rows = stage.panel.locator("ul.ledger li")
    expect(rows).to_have_count(len(stage.service.folds.ledger(_session(stage)).lines))
    rows.first.locator("button.press").click()
    expect(rows.first).to_have_attribute("data-state", "struck")
    expect(rows.first).to_contain_text(stage.words.ledger.states["struck"])
    expect(rows.first.locator("button.press")).to_be_focused()


def line_restored(stage: Stage) -> None:
    row = stage.panel.locator("ul.ledger li").first
    row.locator("button.press").press("Enter")
    expect(row).to_have_attribute("data-state", "sent")
    assert stage.service.folds.ledger(_session(stage)).lines[0].state == "sent"
    stage.panel.locator(".st-key-ledger summary").click()


def statistics(stage: Stage) -> None:
    """Its figures and its money are those of the service."""
    stage.open_tab(stage.words.tab_statistics)
    expect(stage.panel.locator('[data-testid="stVegaLiteChart"] :is(svg, canvas)').first).to_be_visible()
    records = stage.service.folds.records(_session(stage))
    original, summary = (format_count(sum(sizes)) for sizes in zip(*map(sizes_of, records), strict=True))
    expect(stage.panel.get_by_text(stage.words.stat_count.format(count=4, turns=12))).to_be_visible()
    expect(stage.panel.get_by_text(stage.words.stat_chars.format(original=original, summary=summary))).to_be_visible()
    costs, labels = stage.service.costs, stage.words.cost
    box = stage.panel.locator(".st-key-cost")
    expect(
        box.get_by_text(labels.of_session.format(amount=amount_of(costs.of_session(_session(stage)))))
    ).to_be_visible()
    expect(box.get_by_text(labels.of_all.format(amount=amount_of(costs.of_all())))).to_be_visible()


def card_followed(stage: Stage) -> None:
    """A card leads to its turns, also where the panel covers them; the reader is left there, and goes on by himself."""
    stage.open_tab(stage.words.tab_summaries)
    stage.visitor.note_marks()
    stage.panel.locator("button.to-turns").first.press("Enter")
    stage.visitor.wait_for_marks(*map(stage.visitor.turn, (10, 11, 12)))
    expect(stage.visitor.turn(10)).to_be_focused()
    stays_in_view(stage, stage.visitor.turn(10).get_by_test_id("stChatMessage").first)
    expect(stage.visitor.page.locator("[data-marked]")).to_have_count(0)


def turn_of_summary_followed(stage: Stage) -> None:
    """Each turn of a summary is a paragraph that begins with a link to it."""
    if stage.is_narrow:
        stage.open_panel()  # following the card has closed it
    stage.open_tab(stage.words.tab_summaries)
    stage.visitor.note_marks()
    stage.panel.locator('[class*="st-key-card_"] p:first-child > a[href="#turn-10-10"]').press("Enter")
    stage.visitor.wait_for_marks(stage.visitor.turn(10))
    expect(stage.visitor.page).not_to_have_url(re.compile("#"))


def turns_recalled(stage: Stage) -> None:
    call = ScriptedCall("recall", '{"turns": "2, 5"}', "call-recall")
    stage.write("앞에서 정한 것을 다시 봅시다.", tools(call), text("둘 다 보았습니다."))
    stage.visitor.wait_for_end(14)
    expect(stage.visitor.turn(14).locator("button.recalled-turn")).to_have_count(2)


def recalled_followed(stage: Stage) -> None:
    stage.visitor.note_marks()
    stage.visitor.turn(14).get_by_role("button", name=stage.words.to_turn.format(turn=5)).click()
    stage.visitor.wait_for_marks(stage.visitor.turn(5))
    stays_in_view(stage, stage.visitor.turn(5).get_by_test_id("stChatMessage").first)
