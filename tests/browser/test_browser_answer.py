"""What is done with an answer: the tab tells of its end."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect

from tests.browser.test_browser_safety import HOST, listening
from tests.browser.visitor import Visitor
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

# All tabs of a browser without windows are seen.
HIDE: Final = """isHidden => {
    Object.defineProperty(document, "hidden", { get: () => isHidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_the_tabs_title_tells_of_an_answer_that_ended_behind_until_it_is_looked_at(
    visitor: Visitor, fake_openai: FakeOpenAI
) -> None:
    visitor.open()
    visitor.ask("앞에서 끝나는 답입니다.")
    visitor.settle()
    assert not visitor.page.title().startswith("●")
    asked = "뒤에서 끝나는 답입니다."
    fake_openai.script(text("한참 걸리는 답 " * 20, pause_seconds=0.05), to=asked)
    visitor.write(asked)
    expect(visitor.turn(2).locator("p.phase")).to_have_count(1)
    visitor.page.evaluate(HIDE, arg=True)
    assert not visitor.page.title().startswith("●")
    visitor.wait_for_end(2)
    visitor.page.wait_for_function("() => document.title.startsWith('● ') && document.title.endsWith('Turnfold')")
    visitor.page.evaluate(HIDE, arg=False)
    visitor.page.wait_for_function("() => !document.title.includes('●')")


def test_code_wraps_and_is_saved_under_its_languages_name_by_keys_too(
    visitor: Visitor, fake_openai: FakeOpenAI
) -> None:
    asked, code = "긴 줄을 보여 주세요.", f"print('{'아주 긴 줄 ' * 60}')\nx = 1\n"
    fake_openai.script(text(f"```python\n{code}```\n\n```\n표시 없음\n```\n\n```rust\nfn main() {{}}\n```"), to=asked)
    visitor.open()
    visitor.ask(asked)
    blocks = visitor.turn(1).get_by_test_id("stCode")
    first, wrap = blocks.first.locator("pre"), blocks.first.get_by_role("button", name="줄 바꿈")
    assert first.evaluate("pre => pre.scrollWidth > pre.clientWidth")
    for pressed, press in (("true", wrap.click), ("false", wrap.click), ("true", partial(wrap.press, "Enter"))):
        press()
        expect(wrap).to_have_attribute("aria-pressed", pressed)
        assert first.evaluate("pre => pre.scrollWidth > pre.clientWidth") == (pressed == "false")
    for block, name, written in zip(
        blocks.all(), ("code.py", "code.txt", "code.rs"), (code, "표시 없음", "fn main() {}"), strict=True
    ):
        save = block.get_by_role("button", name="코드 내려받기")
        with visitor.page.expect_download() as saving:
            save.press("Enter")
        assert saving.value.suggested_filename == name
        assert Path(saving.value.path()).read_text(encoding="utf-8").strip() == written.strip()


SELECT: Final = """part => {
    const range = new Range();
    range.selectNodeContents(part);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
}"""


@pytest.mark.parametrize("by", ["mouse", "touch", "keys"])
def test_a_selection_is_quoted_before_the_draft(
    visitor: Visitor, phone: Visitor, fake_openai: FakeOpenAI, by: str
) -> None:
    reader, asked = phone if by == "touch" else visitor, "두 문단으로 답해 주세요."
    fake_openai.script(text("첫 문단의 **말**입니다.\n\n둘째 문단입니다."), to=asked)
    reader.open()
    reader.ask(asked)
    reader.settle()
    reader.field.fill("쓰던 글")
    said = reader.turn(1).get_by_test_id("stChatMessageContent").last.get_by_test_id("stMarkdownContainer").first
    quote = reader.page.get_by_role("button", name="인용")
    expect(quote).to_have_count(0)
    said.evaluate(SELECT)
    expect(quote).to_be_in_viewport(ratio=1)
    if by == "keys":
        reader.page.keyboard.press("Control+Shift+Period")
    elif by == "touch":
        quote.tap()
    else:
        quote.click()
    expect(reader.field).to_have_value("> 첫 문단의 말입니다.\n> 둘째 문단입니다.\n\n쓰던 글")
    expect(reader.field).to_be_focused()
    expect(quote).to_have_count(0)
    reader.page.locator("h1").first.evaluate(SELECT)
    reader.page.wait_for_timeout(100)
    expect(quote).to_have_count(0)
    reader.page.reload()
    reader.settle()
    expect(reader.field).to_have_value("> 첫 문단의 말입니다.\n> 둘째 문단입니다.\n\n쓰던 글")


# What code tries once it is shown.
REACHING: Final = """<!doctype html><html><head><title>쪽</title><base href="{away}/">
<meta http-equiv="refresh" content="0; url={away}/refresh"><link rel="stylesheet" href="{away}/style">
<link rel="preconnect" href="{away}"><link rel="prefetch" href="{here}/health"><link rel="icon" href="{away}/icon">
<style>@import "{away}/import"; h1 {{ color: rgb(1, 2, 3); background: url({away}/background) }}
@font-face {{ font-family: far; src: url({away}/font) }} p {{ font-family: far }}</style></head>
<body onload="fetch('{away}/load'); top.location = '{here}/health'"><h1>보입니다</h1><p>글</p>
<img src="{away}/image"><img src="{here}/health" onerror="parent.document.body.remove()">
<video src="{away}/video"></video>
<iframe src="{here}/health"></iframe><iframe srcdoc="<script>fetch('{away}/nested')</script>"></iframe>
<object data="{away}/object"></object><embed src="{away}/embed"><script src="{here}/script"></script>
<form action="{here}/form" target="_top"><button>보내기</button></form><a href="{here}/health">안에서</a>
<a href="{here}/health" target="_top">위에서</a><a href="{here}/health" target="_blank" ping="{away}/ping">새 창</a>
<script>
document.querySelector("h1").textContent = "스크립트";
new RTCPeerConnection({{ iceServers: [{{ urls: "stun:{stun}" }}] }}).createDataChannel("x");
fetch("{away}/fetch"); parent.postMessage("x", "*"); localStorage.x = 1; open("{here}/health");
top.location = "{here}/health";
</script></body></html>"""


def test_html_and_svg_are_shown_at_a_press_and_reach_nothing(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    with listening() as listener, socket.socket(type=socket.SOCK_DGRAM) as calls:
        calls.bind((HOST, 0))
        calls.settimeout(0.5)
        stun, away, here = f"{HOST}:{calls.getsockname()[1]}", f"http://{HOST}:{listener.port}", visitor.address
        code = REACHING.format(here=here, away=away, stun=stun)
        asked, svg = "페이지를 만들어 주세요.", "<svg width='9' height='9'><circle r='4'/></svg>"
        fake_openai.script(text(f"```html\n{code}\n```\n\n```svg\n{svg}\n```\n\n```python\nx = 1\n```"), to=asked)
        visitor.open()
        visitor.ask(asked)
        visitor.settle()
        page, shown, drawn, python = visitor.page, *visitor.turn(1).get_by_test_id("stCode").all()
        expect(page.locator("iframe")).to_have_count(0)
        expect(python.get_by_role("button", name="미리 보기")).to_have_count(0)
        answered: list[str] = []
        page.on("response", lambda response: answered.append(response.url))
        preview = shown.get_by_role("button", name="미리 보기")
        preview.press("Enter")
        expect(preview).to_have_attribute("aria-pressed", "true")
        frame = shown.locator("iframe").content_frame
        expect(frame.locator("h1")).to_have_css("color", "rgb(1, 2, 3)")
        drawn.get_by_role("button", name="미리 보기").click()
        expect(drawn.locator("iframe").content_frame.locator("circle")).to_be_visible()
        for name in ("위에서", "새 창", "안에서"):
            frame.get_by_role("link", name=name).click()
        with pytest.raises(TimeoutError):
            calls.recv(100)
        assert (listener.heard, answered) == (0, [])
        assert page.url.startswith(f"{here}/?session=")
        assert not any(opened.url.endswith("/health") for opened in visitor.context.pages[1:])
        assert page.evaluate("localStorage.x") is None
        expect(visitor.field).to_be_visible()
        preview.click()
        expect(shown.locator("iframe")).to_have_count(0)
        expect(preview).to_have_attribute("aria-pressed", "false")
        visitor.complaints.clear()  # what was refused is told on the console


def test_an_answer_is_edited_where_it_stands_and_the_models_own_stays_beside_it(
    visitor: Visitor, fake_openai: FakeOpenAI
) -> None:
    asked = "고쳐 쓸 답을 주세요."
    fake_openai.script(text("모델이 쓴 답입니다."), to=asked)
    visitor.open()
    visitor.ask(asked)
    visitor.settle()
    turn = visitor.turn(1)
    turn.get_by_role("button", name="답변 편집").press("Enter")
    field = turn.get_by_role("textbox", name="답변 편집")
    expect(field).to_be_focused()
    expect(field).to_have_value("모델이 쓴 답입니다.")
    field.fill("내가 고친 답입니다.")
    visitor.find("edit_confirm").get_by_role("button").click()
    expect(field).to_have_count(0)
    expect(turn).to_contain_text("내가 고친 답입니다.")
    expect(turn).to_contain_text("직접 고친 답변")
    expect(turn).to_contain_text("2/2")
    turn.get_by_role("button", name="이전 답변").click()
    expect(turn).to_contain_text("모델이 쓴 답입니다.")
    expect(turn).not_to_contain_text("직접 고친 답변")
    visitor.ask("다음 물음입니다.", first=2)
    assert "내가 고친 답입니다." in str(fake_openai.bodies("chat")[-1])
    assert "모델이 쓴 답입니다." not in str(fake_openai.bodies("chat")[-1])
