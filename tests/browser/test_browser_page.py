from __future__ import annotations

from typing import Final

import httpx2
from playwright.sync_api import Browser, expect
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.sync.client import connect
from websockets.typing import Origin

from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

LARGEST_WINDOW_BITS: Final = 15


def test_phone_has_the_panel_in_a_drawer_and_nothing_sticks_out(phone: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    phone.open(f"?session={chat.session_id}")
    expect(phone.find("panel")).to_be_hidden()
    phone.find("open_panel").locator("button").click()
    drawer = phone.page.get_by_role("dialog")
    expect(drawer.get_by_text("📝 대화 요약 히스토리")).to_be_visible()
    expect(drawer.get_by_text("[1-3턴 요약]")).to_be_visible()
    drawer.get_by_role("tab", name="통계").click()
    expect(drawer.get_by_text("총 요약: 1개 (3턴 압축)")).to_be_visible()
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 390


def test_wide_page_keeps_the_panel_in_view(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    visitor.open(f"?session={chat.session_id}")
    expect(visitor.find("open_panel")).to_be_hidden()
    box = visitor.find("panel").bounding_box()
    assert box is not None
    assert (box["y"], box["height"]) == (0, 800)
    assert box["x"] + box["width"] == 1280


def test_english_browser_gets_english_and_keeps_the_choice_of_korean(english: Visitor) -> None:
    english.open()
    expect(english.find("new_chat")).to_contain_text("New chat")
    english.expect_language("en")
    english.open_settings()
    english.find("language").get_by_role("radio", name="한국어").press("Enter")
    expect(english.find("new_chat")).to_contain_text("새 대화")
    english.expect_language("ko")
    english.page.reload()
    english.settle()
    expect(english.find("new_chat")).to_contain_text("새 대화")
    english.expect_language("ko")


def test_address_with_a_session_opens_it(visitor: Visitor, chromium: Browser, address: str) -> None:
    visitor.open()
    visitor.ask("다른 창에서 다시 열 대화를 하나 만듭니다.")
    with visiting(chromium, address) as other:
        other.open(f"?session={visitor.session_id}")
        expect(other.turn(1)).to_contain_text("다른 창에서 다시 열 대화를 하나 만듭니다.")


def test_back_and_forth_open_what_the_address_names(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("뒤로 가서 다시 볼 대화입니다.")
    first = visitor.session_id
    visitor.find("new_chat").locator("button").click()
    expect(visitor.find("empty")).to_be_visible()
    visitor.ask("앞으로 가서 다시 볼 대화입니다.")
    second = visitor.session_id
    visitor.page.go_back()
    expect(visitor.find("empty")).to_be_visible()
    visitor.page.go_back()
    expect(visitor.turn(1)).to_contain_text("뒤로 가서")
    assert visitor.session_id == first
    visitor.ask("여기서 이어 갑니다.", first=2)
    visitor.page.go_forward()
    expect(visitor.find("empty")).to_be_visible()
    visitor.page.go_forward()
    expect(visitor.turn(1)).to_contain_text("앞으로 가서")
    assert visitor.session_id == second


def test_enter_that_ends_a_korean_syllable_sends_nothing(visitor: Visitor) -> None:
    visitor.open()
    visitor.field.focus()
    keyboard = visitor.context.new_cdp_session(visitor.page)
    keyboard.send("Input.imeSetComposition", {"text": "안녕하세", "selectionStart": 4, "selectionEnd": 4})
    expect(visitor.field).to_have_value("안녕하세")
    # What an input method sends for Enter while it composes: key code 229, with isComposing set.
    keyboard.send(
        "Input.dispatchKeyEvent",
        {"type": "rawKeyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229},
    )
    keyboard.send("Input.insertText", {"text": "안녕하세요"})
    expect(visitor.field).to_have_value("안녕하세요")
    expect(visitor.page.locator('[class*="st-key-turn_"]')).to_have_count(0)
    visitor.field.press("Enter")
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text("안녕하세요")


def test_shortcuts_reach_field_and_new_chat(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("단축키를 시험하려고 대화를 시작합니다.")
    visitor.settle()  # the script that hears of the new chat puts the focus into the field
    visitor.field.evaluate("field => field.blur()")
    visitor.page.keyboard.press("/")
    expect(visitor.field).to_be_focused()
    expect(visitor.field).to_have_value("")
    visitor.page.keyboard.press("Control+Shift+KeyO")
    expect(visitor.find("suggestions")).to_be_visible()


def test_shortcuts_are_listed(visitor: Visitor) -> None:
    visitor.open()
    visitor.open_settings()
    visitor.find("shortcuts").locator("button").click()
    expect(visitor.page.get_by_text("메시지 입력란으로 가기")).to_be_visible()


def test_page_and_its_parts_may_ask_no_other_host(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "그림을 하나 보여 주세요, 바깥 주소로요."
    fake_openai.script(text("보세요 ![그림](http://127.0.0.2:9/pixel.png) 여기 [링크](http://127.0.0.2:9/)"), to=asked)
    visitor.open()
    visitor.ask(asked)
    expect(visitor.turn(1).get_by_role("link", name="그림")).to_be_visible()
    expect(visitor.turn(1).locator("img")).to_have_count(0)
    visitor.expect_no_complaint()
    blocked = """() => new Promise(done => {
        document.addEventListener('securitypolicyviolation', event => done(event.effectiveDirective));
        const image = new Image(); image.src = 'http://127.0.0.2:9/pixel.png'; })"""
    assert visitor.page.evaluate(blocked) == "img-src"
    visitor.complaints.clear()


def test_headers_stand_on_every_answer(address: str) -> None:
    for path in ("/", "/health", "/_stcore/health", "/no-such-page"):
        headers = httpx2.get(f"{address}{path}").headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http:" not in policy
        assert "unsafe-eval" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "camera=()" in headers["permissions-policy"]


def test_health_says_ok(address: str) -> None:
    answer = httpx2.get(f"{address}/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_dark_and_light_follow_the_system(chromium: Browser, address: str) -> None:
    for scheme, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 23)")):
        with visiting(chromium, address, color_scheme=scheme) as visitor:
            visitor.open()
            expect(visitor.page.locator(".stApp")).to_have_css("background-color", colour)


def test_a_page_that_went_blank_comes_back_by_itself(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("화면이 사라져도 남아 있을 말입니다.")
    visitor.field.fill("아직 보내지 않은 말")
    visitor.page.evaluate(
        "() => { document.getElementById('root').remove(); setTimeout(() => { throw new Error('blank'); }); }"
    )
    expect(visitor.turn(1)).to_contain_text("화면이 사라져도 남아 있을 말입니다.")
    expect(visitor.field).to_have_value("아직 보내지 않은 말")
    assert all("blank" in complaint for complaint in visitor.complaints)
    visitor.complaints.clear()


def test_page_is_compressed_with_the_largest_window(address: str) -> None:
    stream = f"{address.replace('http', 'ws')}/_stcore/stream"
    with connect(stream, origin=Origin(address), proxy=None, open_timeout=30) as connection:
        (compression,) = connection.protocol.extensions
    assert isinstance(compression, PerMessageDeflate)
    assert compression.remote_max_window_bits == LARGEST_WINDOW_BITS
