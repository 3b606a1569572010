"""The states of the tools of an MCP server: chosen, asked about, allowed or not, and what they brought."""

from __future__ import annotations

import re
from typing import Final

from playwright.sync_api import Locator, expect

from tests.browser.stage import Stage
from tests.fake.mcp_tools import noted
from tests.fake.openai_reply import Body, Reply, ScriptedCall, text, tools

WRITE, ASK, DRAW, SLOW = "notes__write_note", "notes__ask_back", "notes__picture", "notes__slow"
QUEUED: Final = "기다리는 다음 말"


def _write(number: int) -> ScriptedCall:
    return ScriptedCall(WRITE, f'{{"text": "적을 글 {number}"}}', f"write-{number}")


def _card(stage: Stage, call_id: str) -> Locator:
    return stage.visitor.page.locator(f'[class*="st-key-asked_"][class*="{call_id}"]')


def _say(stage: Stage, word: str, call_id: str) -> None:
    _card(stage, call_id).get_by_role("button", name=stage.words.tools.words[word], exact=True).click()


def _notes(stage: Stage) -> list[str]:
    return noted(stage.folder, "notes")


def menu_open(stage: Stage) -> None:
    """A server is started when its tools are looked at, and they come by themselves."""
    stage.visitor.open()
    stage.button("tool_menu").click()
    menu = stage.visitor.page.get_by_test_id("stPopoverBody")
    expect(menu).to_contain_text(stage.words.tools.none)
    assert noted(stage.folder, "started") == []
    menu.get_by_text("notes", exact=True).click()
    expect(menu).to_contain_text("write_note")
    expect(menu).to_contain_text(stage.words.tools.asks)


def server_failed(stage: Stage) -> None:
    """What has gone wrong stands at the server's name; the others can be used."""
    menu = stage.visitor.page.get_by_test_id("stPopoverBody")
    menu.get_by_text("gone", exact=True).click()
    expect(menu).to_contain_text(stage.words.tools.failed)
    expect(menu).to_contain_text("no-such-command")
    expect(stage.visitor.find("start_gone")).to_be_visible()


def all_chosen(stage: Stage) -> None:
    menu = stage.visitor.page.get_by_test_id("stPopoverBody")
    menu.get_by_text(stage.words.tools.all, exact=True).click()
    expect(stage.button("tool_menu").first).to_have_text(re.compile(r"\d"))
    expect(menu.get_by_role("checkbox", checked=False)).to_have_count(0)


def asking(stage: Stage) -> None:
    """A tool that writes waits for a word, also over a reload, and its chat is marked in the list."""
    stage.visitor.page.keyboard.press("Escape")
    stage.write("글을 적어 주세요.", tools(_write(1)), text("적었습니다."))
    expect(_card(stage, "write-1")).to_contain_text("적을 글 1")
    stage.visitor.page.reload()
    stage.visitor.settle()
    expect(_card(stage, "write-1")).to_contain_text("적을 글 1")
    stage.open_sidebar()
    expect(stage.visitor.open_row.get_by_test_id("stIconMaterial").first).to_have_text("front_hand")
    assert _notes(stage) == []


def allowed_once(stage: Stage) -> None:
    stage.close_sidebar()
    _say(stage, "once", "write-1")
    stage.visitor.wait_for_end(1)
    expect(stage.visitor.turn(1)).to_contain_text("적었습니다.")
    expect(_card(stage, "write-1")).to_have_count(0)
    assert _notes(stage) == ["적을 글 1"]


def two_asked(stage: Stage) -> None:
    """Nothing runs before each call has its word."""
    stage.write("두 번 적어 주세요.", tools(_write(2), _write(3)), text("하나만 적었습니다."))
    _say(stage, "no", "write-2")
    expect(_card(stage, "write-2").locator('button[kind="primary"]')).to_contain_text(stage.words.tools.words["no"])
    assert _notes(stage) == ["적을 글 1"]


def always_allowed(stage: Stage) -> None:
    """What is allowed once and for all isn't asked about again in this chat."""
    _say(stage, "always", "write-3")
    expect(stage.visitor.turn(2)).to_contain_text("하나만 적었습니다.")
    stage.visitor.wait_for_end(2)
    stage.write("또 적어 주세요.", tools(_write(4)), text("그냥 적었습니다."))
    stage.visitor.wait_for_end(3)
    assert _notes(stage) == ["적을 글 1", "적을 글 3", "적을 글 4"]


def picture_shown(stage: Stage) -> None:
    # The model is shown the picture as a message, which the endpoint answers by itself.
    stage.write("그림을 그려 주세요.", tools(ScriptedCall(DRAW, "{}", "draw-1")))
    stage.visitor.wait_for_end(4)
    box = stage.visitor.page.locator('[class*="st-key-steps_4_"]')
    box.locator("summary").first.click()
    box.locator("summary").nth(1).click()
    expect(box.locator("img.picture")).to_be_visible()


def queued_behind_a_question(stage: Stage) -> None:
    """A message that waits for an answer is no word on what that answer asks."""

    def ask_late(_: Body) -> Reply:
        stage.gate.wait(60)
        return tools(ScriptedCall(ASK, "{}", "ask-1"))

    stage.endpoint.script(ask_late, text("묻지 못했습니다."), to="물어봐 주세요.")
    stage.visitor.write("물어봐 주세요.")
    expect(stage.button("stop")).to_be_visible()
    stage.visitor.write(QUEUED)
    stage.gate.set()
    expect(_card(stage, "ask-1")).to_be_visible()
    expect(stage.visitor.page.locator(".waiting")).to_contain_text(QUEUED)


def refused(stage: Stage) -> None:
    """The model is told, and then the message goes."""
    _say(stage, "no", "ask-1")
    stage.visitor.wait_for_end(6)
    expect(stage.visitor.turn(5)).to_contain_text("묻지 못했습니다.")
    expect(stage.visitor.turn(6)).to_contain_text(QUEUED)


def stopped(stage: Stage) -> None:
    stage.write("다시 물어봐 주세요.", tools(ScriptedCall(ASK, "{}", "ask-2")))
    expect(_card(stage, "ask-2")).to_be_visible()
    stage.button("stop").click()
    expect(stage.visitor.turn(7)).to_contain_text(stage.words.stopped_empty)
    expect(_card(stage, "ask-2")).to_have_count(0)


def progress_told(stage: Stage) -> None:
    call = ScriptedCall(SLOW, '{"steps": 6000, "seconds": 0.1}', "slow-1")
    stage.write("천천히 해 주세요.", tools(call))
    expect(stage.visitor.page.locator("p.phase")).to_contain_text(re.compile(r"step \d+ of 6000"))


def slow_stopped(stage: Stage) -> None:
    """The server is told that nobody waits any more."""
    stage.button("stop").click()
    stage.visitor.wait_for_end(8)
    stage.endpoint.wait_until(lambda _: noted(stage.folder, "slow")[-1:] == ["cancelled"])
