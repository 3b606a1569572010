from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from graph.attachment import MAX_BYTES, split_attached
from tests.browser.attach import attach, wait_for_files
from tests.browser.conftest import visiting
from tests.browser.stage import LOOKS, words_in
from tests.browser.test_browser_sent import begin_answer
from tests.browser.visitor import Visitor
from tests.fake.openai_server import FakeOpenAI
from tests.fake.pdf import encrypted_pdf, pdf_of

TABLE: Final = "이름,값\n```\n김민수,3\n"
WIDTHS: Final = {"1280": {}, "390": {"viewport": {"width": 390, "height": 844}, "has_touch": True}}


def sent_words(fake_openai: FakeOpenAI, asked: str) -> str:
    return str(fake_openai.bodies("chat", to=asked)[-1]["messages"][-1]["content"])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("locale", ["ko-KR", "en-US"])
def test_a_file_goes_with_the_message_and_folds_away(
    width: str, locale: str, chromium: Browser, address: str, fake_openai: FakeOpenAI
) -> None:
    asked = f"첨부한 표를 읽어 주세요 {width} {locale}"
    with visiting(chromium, address, locale=locale, **WIDTHS[width]) as visitor:
        visitor.open()
        attach(visitor, ("표.csv", TABLE.encode("cp949")), ("two.pdf", pdf_of("first page", "second page")))
        visitor.ask(asked)
        typed, files = split_attached(sent_words(fake_openai, asked))
        assert typed == asked
        assert files == [("표.csv", TABLE.strip()), ("two.pdf", "— 1 —\nfirst page\n\n— 2 —\nsecond page")]
        question = visitor.turn(1).get_by_test_id("stChatMessage").first
        expect(question).not_to_contain_text("김민수")
        question.get_by_text("표.csv").click()
        expect(question.get_by_test_id("stCode")).to_contain_text("김민수,3")
        expect(visitor.find("ask").get_by_test_id("stFileChip")).to_have_count(0)
        assert visitor.page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('draft'))") == []


def test_files_alone_are_a_message(visitor: Visitor) -> None:
    visitor.open()
    attach(visitor, ("note.md", "# 메모\n내일까지".encode()))
    visitor.field.press("Enter")
    visitor.wait_for_end(1)
    expect(visitor.turn(1).get_by_test_id("stChatMessage").first.get_by_text("note.md")).to_be_visible()


@pytest.mark.parametrize("look", LOOKS)
def test_a_file_that_cant_be_read_is_named_and_the_words_come_back(
    look: str, chromium: Browser, address: str, fake_openai: FakeOpenAI
) -> None:
    words, asked = words_in(look), f"두 파일을 비교해 주세요 {look}"
    with visiting(chromium, address, **LOOKS[look]) as visitor:
        visitor.open()
        attach(visitor, ("good.txt", b"text"), ("locked.pdf", encrypted_pdf("0000")), ("photo.png", b"\x89PNG\r\n"))
        visitor.write(asked)
        told = visitor.find("told")
        expect(told).to_contain_text(f"{words.attachment.reasons['encrypted']} (locked.pdf)")
        expect(told).to_contain_text(f"{words.attachment.reasons['kind']} (photo.png)")
        expect(visitor.field).to_have_value(asked)
        expect(visitor.find("attached")).to_contain_text("good.txt")
        visitor.field.press("Enter")
        visitor.wait_for_end(1)
        assert split_attached(sent_words(fake_openai, asked)) == (asked, [("good.txt", "text")])
        expect(visitor.find("attached")).to_have_count(0)
        expect(told).not_to_contain_text("locked.pdf")


