"""The states of the tab of what was sent to the model: its blocks, its history, its request, and what isn't true."""

from __future__ import annotations

import json

from playwright.sync_api import Locator, expect

from tests.browser.stage import Stage
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import ScriptedCall, text, tools


def _session(stage: Stage) -> str:
    return stage.visitor.session_id


def block(stage: Stage, kind: str) -> Locator:
    return stage.panel.locator(f'[class*="st-key-input_{kind}_"]').first


def choose_input(stage: Stage, name: str) -> None:
    chooser = stage.panel.locator('[class*="st-key-input_turn_"]').get_by_role("combobox")
    chooser.scroll_into_view_if_needed()
    stage.visitor.page.wait_for_timeout(300)  # a list closes when what it stands in is scrolled
    chooser.click()
    stage.visitor.page.get_by_role("option", name=name, exact=True).click()


def input_shown(stage: Stage) -> None:
    """Of six turns, one of them a fold; the last one uses a tool."""
    chat, call = Chat(stage.service), ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")
    stage.endpoint.script(tools(call), text("정오입니다."), to=question(6) * 4)
    for number in range(1, 7):
        chat.say(question(number) * 4)
        chat.wait_for_folds()
    stage.visitor.open(f"?session={chat.session_id}")
    expect(stage.visitor.turn(6)).to_be_visible()
    stage.open_panel()
    stage.open_tab(stage.words.input.tab)
    expect(stage.panel.locator(".input-bar[role='img']")).to_be_visible()
    expect(stage.panel.get_by_text(stage.words.input.sent.format(turn=6))).to_be_visible()
    expect(stage.panel.get_by_text(stage.words.input.unverified)).to_have_count(0)


def input_turns_listed(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-input_turn_"]').get_by_role("combobox").click()
    expect(stage.visitor.page.get_by_role("option").first).to_be_visible()


def input_blocks_open(stage: Stage) -> None:
    """Every block opens to the words that were sent."""
    stage.visitor.page.get_by_role("option", name=stage.words.input.sent.format(turn=5)).click()
    expect(stage.panel.get_by_text(stage.words.input.sent.format(turn=5))).to_be_visible()
    stage.visitor.settle()  # till then the boxes of the other turn stand there
    for kind in ("system", "tools", "records", "raw"):
        block(stage, kind).locator("summary").first.click()
    sent = stage.service.inputs.of_turn(_session(stage), 5)[-1]
    expect(block(stage, "system").get_by_test_id("stText")).to_have_text(sent.blocks[0].text or "")
    block(stage, "tool").locator("summary").first.click()
    expect(block(stage, "tool").get_by_test_id("stCode")).to_contain_text('"name": "get_current_time"')
    expect(block(stage, "raw").get_by_test_id("stText").first).to_contain_text(question(4))
    record = block(stage, "part_records")
    record.locator("summary").first.click()
    more = record.locator('[class*="st-key-more_input_"] button')
    more.click()
    expect(more).to_contain_text(stage.words.show_less)
    expect(record.get_by_test_id("stText")).to_have_text(stage.service.folds.records(_session(stage))[0].summary)


def input_history_open(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-input_history_"] summary').first.click()
    # The rows come one by one, the oldest last.
    first = stage.panel.locator(
        '[class*="st-key-input_past_"][class$="_1"], [class*="st-key-input_past_"][class*="_1 "]'
    ).first
    expect(first).to_contain_text(stage.words.input.ways["record"])
    first.locator("summary").click()
    expect(first.get_by_test_id("stText").first).to_contain_text(question(1))


def input_request_open(stage: Stage) -> None:
    """The request is copied and saved as it was sent."""
    box = stage.panel.locator('[class*="st-key-input_details_"]').first
    box.locator("summary").click()
    expect(box.get_by_test_id("stCode")).to_contain_text('"messages": [')
    expect(box.get_by_text(stage.words.input.verified)).to_be_visible()
    (body,) = stage.endpoint.bodies("chat", to=question(5))
    assert json.loads(stage.copied(box.locator("button.copy"))) == body
    assert json.loads(stage.saved(box.get_by_role("button", name=stage.words.input.request_file))[1]) == body


def input_call_chosen(stage: Stage) -> None:
    """A turn that used a tool has two calls; the first had no result yet."""
    choose_input(stage, stage.words.input.newest)
    expect(stage.panel.get_by_text(stage.words.input.sent.format(turn=6))).to_be_visible()
    stage.visitor.settle()
    block(stage, "current").locator("summary").first.click()
    expect(block(stage, "current").get_by_text("get_current_time")).to_be_visible()
    first = stage.words.input.call.format(number=1, count=2)
    choose_input(stage, f"{stage.words.input.newest} · {first}")
    expect(block(stage, "current").get_by_text("get_current_time")).to_have_count(0)


def tables_changed(stage: Stage) -> None:
    """What was changed in the tables is said not to be what was sent."""
    change = "UPDATE message SET content = replace(content, '김민수', '이영희') WHERE session_id = "
    Chat(stage.service).change(f"{change}'{_session(stage)}'")
    stage.visitor.open(f"?session={_session(stage)}")
    stage.open_panel()
    stage.open_tab(stage.words.input.tab)
    expect(stage.panel.get_by_text(stage.words.input.unverified)).to_be_visible()
