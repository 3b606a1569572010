from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

HOST = "127.0.0.3"


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


def test_listener_hears_who_does_call() -> None:
    with listening() as listener:
        socket.create_connection((HOST, listener.port)).close()
        for _ in range(100):
            if listener.heard:
                break
            threading.Event().wait(0.05)
    assert listener.heard == 1


def test_image_link_form_and_script_in_an_answer_load_nothing(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    with listening() as listener:
        origin = f"http://{HOST}:{listener.port}"
        asked = f"이것도 보세요: <img src='{origin}/user.png'> ![내 것]({origin}/user2.png)"
        fake_openai.script(text(hostile_answer(origin)), to=asked)
        visitor.open()
        visitor.ask(asked)
        answer = visitor.turn(1)
        expect(answer.get_by_text("끝까지 읽었습니다.")).to_be_visible()
        for tag in ("img", "form", "iframe", "script", "link[rel=stylesheet]"):
            expect(answer.locator(tag)).to_have_count(0)
        visitor.page.reload()
        visitor.settle()
        expect(visitor.turn(1).get_by_text("끝까지 읽었습니다.")).to_be_visible()
        visitor.expect_no_complaint()
    assert listener.heard == 0
