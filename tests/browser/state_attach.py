"""The states of files that are attached to a message."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import FilePayload, expect

from graph.attachment import MAX_BYTES, Attachment, split_attached
from tests.browser.stage import Stage
from tests.browser.visitor import Visitor
from tests.fake.openai_server import FakeOpenAI
from tests.fake.pdf import encrypted_pdf, pdf_of

ASKED: Final = "첨부한 표를 읽어 주세요."
TABLE: Final = "이름,값\n```\n김민수,3\n"


def attach(visitor: Visitor, *files: tuple[str, bytes]) -> None:
    """Chooses files for the next message, and waits until each was read or refused."""
    choose(visitor, *files)
    wait_for_files(visitor, len(files))


def choose(visitor: Visitor, *files: tuple[str, bytes]) -> None:
    with visitor.page.expect_file_chooser() as chooser:
        visitor.page.locator("button.attach").click()
    chooser.value.set_files([FilePayload(name=name, mimeType="", buffer=data) for name, data in files])


def wait_for_files(visitor: Visitor, count: int) -> None:
    expect(visitor.page.locator('[class*="st-key-icon_detach_"], p.refused')).to_have_count(count)


def sent_with(endpoint: FakeOpenAI, asked: str) -> tuple[str, list[Attachment]]:
    """What was typed and the files that went with it, as the model got them."""
    return split_attached(str(endpoint.bodies("chat", to=asked)[-1]["messages"][-1]["content"]))


def large_file_left_behind(stage: Stage) -> None:
    """What is clear isn't even uploaded: it says why, isn't sent, and doesn't hold up the message."""
    asked = f"큰 파일 없이 보낸 말 ({stage.words.language})"
    stage.visitor.open()
    expect(stage.visitor.page.get_by_role("button", name=stage.words.attachment.attach)).to_be_visible()
    names = {"large.txt": "too_large", "회의록.hwp": "hwp", "nothing.txt": "empty"}
    attach(stage.visitor, ("large.txt", b"x" * (MAX_BYTES + 1)), ("회의록.hwp", b"x"), ("nothing.txt", b""))
    sentences = [f"{name} {stage.words.attachment.reasons[reason]}" for name, reason in names.items()]
    expect(stage.visitor.page.get_by_role("alert").filter(visible=True)).to_have_text(sentences)
    stage.visitor.ask(asked)
    assert sent_with(stage.endpoint, asked) == (asked, [])
    expect(stage.visitor.page.locator("p.refused")).to_have_count(0)


def files_chosen(stage: Stage) -> None:
    """What can't be read says why at once; nothing of what is being written is lost."""
    stage.visitor.field.fill(ASKED)
    files = (("표.csv", TABLE.encode("cp949")), ("two.pdf", pdf_of("first page", "second page")))
    attach(stage.visitor, *files, ("잠긴 파일.pdf", encrypted_pdf("0000")), ("photo.png", b"\x89PNG\r\n"))
    for name, reason in (("잠긴 파일.pdf", "encrypted"), ("photo.png", "bad_image")):
        sentence = f"{name} {stage.words.attachment.reasons[reason]}"
        expect(stage.visitor.page.get_by_role("alert").filter(has_text=name)).to_have_text(sentence)
    expect(stage.visitor.field).to_have_value(ASKED)
    if not stage.is_narrow:  # there a keyboard would open
        expect(stage.visitor.field).to_be_focused()
    expect(stage.visitor.find("attached")).to_contain_text("표.csv")


def refused_file_removed(stage: Stage) -> None:
    remove = stage.words.attachment.remove.format(name="photo.png")
    stage.visitor.find("told").get_by_role("button", name=remove).click()
    expect(stage.visitor.page.locator("p.refused")).to_have_count(1)


def files_sent(stage: Stage) -> None:
    stage.visitor.field.press("Enter")
    stage.visitor.wait_for_end(2)
    files = [("표.csv", TABLE.strip()), ("two.pdf", "— 1 —\nfirst page\n\n— 2 —\nsecond page")]
    assert sent_with(stage.endpoint, ASKED) == (ASKED, files)
    expect(stage.visitor.find("attached")).to_have_count(0)
    expect(stage.visitor.page.locator("p.refused")).to_have_count(0)
    assert stage.visitor.page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('draft'))") == []


def file_open(stage: Stage) -> None:
    """A file is folded away in its message until somebody opens it."""
    question = stage.visitor.turn(2).get_by_test_id("stChatMessage").first
    expect(question).not_to_contain_text("김민수")
    question.get_by_text("표.csv").click()
    expect(question.get_by_test_id("stCode")).to_contain_text("김민수,3")
