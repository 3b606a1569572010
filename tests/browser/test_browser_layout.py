"""Where things stand and how large they are: on a wide page, on a phone and on paper."""

from __future__ import annotations

from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, expect

from graph.service import ChatService
from tests.browser.axe import violations
from tests.browser.conftest import visiting
from tests.browser.state_attach import attach
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
ARABIC = "مرحبا!\n" + "كلمات كثيرة في سطر واحد " * 3
FROM_THE_RIGHT = """(part) => {
    const line = document.createRange();
    line.setStart(document.createTreeWalker(part, NodeFilter.SHOW_TEXT).nextNode(), 0);
    line.setEnd(line.startContainer, 1);
    return part.getBoundingClientRect().right - line.getBoundingClientRect().right;
}"""


# The message box is as wide as the text.
COLUMN = "[data-testid='stBottomBlockContainer'] > [data-testid='stVerticalBlock']"
BOX = "part => { const { x, y, right, bottom } = part.getBoundingClientRect(); return [x, y, right, bottom]; }"
# Where the words of a button begin, whatever stands in front of them.
# How far a button and the ring around it lie inside what cuts them off.
ROOM_FOR_RING = """(button) => {
    let box = button.parentElement;
    while (getComputedStyle(box).overflowX === "visible") box = box.parentElement;
    const ring = button.getBoundingClientRect();
    const edge = box.getBoundingClientRect();
    return Math.min(ring.left - edge.left, edge.right - ring.right);
}"""


def box_of(part: Locator) -> list[int]:
    """Returns where a part begins and ends, to the pixel."""
    return [round(place) for place in part.evaluate(BOX)]


COMPOSER = '[data-testid="stBottomBlockContainer"] > [data-testid="stVerticalBlock"]'
NOTE_PANEL = """
window.panels = [];
const look = () => {
    const panel = document.querySelector(".st-key-panel");
    const { display, position } = panel ? getComputedStyle(panel) : {};
    if (position === "fixed" && !window.panels.includes(display)) window.panels.push(display);
    requestAnimationFrame(look);
};
look();
"""


@pytest.mark.slow
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


@pytest.mark.slow
def test_code_says_its_language_and_can_be_copied_from_its_middle_in_the_pages_language(
    visitor: Visitor, fake_openai: FakeOpenAI
) -> None:
    asked = "긴 코드를 보여 주세요."
    code = "".join(f"값{number} = {number}\n" for number in range(80))
    fake_openai.script(text(f"```python\n{code}```"), to=asked)
    visitor.open()
    visitor.ask(asked)
    block = visitor.turn(1).get_by_test_id("stCode")
    label = "code => getComputedStyle(code, '::before').content"
    assert block.locator("code").evaluate(label).startswith('"language-python"')
    visitor.page.locator("#stMain").evaluate("box => box.scrollTo(0, box.scrollHeight / 2)")
    names = ["줄 바꿈", "코드 내려받기", "코드 복사"]
    for name in names:
        expect(block.get_by_role("button", name=name, exact=True)).to_be_in_viewport()
    assert (
        block.get_by_role("button").evaluate_all("buttons => buttons.map(button => button.title || button.ariaLabel)")
        == names
    )
    block.get_by_role("button", name="코드 복사").hover()
    expect(visitor.page.get_by_test_id("stTooltipContent")).to_have_text("코드 복사")


