"""What an answer, a page of another site and a stranger's file can't do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx2
import pytest
from playwright.sync_api import expect
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.sync.client import connect
from websockets.typing import Origin

from graph.attachment import MAX_BYTES, MAX_FILES
from tests.browser.visitor import Visitor
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.upload import TAKEN, Tab, form_of, opened_tab

HOST: Final = "127.0.0.3"
LARGEST_WINDOW_BITS: Final = 15
AS_TYPED: Final = "**이것** 보세요\n```nosuchlanguage\nx = <b>1</b>\n```\n[링크](https://a.kr) 입니다"


class Listener:
    def __init__(self, port: int) -> None:
        self.port = port
        self.heard = 0


@contextmanager
def listening() -> Iterator[Listener]:
    server = socket.create_server((HOST, 0))
    server.settimeout(0.1)
    listener, ended = Listener(server.getsockname()[1]), threading.Event()

    def hear() -> None:
        while not ended.is_set():
            try:
                server.accept()[0].close()
            except TimeoutError:
                continue
            listener.heard += 1

    thread = threading.Thread(target=hear)
    thread.start()
    try:
        yield listener
    finally:
        ended.set()
        thread.join()
        server.close()


def hostile_answer(origin: str) -> str:
    return (
        f"![한 점]({origin}/pixel.png) {origin}/auto <img src='{origin}/tag.png'>\n\n"
        f"<form action='{origin}/form'><input name='secret'><button>보내기</button></form>\n\n"
        f"<script>fetch('{origin}/script')</script><iframe src='{origin}/frame'></iframe>\n\n"
        f"<link rel='stylesheet' href='{origin}/style.css'> <svg onload=\"fetch('{origin}/svg')\"></svg>\n\n"
        f"[참조][a] ![참조 그림][a]\n\n[a]: {origin}/reference.png\n\n"
        "$$\\href{javascript:alert(1)}{x}$$\n\n끝까지 읽었습니다."
    )


def test_image_link_form_and_script_in_an_answer_load_nothing(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    with listening() as listener:
        origin = f"http://{HOST}:{listener.port}"
        asked = f"{AS_TYPED} <img src='{origin}/user.png'> ![내 것]({origin}/user2.png)"
        fake_openai.script(text(hostile_answer(origin)), to=asked)
        visitor.open()
        visitor.ask(asked)
        question, answer = (visitor.turn(1).get_by_test_id("stChatMessage").nth(number) for number in (0, 1))
        expect(question.get_by_test_id("stCode").locator("code")).to_have_text("x = <b>1</b>")
        expect(question.get_by_test_id("stText").first).to_have_text("**이것** 보세요")
        expect(question.locator("a, strong, b, img")).to_have_count(0)
        expect(answer.get_by_text("끝까지 읽었습니다.")).to_be_visible()
        expect(answer.get_by_role("link", name="한 점")).to_be_visible()
        for tag in ("img", "form", "iframe", "script", "link[rel=stylesheet]"):
            expect(visitor.turn(1).locator(tag)).to_have_count(0)
        visitor.page.reload()
        visitor.settle()
        expect(visitor.turn(1).get_by_text("끝까지 읽었습니다.")).to_be_visible()
        visitor.expect_no_complaint()
        assert listener.heard == 0
        socket.create_connection((HOST, listener.port)).close()  # it hears who does call
        for _ in range(100):
            if listener.heard:
                break
            threading.Event().wait(0.05)
        assert listener.heard == 1


# Each command of TeX that takes a size, with what it is followed by, in every place that a text has for a formula.
FAR: Final = (
    *(r"\rule{3000em}{3000em}", r"\rule[-3000em]{3000em}{6000em}", r"a\kern3000em b", r"a\kern-3000em b"),
    *(r"a\hskip3000em b", r"a\hspace{3000em}b", r"a\hspace{-3000em}b", r"a\mkern30000mu b", r"a\mskip-30000mu b"),
    *(r"\raisebox{3000em}{b}", r"\raisebox{-3000em}{b}", r"\vspace{3000em}b"),
    *(r"\smash{\rule{3000em}{3000em}}", r"\smash{\raisebox{20em}{\rule{90em}{90em}}}", r"\llap{\rule{3000em}{90em}}b"),
    *(r"\rlap{\rule{3000em}{90em}}", r"\smash{\rlap{\rule{3000em}{3000em}}}", r"\kern-300em\rlap{\rule{3000em}{9em}}"),
    *(r"\begin{array}{c}a\\[3000em]b\end{array}", r"\genfrac{}{}{3000em}{}{a}{b}", r"\above3000em b"),
)
MARKDOWN: Final = ("**{}** and more", "- {}", "> {}", "## {}", "| a |\n| - |\n| {} |", "1. a\n   - {}")
# What an answer also draws on, above it or behind it, while one of its formulas is looked at.
DRAWN_ON: Final = """answer => [...answer.querySelectorAll('.katex-html')].flatMap(formula => {
    formula.scrollIntoView({ block: 'center' });
    return ['.st-key-panel', "[data-testid='stSidebar']"].filter(name => {
        const box = document.querySelector(name).getBoundingClientRect();
        const places = (from, size) => [...Array(5).keys()].map(number => from + size * (number + 0.5) / 5);
        return places(box.x, box.width).some(x => places(box.y, box.height).some(
            y => document.elementsFromPoint(x, y).some(part => answer.contains(part))));
    }).map(name => `${name}: ${formula.textContent}`);
})"""


@pytest.mark.slow
def test_no_formula_lies_over_the_rest_of_the_page(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    # A text with a formula on lines of its own is another one: Streamlit then hides what is too wide.
    inline = [f"${formula}$" for formula in (*FAR, r"a\\[3000em]b", r"a\\[-3000em]b")]
    inline += [markdown.format(f"$${formula}$$") for markdown in MARKDOWN for formula in FAR[::5]]
    asked = ("아주 먼 곳까지 가는 식을 보여 주세요.", "이번에는 줄마다 보여 주세요.")
    shown = (inline, [f"$$\n{formula}\n$$" for formula in FAR])
    for question, formulas in zip(asked, shown, strict=True):
        fake_openai.script(text("\n\n".join([*formulas, "끝 $x$ 글"])), to=question)
    visitor.open()
    visitor.ask(*asked)
    for number, formulas in enumerate(shown, 1):
        answer = visitor.turn(number).get_by_test_id("stChatMessage").last
        expect(answer.locator(".katex-html")).to_have_count(len(formulas) + 1)
        assert answer.evaluate(DRAWN_ON) == []
        # Of what it made long itself, cells of tables alone are not cut.
        heights = (
            "answer => [...answer.querySelectorAll('p, h2, li li, .katex-display')].map(part => part.offsetHeight)"
        )
        assert max(answer.evaluate(heights)) <= 400 * 16
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# What is higher than it is shown, by more than a formula's own marks are.
CUT: Final = """answer => [...answer.querySelectorAll('p, h2, li, .katex-display')]
    .filter(part => part.clientHeight && part.scrollHeight > part.clientHeight + 16)
    .map(part => `${part.tagName}: ${part.scrollHeight} > ${part.clientHeight}`)"""


@pytest.mark.slow
def test_long_paragraphs_and_proofs_with_formulas_are_shown_to_their_end(
    phone: Visitor, fake_openai: FakeOpenAI
) -> None:
    sentences = "이 증명에서 $x$ 는 양수이므로 앞의 식에 넣어 정리합니다. " * 60
    lines = "  \n".join(f"{number}번째 줄은 $x_{{{number}}}$ 입니다." for number in range(60))
    proof = r"\\".join(rf"a_{{{number}}} &= \frac{{{number}}}{{2}}" for number in range(60))
    parts = (sentences, lines, f"- {sentences}", f"$$\n\\begin{{aligned}}{proof}\\end{{aligned}}\n$$")
    fake_openai.script(text("\n\n".join(parts)), to="긴 증명을 보여 주세요.")
    phone.open()
    phone.ask("긴 증명을 보여 주세요.")
    answer = phone.turn(1).get_by_test_id("stChatMessage").last
    expect(answer.locator(".katex-html").last).to_be_visible()
    assert answer.evaluate(CUT) == []


def test_the_page_may_ask_no_other_host(visitor: Visitor) -> None:
    visitor.open()
    visitor.expect_no_complaint()
    blocked = """() => new Promise(done => {
        document.addEventListener('securitypolicyviolation', event => done(event.effectiveDirective));
        const image = new Image(); image.src = 'http://127.0.0.2:9/pixel.png'; })"""
    assert visitor.page.evaluate(blocked) == "img-src"
    visitor.complaints.clear()


def test_headers_stand_on_every_answer_and_the_page_is_compressed(address: str) -> None:
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
    answer = httpx2.get(f"{address}/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    stream = f"{address.replace('http', 'ws')}/_stcore/stream"
    with connect(stream, origin=Origin(address), proxy=None, open_timeout=30) as connection:
        (compression,) = connection.protocol.extensions
    assert isinstance(compression, PerMessageDeflate)
    assert compression.remote_max_window_bits == LARGEST_WINDOW_BITS


def in_pieces(body: bytes) -> Iterator[bytes]:
    yield body


def test_a_file_that_is_too_large_or_one_too_many_is_refused_before_it_is_read(address: str) -> None:
    with opened_tab(address, {}) as tab:
        assert Tab(tab.address, "no-such-tab", {}).put(b"text").status_code == 400
        assert tab.put(b"x" * (MAX_BYTES + 1024 * 1024)).status_code == 413
        assert tab.send(in_pieces(form_of(b"text"))).status_code == 411
        assert tab.put(b"x" * (MAX_BYTES - 1024)).status_code == TAKEN
        assert [tab.put(b"text").status_code for _ in range(MAX_FILES)] == [TAKEN] * (MAX_FILES - 1) + [429]


@pytest.mark.parametrize("header", ["Host", "Origin"])
def test_a_page_of_another_site_sends_no_file(header: str, address: str) -> None:
    strange = {"Host": "evil.example.com", "Origin": "http://evil.example.com"}[header]
    with opened_tab(address, {}) as tab:
        assert tab.put(b"text", headers={header: strange}).status_code == 403
