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
    """Puts files into the message field, as their chooser does."""
    visitor.find("ask").locator("input[type=file]").first.set_input_files(
        [FilePayload(name=name, mimeType="", buffer=data) for name, data in files]
    )
    wait_for_files(visitor, len(files))


def wait_for_files(visitor: Visitor, count: int) -> None:
    """Waits until Streamlit has taken them, or refused them: till then its field doesn't send."""
    field = visitor.find("ask")
    expect(field.get_by_test_id("stFileChip")).to_have_count(count)
    expect(field.get_by_test_id("stFileChipIconSpinner")).to_have_count(0)


def sent_with(endpoint: FakeOpenAI, asked: str) -> tuple[str, list[Attachment]]:
    """What was typed and the files that went with it, as the model got them."""
    return split_attached(str(endpoint.bodies("chat", to=asked)[-1]["messages"][-1]["content"]))


def large_file_left_behind(stage: Stage) -> None:
    """What is too large says so, isn't sent, and can be taken off the field."""
    asked, field = f"큰 파일 없이 보낸 말 ({stage.words.language})", stage.visitor.find("ask")
    stage.visitor.open()
    expect(field.locator(f"button[aria-label='{stage.words.attachment.attach}']")).to_be_visible()
    attach(stage.visitor, ("large.txt", b"x" * (MAX_BYTES + 1)))
    chip, reason = field.get_by_test_id("stFileChip"), stage.words.attachment.reasons["too_large"]
    expect(chip).to_have_attribute("title", reason)
    expect(chip.get_by_role("alert")).to_have_text(reason)
    stage.visitor.ask(asked)
    assert sent_with(stage.endpoint, asked) == (asked, [])
    field.get_by_role("button", name=stage.words.attachment.remove.format(name="large.txt")).click()
    expect(chip).to_have_count(0)


def files_in_field(stage: Stage) -> None:
    files = (("표.csv", TABLE.encode("cp949")), ("two.pdf", pdf_of("first page", "second page")))
    attach(stage.visitor, *files, ("잠긴 파일.pdf", encrypted_pdf("0000")), ("photo.png", b"\x89PNG\r\n"))


def file_refused(stage: Stage) -> None:
    """What can't be read is named; the words and the other files come back."""
    stage.visitor.write(ASKED)
    for name, reason in (("잠긴 파일.pdf", "encrypted"), ("photo.png", "bad_image")):
        sentence = f"{stage.words.attachment.reasons[reason]} ({name})"
        expect(stage.visitor.find("told")).to_contain_text(sentence)
    expect(stage.visitor.field).to_have_value(ASKED)
    expect(stage.visitor.find("attached")).to_contain_text("표.csv")


def files_sent(stage: Stage) -> None:
    stage.visitor.field.press("Enter")
    stage.visitor.wait_for_end(2)
    files = [("표.csv", TABLE.strip()), ("two.pdf", "— 1 —\nfirst page\n\n— 2 —\nsecond page")]
    assert sent_with(stage.endpoint, ASKED) == (ASKED, files)
    expect(stage.visitor.find("attached")).to_have_count(0)
    expect(stage.visitor.find("told")).not_to_contain_text("photo.png")
    expect(stage.visitor.find("ask").get_by_test_id("stFileChip")).to_have_count(0)
    assert stage.visitor.page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('draft'))") == []


def file_open(stage: Stage) -> None:
    """A file is folded away in its message until somebody opens it."""
    question = stage.visitor.turn(2).get_by_test_id("stChatMessage").first
    expect(question).not_to_contain_text("김민수")
    question.get_by_text("표.csv").click()
    expect(question.get_by_test_id("stCode")).to_contain_text("김민수,3")