def test_a_file_is_kept_while_the_chat_is_busy_and_can_be_removed(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    begin_answer(visitor, fake_openai, "파일을 기다리게 하는 답")
    attach(visitor, ("a.txt", b"first"), ("b.txt", b"second"))
    visitor.write("파일과 함께 기다릴 말")
    expect(visitor.field).to_have_value("파일과 함께 기다릴 말")
    visitor.find("detach_0").locator("button").click()
    expect(visitor.find("attached")).not_to_contain_text("a.txt")
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(1)
    visitor.field.press("Enter")
    visitor.wait_for_end(2)
    assert split_attached(sent_words(fake_openai, "파일과 함께 기다릴 말"))[1] == [("b.txt", "second")]


def test_a_file_taken_off_the_field_isnt_sent(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    visitor.open()
    attach(visitor, ("a.txt", b"first"))
    visitor.find("ask").get_by_role("button", name="a.txt 빼기").click()
    expect(visitor.find("ask").get_by_test_id("stFileChip")).to_have_count(0)
    visitor.ask("파일 없이 보낸 말")
    assert split_attached(sent_words(fake_openai, "파일 없이 보낸 말"))[1] == []


def test_an_enter_that_ends_a_syllable_hands_no_file_over(visitor: Visitor) -> None:
    visitor.open()
    attach(visitor, ("a.txt", b"first"))
    visitor.field.fill("아직 쓰는 중")
    visitor.field.evaluate(
        """(field) => field.dispatchEvent(
            new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, isComposing: true }))"""
    )
    assert visitor.field.input_value() == "아직 쓰는 중"
    expect(visitor.find("ask").get_by_test_id("stFileChip")).to_have_count(1)


# What a browser with much to do does.
LATE_TIMERS = """
const early = window.setTimeout;
window.setTimeout = (act, milliseconds = 0, ...rest) => early(act, milliseconds + 300, ...rest);
"""


@pytest.mark.parametrize("hurry", ["", LATE_TIMERS], ids=["idle", "busy"])
def test_what_is_typed_while_a_file_is_read_stays(visitor: Visitor, fake_openai: FakeOpenAI, hurry: str) -> None:
    visitor.page.add_init_script(hurry)
    visitor.open()
    attach(visitor, ("pages.pdf", pdf_of(*["page"] * 40)))
    visitor.write("먼저 보낸 말")
    visitor.field.press_sequentially("다음 말")
    visitor.wait_for_end(1)
    expect(visitor.field).to_have_value("다음 말")
    assert split_attached(sent_words(fake_openai, "먼저 보낸 말"))[1][0].name == "pages.pdf"


def test_the_field_speaks_the_language_of_the_page(visitor: Visitor, english: Visitor) -> None:
    for one, name in ((visitor, "파일 첨부"), (english, "Attach files")):
        one.open()
        expect(one.find("ask").locator(f"button[aria-label='{name}']")).to_be_visible()


@pytest.mark.parametrize("look", LOOKS)
def test_a_file_that_is_too_large_says_so_and_stays_behind(
    look: str, chromium: Browser, address: str, fake_openai: FakeOpenAI
) -> None:
    words, asked = words_in(look), f"큰 파일 없이 보낸 말 {look}"
    with visiting(chromium, address, **LOOKS[look]) as visitor:
        visitor.open()
        attach(visitor, ("large.txt", b"x" * (MAX_BYTES + 1)))
        chip = visitor.find("ask").get_by_test_id("stFileChip")
        expect(chip).to_have_attribute("title", words.attachment.reasons["too_large"])
        expect(chip.get_by_role("alert")).to_have_text(words.attachment.reasons["too_large"])
        visitor.ask(asked)
        assert split_attached(sent_words(fake_openai, asked)) == (asked, [])


def test_what_is_dropped_on_the_field_is_attached(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    visitor.open()
    dragged = visitor.page.evaluate_handle(
        """() => {
            const dragged = new DataTransfer();
            dragged.items.add(new File(["dropped text"], "dropped.md", { type: "text/markdown" }));
            return dragged;
        }"""
    )
    visitor.field.dispatch_event("dragover", {"dataTransfer": dragged})
    hint = visitor.find("ask").get_by_text(words_in("light, Korean, 1280").attachment.drop)
    expect(hint).to_be_visible()
    target = visitor.find("ask").locator("[role=presentation]").first
    target.dispatch_event("drop", {"dataTransfer": dragged})
    wait_for_files(visitor, 1)
    visitor.ask("놓은 파일")
    assert split_attached(sent_words(fake_openai, "놓은 파일"))[1] == [("dropped.md", "dropped text")]
