from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI

HEAD = "| " + " | ".join(f"아주긴열이름{number}" for number in range(9)) + " |"
WIDE = f"""{HEAD}
|{"---|" * 9}
{HEAD}

```python
def 함수():
    return "{"가나다 " * 60}"
```

끝 `{"x" * 150}` 말

مرحبا بالعالم
"""


@pytest.mark.parametrize("who", ["phone", "visitor"])
def test_wide_tables_and_code_scroll_inside_themselves(
    who: str, request: pytest.FixtureRequest, fake_openai: FakeOpenAI
) -> None:
    visitor: Visitor = request.getfixturevalue(who)
    asked = f"넓은 표와 코드를 보여 주세요, {who}."
    fake_openai.script(text(WIDE), to=asked)
    visitor.open()
    visitor.ask(asked)
    turn = visitor.turn(1)
    expect(turn.locator("pre code")).to_be_visible()
    for part in (turn.locator("table"), turn.get_by_test_id("stCode").locator("pre")):
        assert part.evaluate("part => part.scrollWidth > part.clientWidth")
        assert part.evaluate("part => part.getBoundingClientRect().right <= innerWidth")
    scroller = visitor.page.locator("#stMain")
    assert scroller.evaluate("box => box.scrollWidth === box.clientWidth")
    table = turn.locator("table")
    expect(table.locator("td").first).to_have_css("word-break", "keep-all")
    expect(table).to_have_attribute("tabindex", "0")
    table.focus()
    expect(table).to_be_focused()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.wait_for_function("table => table.scrollLeft > 0", arg=table.element_handle())
    assert turn.locator("p", has_text="مرحبا").evaluate("p => getComputedStyle(p).unicodeBidi") == "plaintext"


@pytest.mark.parametrize(("who", "title"), [("visitor", "각주"), ("english", "Footnotes")])
def test_footnotes_have_a_small_title_in_the_language_of_the_page(
    who: str, title: str, request: pytest.FixtureRequest, fake_openai: FakeOpenAI
) -> None:
    visitor: Visitor = request.getfixturevalue(who)
    asked = f"각주를 하나 달아 주세요, {who}."
    fake_openai.script(text("## 제목\n\n본문[^1]입니다.\n\n[^1]: 7쪽"), to=asked)
    visitor.open()
    visitor.ask(asked)
    small = visitor.turn(1).get_by_role("heading", name=title, exact=True)
    large = visitor.turn(1).get_by_role("heading", name="제목", exact=True)
    expect(small).to_have_text(title)
    size = "heading => parseFloat(getComputedStyle(heading).fontSize)"
    assert small.evaluate(size) < large.evaluate(size)


def test_the_focus_ring_of_a_row_lies_inside_it(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("초점 테두리를 볼 대화입니다.")
    visitor.settle()  # the script that hears of the new chat takes the focus from the sidebar
    row, menu = (visitor.find(f"{part}_{visitor.session_id}").locator("button") for part in ("session", "menu"))
    row.focus()
    for key, button in (("Tab", menu), ("Shift+Tab", row)):
        visitor.page.keyboard.press(key)
        expect(button).to_be_focused()
        expect(button).to_have_css("opacity", "1")
        expect(button).to_have_css("outline-style", "solid")
        width, offset = (
            float(button.evaluate(f"button => parseFloat(getComputedStyle(button).outline{part})"))
            for part in ("Width", "Offset")
        )
        assert 0 < width <= -offset


@pytest.mark.parametrize("width", [390, 768])
def test_on_a_phone_a_choice_in_the_sidebar_shows_what_was_chosen(phone: Visitor, width: int) -> None:
    phone.page.set_viewport_size({"width": width, "height": 844})
    phone.open()
    phone.ask("전화기에서 고를 대화입니다.")
    sidebar = phone.page.get_by_test_id("stSidebar")
    session = phone.find(f"session_{phone.session_id}").locator("button")
    for choice in (phone.find("new_chat").locator("button"), session):
        phone.page.get_by_test_id("stExpandSidebarButton").click()
        expect(sidebar).to_have_attribute("data-collapsed", "false")
        choice.click()
        expect(sidebar).to_have_attribute("data-collapsed", "true")
    expect(phone.turn(1)).to_be_in_viewport()


def test_the_empty_page_begins_with_its_title(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 640, "height": 400})
    visitor.open()
    expect(visitor.find("empty").get_by_role("heading")).to_be_in_viewport()


