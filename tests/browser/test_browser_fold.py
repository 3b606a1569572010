from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

STRUCTURED = """<summary>
1. **Task Overview**
   질문 4번: 서버 이전은 10월 4일에, 예산은 420만 원으로 하기로 했다.
2. **Current State**
   - [문서](https://example.com/a_b)와 https://example.com/c, kim@example.com 참고
   - ![그림](https://example.com/x.png)

## Next Steps
트래픽을 옮긴다.
</summary>"""
WORDS = " 접은 글을 볼 이야기입니다."


@pytest.fixture(scope="module")
def long_session(other_server: ChatService) -> str:
    """A chat of 37 turns: twelve summaries, and earlier turns that aren't drawn at first."""
    chat = Chat(other_server)
    chat.ask(1, 37)
    return chat.session_id


def fold_at(visitor: Visitor, turns: str) -> Locator:
    return visitor.page.locator('[class*="st-key-fold_"]').filter(has_text=f"위 {turns}턴은")


def card_of(visitor: Visitor, turns: str) -> Locator:
    return visitor.find("panel").locator('[class*="st-key-card_rail_"]').filter(has_text=f"[{turns}턴 요약]")


def stays_in_view(visitor: Visitor, turn: Locator) -> None:
    visitor.page.wait_for_timeout(2000)  # longer than a jump holds its place
    expect(turn).to_be_in_viewport()


def test_a_card_leads_to_its_turns_and_the_reader_is_left_there(visitor: Visitor, long_session: str) -> None:
    visitor.open(f"?session={long_session}")
    button = card_of(visitor, "31-33").get_by_role("button", name="이 턴으로 가기")
    visitor.note_marks()
    button.focus()
    button.press("Enter")
    visitor.wait_for_marks(*map(visitor.turn, (31, 32, 33)))
    expect(visitor.turn(31)).to_be_focused()
    expect(visitor.turn(31)).to_be_in_viewport()
    stays_in_view(visitor, visitor.turn(31).get_by_test_id("stChatMessage").first)
    expect(visitor.page.locator("[data-marked]")).to_have_count(0)
    visitor.page.mouse.move(500, 300)
    visitor.page.mouse.wheel(0, 400)
    visitor.page.wait_for_timeout(300)
    expect(visitor.turn(31).get_by_test_id("stChatMessage").first).not_to_be_in_viewport()


def test_a_card_shows_earlier_turns_first(visitor: Visitor, long_session: str) -> None:
    visitor.open(f"?session={long_session}")
    expect(visitor.turn(8)).to_be_attached()
    expect(visitor.turn(1)).to_have_count(0)
    panel = visitor.find("panel")
    panel.get_by_text("이전 요약 9개").click()
    panel.get_by_text("[1-3턴]").click()
    visitor.note_marks()
    card_of(visitor, "1-3").get_by_role("button", name="이 턴으로 가기").click()
    visitor.wait_for_marks(*map(visitor.turn, (1, 2, 3)))
    stays_in_view(visitor, visitor.turn(1).get_by_test_id("stChatMessage").first)
    expect(visitor.turn(37)).to_be_attached()


def test_in_the_drawer_a_card_closes_it_and_leads_to_its_turns(phone: Visitor, long_session: str) -> None:
    phone.open(f"?session={long_session}")
    phone.find("open_panel").locator("button").click()
    card = phone.page.get_by_role("dialog").locator('[class*="st-key-card_drawer_"]').filter(has_text="[31-33턴 요약]")
    card.get_by_role("button", name="이 턴으로 가기").click()
    expect(phone.page.get_by_role("dialog")).to_have_count(0)
    stays_in_view(phone, phone.turn(31).get_by_test_id("stChatMessage").first)


def test_a_folds_line_opens_in_place_and_marks_its_card(visitor: Visitor, long_session: str) -> None:
    visitor.open(f"?session={long_session}")
    fold = fold_at(visitor, "34–36")
    expect(fold).not_to_contain_text("대신 보는 글")
    visitor.note_marks()
    fold.locator("summary").click()
    visitor.wait_for_marks(card_of(visitor, "34-36"))
    expect(fold.get_by_text("모델이 34–36턴 대신 보는 글")).to_be_visible()
    expect(fold.get_by_text("모델이 34–36턴 대신 보는 글")).to_be_in_viewport()
    column, opened = visitor.find("chat").bounding_box(), fold.bounding_box()
    assert column is not None
    assert opened is not None
    assert opened["width"] > column["width"] - 2
    stays_in_view(visitor, fold.locator("summary"))
    fold.locator("summary").click()
    expect(fold.locator("details")).not_to_have_attribute("open", "")


