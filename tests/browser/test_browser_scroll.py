"""Where the page goes by itself: along with an answer, to a turn that somebody asks for, and nowhere else."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat
from tests.fake.openai_reply import ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

LONG = "\n\n".join(f"{number}번째 줄입니다." for number in range(40))
REST = "box => box.scrollHeight - box.clientHeight - box.scrollTop"
LOOKED_UP = ScriptedCall("recall", '{"query": "낙하산"}', "call-recall")


@pytest.fixture(scope="module")
def long_session(other_server: ChatService, endpoint: FakeOpenAI) -> str:
    """A chat of 36 turns, the last of which looked up the second, which alone names the parachute.

    It has twelve summaries, and its earlier turns aren't drawn at first.
    """
    chat = Chat(other_server)
    for number in range(1, 37):
        message = "암호는 낙하산입니다." if number == 2 else f"{number}째 기억할 말입니다. " * 10
        if number == 36:
            message = "암호를 찾아봅시다."
            endpoint.script(tools(LOOKED_UP), text("찾았습니다."), to=message)
        else:
            endpoint.script(text(f"{number}째 기억할 답입니다. " * 10), to=message)
        chat.say(message)
        chat.wait_for_folds()
    return chat.session_id


def rest(visitor: Visitor) -> float:
    return float(visitor.page.locator("#stMain").evaluate(REST))


def wait_for_end_in_view(visitor: Visitor) -> None:
    box = visitor.page.locator("#stMain").element_handle()
    visitor.page.wait_for_function(f"box => ({REST})(box) < 2", arg=box)


def scroll(visitor: Visitor, pixels: int, *, left: int = 500) -> None:
    visitor.page.mouse.move(left, 300)
    visitor.page.mouse.wheel(0, pixels)


def ask_for_long_answers(visitor: Visitor, fake_openai: FakeOpenAI, *asked: str, first: int = 1) -> None:
    for message in asked:
        fake_openai.script(text(LONG), to=message)
    visitor.ask(*asked, first=first)


def pull_down(phone: Visitor, pixels: int) -> None:
    """Moves the page with a finger."""
    screen = phone.context.new_cdp_session(phone.page)
    for y in range(200, 200 + pixels, 10):
        kind = "touchStart" if y == 200 else "touchMove"
        screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": 200, "y": y}]})
    phone.page.wait_for_timeout(100)  # from under a finger that has come to rest, the page doesn't roll on
    screen.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    screen.detach()


def stream_slowly(visitor: Visitor, fake_openai: FakeOpenAI, asked: str) -> None:
    """Asks for an answer of 150 lines and waits for the thirtieth."""
    fake_openai.script(text(*(f"{number}번째 줄입니다.\n\n" for number in range(150)), pause_seconds=0.03), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("30번째 줄입니다.")


def stays_in_view(visitor: Visitor, part: Locator) -> None:
    visitor.page.wait_for_timeout(2000)  # longer than a jump holds its place
    expect(part).to_be_in_viewport()


@pytest.mark.slow
def test_who_scrolls_up_is_left_alone_and_gets_back_by_a_button(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    stream_slowly(visitor, fake_openai, "천천히 길게 답해 주세요.")
    scroll(visitor, -400)
    button = visitor.page.locator("button.to-end")
    expect(button).to_be_visible()
    visitor.wait_for_end(1)
    assert rest(visitor) > 400
    button.click()
    wait_for_end_in_view(visitor)
    expect(button).to_be_hidden()
    scroll(visitor, -1500)
    expect(button).to_be_visible()
    ask_for_long_answers(visitor, fake_openai, "위를 보다가 보내는 물음입니다.", first=2)
    wait_for_end_in_view(visitor)


@pytest.mark.slow
def test_a_message_sent_by_the_button_is_followed_too(phone: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "위를 보다가 단추로 보내는 물음입니다."
    phone.open()
    ask_for_long_answers(phone, fake_openai, "단추로 보내기 전의 물음입니다.")
    scroll(phone, -1500, left=200)
    expect(phone.page.locator("button.to-end")).to_be_visible()
    fake_openai.script(text(LONG), to=asked)
    phone.field.fill(asked)
    phone.find("ask").get_by_test_id("stChatInputSubmitButton").click()
    phone.wait_for_end(2)
    wait_for_end_in_view(phone)


def draw_again(visitor: Visitor) -> None:
    """Moves the page as a turn that is drawn again does: it is shorter for a moment, and the browser moves it up."""
    visitor.turn(2).evaluate(
        """async (turn) => {
            document.querySelector("#stMain").scrollTop -= 300;
            turn.style.paddingBottom = `${40 + (parseFloat(turn.style.paddingBottom) || 0)}px`;
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
        }"""
    )


@pytest.mark.slow
def test_neither_typing_nor_a_way_up_and_back_is_scrolling_away(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    visitor.open()
    ask_for_long_answers(visitor, fake_openai, "글을 쓰며 누릅니다.", "글을 쓰며 또 누릅니다.")
    wait_for_end_in_view(visitor)
    for key in ("a", "Shift", "ArrowUp", "Home"):
        visitor.field.press(key)
        draw_again(visitor)
        wait_for_end_in_view(visitor)
    scroll(visitor, -1500)
    visitor.page.wait_for_function("() => document.documentElement.classList.contains('away-from-end')")
    visitor.page.locator("button.to-end").evaluate("(button) => button.click()")
    draw_again(visitor)
    wait_for_end_in_view(visitor)


@pytest.mark.slow
def test_who_scrolls_back_to_the_end_is_taken_along_again(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    stream_slowly(visitor, fake_openai, "길게 답하는 동안 위로 갔다가 돌아옵니다.")
    scroll(visitor, -400)
    expect(visitor.page.locator("button.to-end")).to_be_visible()
    for number in range(60, 110, 10):  # a line that comes between a wheel and its scroll is a new end
        scroll(visitor, 100_000)
        expect(visitor.turn(1)).to_contain_text(f"{number}번째 줄입니다.")
    visitor.wait_for_end(1)
    wait_for_end_in_view(visitor)


@pytest.mark.slow
def test_who_scrolls_up_with_a_finger_is_left_there(phone: Visitor, fake_openai: FakeOpenAI) -> None:
    stream_slowly(phone, fake_openai, "길게 답하는 동안 손가락으로 올립니다.")
    pull_down(phone, 400)
    expect(phone.page.locator("button.to-end")).to_be_visible()
    top = phone.page.locator("#stMain").evaluate("box => box.scrollTop")
    phone.wait_for_end(1)
    assert rest(phone) > 400
    phone.page.wait_for_function("top => Math.abs(document.querySelector('#stMain').scrollTop - top) <= 2", arg=top)


@pytest.mark.slow
def test_earlier_turns_come_above_what_is_being_read(visitor: Visitor, long_session: str) -> None:
    visitor.open(f"?session={long_session}")
    wait_for_end_in_view(visitor)
    seventh = visitor.turn(7)
    scroll(visitor, -100_000)
    visitor.page.wait_for_function("turn => turn.getBoundingClientRect().top > 0", arg=seventh.element_handle())
    before = seventh.evaluate("turn => turn.getBoundingClientRect().top")
    visitor.find("earlier").locator("button").click()
    expect(visitor.turn(1)).to_be_attached()
    visitor.settle()
    visitor.page.wait_for_function(
        "(top) => Math.abs(document.querySelector('.st-key-turn_7').getBoundingClientRect().top - top) <= 2", arg=before
    )


@pytest.mark.slow
def test_a_card_shows_earlier_turns_first_and_a_folds_line_opens_what_hides_its_card(
    visitor: Visitor, long_session: str
) -> None:
    visitor.open(f"?session={long_session}")
    visitor.open_statistics()
    fold = visitor.page.locator('[class*="st-key-fold_"]').filter(has_text="위 10-12턴은")
    cards = visitor.find("panel").locator('[class*="st-key-card_"]')
    visitor.note_marks()
    fold.locator("summary").click()
    card = cards.filter(has_text="[10-12턴 요약]")
    visitor.wait_for_marks(card)
    expect(card).to_be_in_viewport()
    expect(fold.get_by_text("모델이 10-12턴 대신 보는 내용")).to_be_visible()
    expect(visitor.turn(1)).to_have_count(0)
    expect(visitor.page.locator("[data-marked]")).to_have_count(0)
    visitor.find("panel").get_by_text("[1-3턴]").click()
    visitor.note_marks()
    cards.filter(has_text="[1-3턴 요약]").get_by_role("button", name="이 턴으로 이동").click()
    visitor.wait_for_marks(*map(visitor.turn, (1, 2, 3)))
    stays_in_view(visitor, visitor.turn(1).get_by_test_id("stChatMessage").first)
    expect(visitor.turn(36)).to_be_attached()
    visitor.page.mouse.move(500, 300)
    visitor.page.mouse.wheel(0, 1000)
    expect(visitor.turn(1).get_by_test_id("stChatMessage").first).not_to_be_in_viewport()


@pytest.mark.slow
def test_a_turn_that_was_looked_up_is_gone_to_also_while_an_answer_streams(
    visitor: Visitor, long_session: str, fake_openai: FakeOpenAI
) -> None:
    visitor.open(f"?session={long_session}")
    expect(visitor.turn(36).locator(".recalled")).to_have_text("이전 대화 참조: 2턴")
    fake_openai.script(tools(LOOKED_UP), hang("그 암호는 "), to="암호를 또 찾아봅시다.")
    visitor.write("암호를 또 찾아봅시다.")
    expect(visitor.find("streaming")).to_contain_text("그 암호는")
    line = visitor.turn(37).locator(".recalled")
    expect(line).to_have_text("이전 대화 참조: 2턴")
    expect(visitor.turn(2)).to_have_count(0)
    line.get_by_role("button", name="2턴으로 이동", exact=True).click()
    stays_in_view(visitor, visitor.turn(2))
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(37)
    expect(line).to_have_text("이전 대화 참조: 2턴")


MARKED = "name => [...CSS.highlights.get(name) ?? []].map(String)"


@pytest.mark.slow
def test_words_are_found_in_turns_that_are_not_drawn_and_marked_there(
    visitor: Visitor, long_session: str, other_server: ChatService
) -> None:
    # Other tests go on with the chat, with the same words: here is one of its own.
    visitor.open(f"?session={other_server.turns.fork(long_session, after_turn=36)}")
    expect(visitor.turn(2)).to_have_count(0)
    visitor.page.keyboard.press("Control+Shift+F")
    field, at = visitor.find("find").locator("input"), visitor.find("find").locator(".at")
    expect(field).to_be_focused()
    expect(at).to_have_text("– / 36")
    field.press_sequentially("암호가")
    field.press("Enter")  # waits for the list of these words, and begins at the end, which is in view
    expect(at).to_have_text("2 / 2")
    visitor.page.wait_for_function(f"() => String(({MARKED})('found-here')) === '암호'")
    field.press("Enter")
    expect(visitor.turn(2)).to_be_in_viewport()
    expect(at).to_have_text("1 / 2")
    assert visitor.page.evaluate(MARKED, "found-here") == ["암호"]
    assert "암호" in visitor.page.evaluate(MARKED, "found")
    expect(field).to_be_focused()
    visitor.find("find").get_by_role("button", name="이전").click()
    expect(at).to_have_text("2 / 2")
    expect(visitor.turn(36)).to_be_in_viewport()
    field.fill("")
    places = visitor.find("find").locator("button.place")
    expect(places).to_have_count(36)
    places.nth(19).click()
    expect(visitor.turn(20)).to_be_focused()
    expect(visitor.turn(20)).to_be_in_viewport()
    visitor.page.keyboard.press("Alt+ArrowDown")
    expect(visitor.turn(21)).to_be_focused()
    visitor.page.keyboard.press("Alt+ArrowUp")
    expect(visitor.turn(20)).to_be_focused()
    field.press("Escape")
    expect(visitor.every("find")).to_have_count(0)
    expect(visitor.turn(20)).to_be_focused()


@pytest.mark.slow
def test_each_hit_of_a_turn_is_a_step_and_the_sidebar_marks_what_it_found(
    visitor: Visitor, fake_openai: FakeOpenAI
) -> None:
    asked, last = "우산이 있나요?", "우산 하나 더요."
    fake_openai.script(text("우산은 셋입니다.\n\n" + "사이 줄입니다.\n\n" * 60 + "우산의 끝입니다."), to=asked)
    fake_openai.script(text("네."), to=last)
    visitor.open().ask(asked, "비가 오나요?", last)
    visitor.page.keyboard.press("Control+Shift+F")
    field, at = visitor.find("find").locator("input"), visitor.find("find").locator(".at")
    field.fill("우산이")
    seen = []
    for told in ("4 / 4", "1 / 4", "2 / 4", "3 / 4"):
        field.press("Enter")
        expect(at).to_have_text(told)
        assert [word[:2] for word in visitor.page.evaluate(MARKED, "found-here")] == ["우산"]
        seen.append(visitor.page.evaluate("() => [...CSS.highlights.get('found-here')][0].startContainer.data[2]"))
        assert visitor.page.evaluate(
            "() => [...CSS.highlights.get('found-here')][0].getBoundingClientRect().top < innerHeight"
        )
    assert seen == [" ", "이", "은", "의"]
    expect(visitor.page.locator("[data-marked]")).to_have_count(0)
    field.press("Shift+Enter")
    expect(at).to_have_text("2 / 4")
    field.press("Escape")
    visitor.find("search").locator("input").fill("우산이")
    expect(visitor.page.locator("[class*='st-key-found_'] button")).to_contain_text("우산")
    visitor.page.wait_for_function(f"() => String(({MARKED})('found')) === '우산'")


@pytest.mark.slow
def test_a_line_that_was_found_leads_to_its_turn_again_and_again(visitor: Visitor, long_session: str) -> None:
    visitor.open()
    visitor.find("search").locator("input").fill("낙하산")
    line = visitor.find(f"found_{long_session}").get_by_role("button")
    expect(line).to_contain_text("2턴: 암호는 낙하산입니다.")
    line.click()
    expect(visitor.turn(2)).to_be_in_viewport()
    assert visitor.session_id == long_session
    visitor.page.wait_for_function(f"() => String(({MARKED})('found-here')) === '낙하산'")
    expect(visitor.find("find").locator("input")).to_have_value("낙하산")
    stays_in_view(visitor, visitor.turn(2))
    visitor.turn(2).hover()
    visitor.page.mouse.wheel(0, 5_000)
    expect(visitor.turn(2)).not_to_be_in_viewport()
    line.click()
    expect(visitor.turn(2)).to_be_in_viewport()