def test_a_notice_covers_nothing_of_the_panel(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("압축할 것이 없는 대화입니다.")
    visitor.write("/compact")
    # It slides in from the right, and goes by itself.
    visitor.page.wait_for_function(
        """() => {
            const boxOf = (part) => document.querySelector(part)?.getBoundingClientRect();
            return boxOf("[data-testid='stToast']")?.right <= boxOf(".st-key-panel").left;
        }"""
    )


def test_print_has_the_chat_alone(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "인쇄할 긴 답을 주세요."
    fake_openai.script(text("\n\n".join(f"{number}번째 줄입니다." for number in range(80))), to=asked)
    visitor.open()
    visitor.ask(asked)
    visitor.page.emulate_media(media="print")
    for hidden in ("stSidebar", "stHeader", "stBottom"):
        expect(visitor.page.get_by_test_id(hidden)).to_be_hidden()
    expect(visitor.find("panel")).to_be_hidden()
    expect(visitor.page.get_by_test_id("stMainBlockContainer")).to_have_css("padding-right", "0px")
    # The whole chat is on paper, not the part that was in view.
    assert visitor.page.evaluate("document.documentElement.scrollHeight") > 2500
    visitor.page.emulate_media(media="screen")


def test_turns_have_numbers_and_folded_ones_are_dimmed_until_read(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 5)
    visitor.open(f"?session={chat.session_id}")
    for number in range(1, 6):  # the page's script numbers them a moment after they are drawn
        expect(visitor.turn(number)).to_have_attribute("data-turn", str(number))
    numbers = visitor.page.locator('[class*="st-key-turn_"]')
    assert numbers.evaluate_all("turns => turns.map(turn => getComputedStyle(turn, '::before').content)") == [
        f'"{number}"' for number in range(1, 6)
    ]
    rule = "turn => getComputedStyle(turn, '::after').width"
    assert [visitor.turn(number).evaluate(rule) for number in (2, 4)] == ["2px", "auto"]
    answers = [visitor.turn(number).get_by_test_id("stChatMessage").last for number in (3, 4)]
    dimmed = "message => getComputedStyle(message).opacity < 0.9"
    visitor.page.wait_for_function(dimmed, arg=answers[0].element_handle())  # it gets dim by and by
    assert not answers[1].evaluate(dimmed)
    answers[0].hover()
    visitor.page.wait_for_function(f"message => !({dimmed})(message)", arg=answers[0].element_handle())


@pytest.mark.parametrize("locale", ["ko-KR", "en-US"])
def test_on_a_phone_the_share_of_the_context_stands_beside_what_stops_the_answer(
    chromium: Browser, address: str, fake_openai: FakeOpenAI, locale: str
) -> None:
    asked = f"좁은 곳에서 쓰는 답을 기다립니다 {locale}"
    fake_openai.script(hang("첫 문장입니다. "), to=asked)
    with visiting(chromium, address, locale=locale, viewport={"width": 390, "height": 844}, has_touch=True) as phone:
        phone.open()
        phone.write(asked)
        stop = phone.find("stop").locator("button")
        expect(stop).to_be_visible()
        phone.page.wait_for_function(
            """(stop) => document.querySelector(".gauge b").getBoundingClientRect().right
                <= stop.getBoundingClientRect().left""",
            arg=stop.element_handle(),
        )
        stop.click()
        phone.wait_for_end(1)


@pytest.mark.parametrize("locale", ["ko-KR", "en-US"])
def test_on_a_phone_the_line_of_a_fold_shows_that_it_opens(
    chromium: Browser, address: str, other_server: ChatService, locale: str
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    with visiting(chromium, address, locale=locale, viewport={"width": 390, "height": 844}, has_touch=True) as phone:
        phone.open(f"?session={chat.session_id}")
        line = phone.page.locator('[class*="st-key-fold_"] summary')
        for sign in ("stExpanderIcon", "stIconMaterial"):
            expect(line.get_by_test_id(sign)).to_be_in_viewport(ratio=1)
