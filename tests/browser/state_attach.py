"""The states of files that are attached to a message."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.attach import attach
from tests.browser.stage import Stage
from tests.fake.pdf import encrypted_pdf


def files_in_field(stage: Stage) -> None:
    stage.visitor.open()
    attach(stage.visitor, ("표.csv", "이름,값\n".encode()), ("잠긴 파일.pdf", encrypted_pdf("0000")))


def file_refused(stage: Stage) -> None:
    stage.visitor.write("첨부한 표를 읽어 주세요.")
    expect(stage.visitor.find("attached")).to_be_visible()


def files_sent(stage: Stage) -> None:
    stage.visitor.field.press("Enter")
    stage.visitor.wait_for_end(1)


def file_open(stage: Stage) -> None:
    question = stage.visitor.turn(1).get_by_test_id("stChatMessage").first
    question.locator("summary").click()
    expect(question.get_by_test_id("stCode")).to_be_visible()
