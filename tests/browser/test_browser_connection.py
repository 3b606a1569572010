"""The page while its server is away, and after."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from component.words.wording import words_of
from tests.browser.conftest import scripted_settings, started, visiting
from tests.browser.state_attach import attach
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI

DIALOG: Final = "Streamlit server is not responding"  # comes after some seconds


@pytest.mark.slow
def test_a_page_without_its_server_says_so_and_takes_what_is_written(
    chromium: Browser, fake_openai: FakeOpenAI, tmp_path: Path
) -> None:
    asked, written = "서버가 꺼질 때의 질문", "그동안 쓴 말"
    fake_openai.script(hang("여기까지는 "), to=asked, may_stay=True)
    fake_openai.script(text("이어서 답합니다."), to=written)
    settings, words = scripted_settings(fake_openai), words_of("ko")
    with ExitStack() as server:
        address = server.enter_context(started(tmp_path, settings))
        with visiting(chromium, address) as visitor:
            line, phase = visitor.page.locator("p.disconnected"), visitor.page.locator("p.phase")
            visitor.open()
            attach(visitor, ("first.txt", b"1"), ("second.txt", b"2"))
            visitor.write(asked)
            expect(visitor.turn(1)).to_contain_text("여기까지는")
            expect(phase).to_be_visible()
            expect(line).to_be_hidden()
            with visitor.page.expect_console_message(lambda message: DIALOG in message.text):
                server.close()
                expect(line).to_contain_text(words.disconnected.partition("<")[0])
                expect(phase).to_be_hidden()
                visitor.field.press_sequentially("그동안 ")
            visitor.field.click()  # nothing lies over it
            visitor.field.press_sequentially("쓴 말")
            expect(visitor.field).to_have_value(written)
            visitor.field.press("Enter")
            with started(tmp_path, settings, port=urlsplit(address).port or 0):
                expect(line).to_be_hidden()
                visitor.wait_for_end(2)
                expect(visitor.turn(2)).to_contain_text("이어서 답합니다.")
                attach(visitor, ("third.txt", b"3"))
                visitor.write("파일을 곧 읽습니다.")
                expect(visitor.turn(3)).to_be_visible(timeout=30_000)  # half of what an unread file is waited for
                visitor.complaints.clear()  # of the connection that was cut