def test_high_contrast_shows_the_gauge_the_slider_and_the_bubbles(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    visitor.page.emulate_media(forced_colors="active")
    visitor.open(f"?session={chat.session_id}")
    for part in (
        visitor.find("bar").locator(".track > span"),
        visitor.page.get_by_role("slider").locator("xpath=../.."),
    ):
        expect(part).to_have_css("forced-color-adjust", "none")
    bubble = visitor.turn(1).get_by_test_id("stChatMessage").first
    assert bubble.evaluate("part => getComputedStyle(part).borderTopWidth") == "1px"


def test_a_wide_page_keeps_the_panel_in_view_and_dims_folded_turns_until_they_are_read(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 5)
    visitor.open(f"?session={chat.session_id}")
    expect(visitor.find("open_panel")).to_be_hidden()
    box = visitor.find("panel").bounding_box()
    assert box is not None
    assert (box["y"], box["height"], box["x"] + box["width"]) == (0, 800, 1280)
    assert box_of(visitor.page.locator(COMPOSER))[3] == 800 - 16
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
    visitor.page.set_viewport_size({"width": 1280, "height": 400})
    visitor.find("panel").evaluate("panel => panel.scrollTo(0, panel.scrollHeight)")
    for shown in (visitor.find("panel").get_by_role("tab").first, visitor.page.locator("button.close-panel")):
        shown.click(trial=True)  # nothing that scrolls lies over it
        assert shown.evaluate("part => part.getBoundingClientRect().top") < 40


def test_a_closed_panel_stays_closed_and_the_text_keeps_its_width(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    visitor.open(f"?session={chat.session_id}")
    page, panel, text_column = visitor.page, visitor.find("panel"), visitor.find("chat")
    opener = visitor.find("open_panel").locator("button")
    panel.get_by_role("button", name="패널 닫기").click()
    expect(opener).to_be_focused()
    page.add_init_script(NOTE_PANEL)
    page.reload()
    visitor.settle()
    expect(opener).to_be_visible()
    assert page.evaluate("window.panels") == ["none"]  # also while the page was drawn
    page.set_viewport_size({"width": 1440, "height": 800})
    expect(text_column).to_have_css("width", f"{46 * 16}px")
    opener.click()
    expect(page.get_by_role("region", name="요약 패널")).to_be_focused()
    page.set_viewport_size({"width": 1100, "height": 800})  # too narrow for the panel, 32 rem and the sidebar
    expect(panel).to_be_hidden()
    expect(text_column).to_have_css("width", f"{46 * 16}px")
    opener.click()
    expect(page.get_by_role("dialog", name="요약 패널")).to_be_focused()
    page.mouse.click(400, 400)
    expect(opener).to_be_focused()
    page.set_viewport_size({"width": 1210, "height": 800})
    expect(page.get_by_role("region", name="요약 패널")).to_be_visible()
    assert text_column.evaluate("text => text.clientWidth >= 31 * 16")


@pytest.mark.parametrize("width", [390, pytest.param(768, marks=pytest.mark.slow)])
def test_on_a_phone_a_choice_in_the_sidebar_shows_what_was_chosen(phone: Visitor, width: int) -> None:
    phone.page.set_viewport_size({"width": width, "height": 844})
    phone.open()
    phone.ask("전화기에서 고를 대화입니다.")
    sidebar = phone.page.get_by_test_id("stSidebar")
    session = phone.find(f"session_{phone.session_id}").locator("button:visible")
    for choice in (phone.find("new_chat").locator("button"), session):
        phone.page.get_by_test_id("stExpandSidebarButton").click()
        expect(sidebar).to_have_attribute("data-collapsed", "false")
        choice.click()
        expect(sidebar).to_have_attribute("data-collapsed", "true")
    expect(phone.turn(1)).to_be_in_viewport()


@pytest.mark.parametrize("who", ["visitor", "phone"])
def test_files_field_and_bar_are_rows_of_one_box(who: str, request: pytest.FixtureRequest) -> None:
    visitor: Visitor = request.getfixturevalue(who)
    visitor.open()
    picture = BytesIO()
    Image.new("RGB", (300, 200)).save(picture, "PNG")
    files = [
        ("긴 이름의 보고서 2026-10.txt", b"x" * 900),
        ("그림.png", picture.getvalue()),
        *((f"{n}.txt", b"x") for n in "abc"),
    ]
    attach(visitor, *files)
    box, field = visitor.page.locator(COMPOSER), visitor.page.locator(".st-key-ask [data-testid='stChatInput'] > div")
    rows = [box_of(visitor.find(key)) for key in ("attached", "ask", "bar")]
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)
    left, top, right, bottom = box_of(box)
    assert all(left < row[0] <= row[2] < right and top < row[1] < row[3] < bottom for row in rows)
    chips = [box_of(chip) for chip in visitor.page.locator('[class*="st-key-kept_"]').all()]
    assert len({end - begin for _, begin, _, end in chips}) == 1  # a picture's is as high as the others
    assert all(rows[0][1] <= begin < end <= rows[0][3] for _, begin, _, end in chips)
    assert (len({begin for _, begin, _, _ in chips}) == 1) is (who == "phone")
    place = box_of(visitor.page.locator("button.attach"))
    assert rows[2][1] - 1 <= place[1] < place[3] <= rows[2][3] + 1
    assert place[2] <= box_of(visitor.find("model_menu"))[0]
    assert field.evaluate("part => getComputedStyle(part).borderTopWidth") == "0px"
    visitor.field.focus()
    expect(box).to_have_css("outline-style", "solid")
    visitor.page.emulate_media(forced_colors="active")
    expect(box).to_have_css("outline-style", "solid")
    assert violations(visitor.page) == []
    visitor.page.emulate_media(forced_colors="none")


def test_nothing_in_the_bar_of_a_phone_lies_over_the_next_while_the_first_answer_comes(
    english: Visitor, fake_openai: FakeOpenAI
) -> None:
    asked = "What comes first?"
    hanging = fake_openai.script(hang("That depends. "), to=asked)
    english.page.set_viewport_size({"width": 390, "height": 844})
    english.open()
    english.write(asked)
    english.find("stop").wait_for()
    for width in (390, 360):
        english.page.set_viewport_size({"width": width, "height": 844})
        english.page.wait_for_function(
            """() => {
                const places = ["model_menu button", "stop button", "open_panel", "ask"];
                const parts = `.gauge b, ${places.map((place) => `.st-key-${place}`).join()}`;
                const boxes = [...document.querySelectorAll(parts)].map((part) => part.getBoundingClientRect());
                const [field, bar] = [boxes.at(-1), boxes.slice(0, -1).filter((box) => box.width)];
                const ends = bar.map((box) => box.right);
                return ends.at(-1) <= field.right + 8 && bar.every((box, at) => !at || ends[at - 1] <= box.left);
            }"""
        )
    english.page.set_viewport_size({"width": 1280, "height": 800})
    fake_openai.wait_until(lambda _: hanging.is_asked_for)
    english.page.keyboard.press("Escape")


def test_print_has_the_chat_alone(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "인쇄할 긴 답을 주세요."
    fake_openai.script(text("\n\n".join(f"{number}번째 줄입니다." for number in range(80))), to=asked)
    visitor.page.emulate_media(color_scheme="dark")
    visitor.open()
    visitor.ask(asked)
    visitor.page.get_by_test_id("stSidebar").hover()
    visitor.page.get_by_test_id("stSidebarCollapseButton").locator("button").click()
    visitor.page.emulate_media(media="print")
    expect(visitor.find("chat_title")).to_have_css("padding-left", "0px")
    expect(visitor.turn(1).locator(".turn-buttons").first).to_be_hidden()
    question, answer = visitor.turn(1).get_by_test_id("stChatMessage").all()
    expect(question).to_have_css("border-top-width", "1px")
    expect(answer).to_have_css("border-top-width", "0px")
    expect(visitor.page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    for hidden in ("stSidebar", "stHeader", "stBottom"):
        expect(visitor.page.get_by_test_id(hidden)).to_be_hidden()
    expect(visitor.find("panel")).to_be_hidden()
    expect(visitor.page.get_by_test_id("stMainBlockContainer")).to_have_css("padding-right", "0px")
    # The whole chat is on paper, not the part that was in view.
    assert visitor.page.evaluate("document.documentElement.scrollHeight") > 2500
    visitor.page.emulate_media(media="screen", color_scheme="light")


def test_a_box_opens_and_closes_at_once_for_whoever_wants_no_motion(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    chat.wait_for_folds()
    visitor.open(f"?session={chat.session_id}")
    box = visitor.page.locator('[class*="st-key-fold_"] details')
    box.locator("summary").click()
    content = box.get_by_test_id("stExpanderDetails").locator("p").last
    expect(content).to_be_visible()
    heights = box.evaluate("box => [box.getBoundingClientRect().height, box.scrollHeight]")
    assert heights[0] > heights[1] - 1
    box.locator("summary").click()
    assert not content.is_visible()


@pytest.mark.slow
def test_the_focus_ring_of_a_row_lies_inside_it(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("초점 테두리를 볼 대화입니다.")
    visitor.settle()  # the script that hears of the new chat takes the focus from the sidebar
    row, menu = (visitor.find(f"{part}_{visitor.session_id}").locator("button:visible") for part in ("session", "menu"))
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


def test_the_pager_of_an_answer_stays_under_the_pointer(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    chat.regenerate()
    visitor.open(f"?session={chat.session_id}")
    turn = visitor.turn(1)
    step = turn.get_by_role("button", name="이전 답변")
    answer = turn.get_by_test_id("stChatMessage").last
    places = box_of(step), box_of(answer)
    step.click()
    expect(turn.get_by_role("button", name="이 답변 사용")).to_be_visible()
    assert (box_of(step), box_of(answer)) == places
    turn.get_by_role("button", name="다음 답변").click()
    visitor.ask("다음 질문입니다.", first=2)
    # Of an earlier answer it is all that is seen until the pointer is there.
    visitor.page.mouse.move(0, 0)
    assert abs(box_of(step)[0] - box_of(answer)[0]) < 10


@pytest.mark.slow
def test_a_title_ends_before_the_field_to_find(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    other_server.sessions.rename(chat.session_id, "아주 긴 제목 " * 8)
    visitor.open(f"?session={chat.session_id}")
    title = visitor.find("chat_title").locator("h1")
    left = box_of(title)[0]
    visitor.find("icon_find").locator("button").click()
    visitor.find("find").locator("input").wait_for()
    for width in (1280, 1600, 1920):
        visitor.page.set_viewport_size({"width": width, "height": 800})
        expect(title).to_have_css("text-overflow", "ellipsis")
        end = box_of(title)[2] - title.evaluate("title => parseFloat(getComputedStyle(title).paddingRight)")
        assert end < box_of(visitor.find("find_place"))[0]
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    assert box_of(title)[0] == left


@pytest.mark.slow
def test_nothing_cuts_the_ring_of_a_button_in_the_bar(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    visitor.open(f"?session={chat.session_id}")
    visitor.find("panel").get_by_role("button", name="패널 닫기").click()
    for place in ("open_panel", "model_menu"):
        assert visitor.find(place).locator("button").evaluate(ROOM_FOR_RING) >= 3


@pytest.mark.slow
def test_the_panels_edge_is_moved_by_mouse_and_keys_within_bounds_and_its_place_is_kept(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1600, "height": 800})
    visitor.open()
    panel, edge = visitor.find("panel"), visitor.page.get_by_role("separator", name="패널 너비")
    width = "part => Math.round(part.getBoundingClientRect().width)"

    def expect_width(pixels: int) -> None:
        expect(edge).to_have_attribute("aria-valuenow", str(pixels))
        assert panel.evaluate(width) == pixels
        assert visitor.page.locator("#stMain").evaluate("box => box.scrollWidth <= box.clientWidth")

    expect_width(368)
    spot = edge.evaluate(BOX)
    visitor.page.mouse.move(spot[0] + 4, 400)
    visitor.page.mouse.down()
    visitor.page.mouse.move(1100, 400, steps=4)
    visitor.page.mouse.up()
    expect_width(500)
    expect(edge).to_be_focused()
    for key, pixels in (("ArrowLeft", 516), ("ArrowRight", 500), ("Home", 288)):
        visitor.page.keyboard.press(key)
        expect_width(pixels)
    visitor.page.keyboard.press("End")
    expect_width(int(edge.get_attribute("aria-valuemax") or 0))
    text = visitor.page.locator(COLUMN).evaluate(width)
    assert text >= 32 * 16 - 20
    visitor.page.reload()
    visitor.settle()
    expect_width(int(edge.get_attribute("aria-valuemax") or 0))
    # A window that is smaller for a while takes from the panel; what was chosen comes again.
    chosen = int(edge.get_attribute("aria-valuenow") or 0)
    visitor.page.set_viewport_size({"width": 1400, "height": 800})
    expect(edge).not_to_have_attribute("aria-valuenow", str(chosen))
    assert visitor.page.locator(COLUMN).evaluate(width) >= 32 * 16 - 20
    visitor.page.set_viewport_size({"width": 390, "height": 800})
    expect(edge).to_have_count(0)
    visitor.find("open_panel").get_by_role("button").click()
    assert panel.evaluate(width) == 390
    visitor.page.set_viewport_size({"width": 1600, "height": 800})
    expect_width(chosen)


def test_what_undoes_a_change_moves_nothing_of_a_panel_beside_the_chat(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 3)
    visitor.open(f"?session={chat.session_id}")
    head = visitor.find("panel_head")
    place = box_of(head)
    visitor.find("panel").locator('[class*="st-key-menu_card_"] button').first.click()
    visitor.page.get_by_role("menuitem", name="원문으로 되돌리기").click()
    expect(visitor.find("change_bar")).to_be_visible()
    expect(visitor.find("change_panel")).to_be_attached()
    assert box_of(head) == place


@pytest.mark.slow
def test_on_a_phone_the_line_of_a_reset_is_one_row(phone: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    other_server.folds.reset(chat.session_id)
    phone.open(f"?session={chat.session_id}")
    row, text, button = phone.find("reset_1"), phone.find("reset_1").locator("p").first, phone.find("undo_reset")
    expect(text).to_have_css("text-align", "center")
    line, said, undo = box_of(row), box_of(text), box_of(button)
    assert said[1] < undo[1] < undo[3] < said[3]
    assert said[0] - line[0] == line[2] - undo[2] > 16  # both rules


@pytest.mark.slow
def test_the_empty_page_begins_with_its_title(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 640, "height": 400})
    visitor.open()
    expect(visitor.find("empty").get_by_role("heading")).to_be_in_viewport()


@pytest.mark.slow
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


@pytest.mark.slow
def test_words_from_right_to_left_begin_at_the_right(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    fake_openai.script(text(ARABIC.replace("\n", "\n\n")), to=ARABIC)
    visitor.open()
    visitor.write(ARABIC)
    visitor.wait_for_end(1)
    asked = visitor.turn(1).get_by_test_id("stText").locator("> *").first
    for part in (asked, visitor.turn(1).get_by_test_id("stChatMessage").last.locator("p").first):
        assert part.evaluate(FROM_THE_RIGHT) < 3


@pytest.mark.slow
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


@pytest.mark.slow
def test_however_many_chats_there_are_the_open_one_and_the_settings_are_in_view(
    chromium: Browser, address: str, other_server: ChatService
) -> None:
    old, many = Chat(other_server), Chat(other_server)
    old.ask(1, 1)
    many.ask(1, 1)
    many.copy(40)
    for width, height in ((1280, 800), (1280, 640), (390, 844)):
        with visiting(chromium, address, viewport={"width": width, "height": height}, has_touch=width < 400) as visitor:
            visitor.open(f"?session={old.session_id}")
            if width < 400:
                visitor.page.get_by_test_id("stExpandSidebarButton").click()
            head = visitor.find("settings")
            expect(visitor.find("more_sessions")).to_be_attached()
            if height == 800:
                expect(visitor.open_row).to_be_in_viewport(ratio=1)
                visitor.page.get_by_test_id("stSidebar").hover()
                visitor.page.mouse.wheel(0, 3000)
                expect(visitor.find("more_sessions")).to_be_in_viewport()
                expect(visitor.open_row).to_be_in_viewport(ratio=1)
            expect(head).to_be_in_viewport(ratio=1)
            for key in ("language", "theme", "icon_help"):
                expect(visitor.find(key)).to_be_in_viewport(ratio=1)
            if height == 800:
                expect(visitor.open_row).to_be_in_viewport(ratio=1)