def test_an_older_folds_line_opens_what_hides_its_card(visitor: Visitor, long_session: str) -> None:
    visitor.open(f"?session={long_session}")
    visitor.open_statistics()
    fold = fold_at(visitor, "10–12")
    visitor.note_marks()
    fold.locator("summary").click()
    card = card_of(visitor, "10-12")
    visitor.wait_for_marks(card)
    expect(card).to_be_in_viewport()
    expect(fold.get_by_text("모델이 10–12턴 대신 보는 글")).to_be_visible()


def test_on_a_phone_a_folds_line_opens_in_place(phone: Visitor, long_session: str) -> None:
    phone.open(f"?session={long_session}")
    fold = fold_at(phone, "34–36")
    fold.locator("summary").click()
    expect(fold.get_by_text("모델이 34–36턴 대신 보는 글")).to_be_in_viewport()
    stays_in_view(phone, fold.locator("summary"))
    box = fold.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_a_structured_summary_is_shown_as_markdown_without_links(
    visitor: Visitor, other_server: ChatService, fake_openai: FakeOpenAI
) -> None:
    chat = Chat(other_server)
    for number in range(1, 7):
        chat.say(question(number) + WORDS)
        chat.wait_for_folds()
    fake_openai.script(text(STRUCTURED), kind="summary", to=WORDS)
    chat.service.folds.compact(chat.session_id)
    visitor.open(f"?session={chat.session_id}")
    fold = visitor.page.locator('[class*="st-key-fold_"]').filter(has_text="컨텍스트 압축됨")
    fold.locator("summary").click()
    expect(fold.get_by_text("모델이 압축한 대화 대신 보는 글")).to_be_visible()
    for place in (fold, visitor.find("panel").locator('[class*="st-key-card_rail_"]')):
        expect(place.locator("ol > li strong")).to_have_text(["Task Overview", "Current State"])
        expect(place.locator("a, img")).to_have_count(0)
        said = "[문서](https://example.com/a_b)와 https://example.com/c, kim@example.com 참고"
        expect(place.locator("ul > li").first).to_have_text(said)
        size = "element => parseFloat(getComputedStyle(element).fontSize)"
        assert place.locator("h2").evaluate(size) <= place.locator("ol > li").first.evaluate(size)


@pytest.mark.parametrize("who", ["visitor", "phone"])
def test_a_long_message_is_clamped_and_opens_in_place(
    who: str, request: pytest.FixtureRequest, other_server: ChatService
) -> None:
    reader: Visitor = request.getfixturevalue(who)
    chat = Chat(other_server)
    chat.say("짧은 물음입니다. 답해 주세요.\n둘째 줄\n셋째 줄")
    chat.say(" ".join(f"낱말{number}" for number in range(5_000)) + f" 끝말 {who}")
    reader.open(f"?session={chat.session_id}")
    bubble = reader.turn(2).get_by_test_id("stChatMessage").first
    box = bubble.locator('[class*="_question_"]').first
    text_box = bubble.get_by_test_id("stText").first
    line = text_box.evaluate("element => parseFloat(getComputedStyle(element.firstElementChild ?? element).lineHeight)")
    assert 11.5 < box.evaluate("element => element.clientHeight") / line < 12.5
    assert len(text_box.inner_text()) < 2_100
    bubble.get_by_role("button", name="더 보기").click()
    expect(bubble.get_by_role("button", name="줄이기")).to_be_attached()
    expect(text_box).to_contain_text(f"끝말 {who}")
    bubble.get_by_role("button", name="줄이기").click()
    expect(bubble.get_by_role("button", name="더 보기")).to_be_in_viewport()
    expect(text_box).not_to_contain_text("끝말")


def test_a_message_that_fits_a_wide_page_has_no_button_there(
    visitor: Visitor, phone: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.say("이 글은 좁은 화면에서만 열두 줄을 넘습니다. " * 14)
    for reader, count in ((visitor, 0), (phone, 1)):
        reader.open(f"?session={chat.session_id}")
        expect(reader.turn(1)).to_be_visible()
        buttons = reader.turn(1).get_by_role("button", name="더 보기")
        expect(buttons.filter(visible=True)).to_have_count(count)


def test_fenced_code_in_a_message_is_code_and_the_rest_is_as_typed(visitor: Visitor) -> None:
    visitor.open()
    visitor.field.fill("**이것** 보세요\n```nosuchlanguage\nx = <b>1</b>\n```\n[링크](https://a.kr) 입니다")
    visitor.field.press("Enter")
    visitor.wait_for_end(1)
    bubble = visitor.turn(1).get_by_test_id("stChatMessage").first
    expect(bubble.get_by_test_id("stCode").locator("code")).to_have_text("x = <b>1</b>")
    expect(bubble.get_by_test_id("stText")).to_have_text(["**이것** 보세요", "[링크](https://a.kr) 입니다"])
    expect(bubble.locator("a, strong, b")).to_have_count(0)
