from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import OpenAI
from playwright.sync_api import Browser, expect

from tests.browser.axe import violations
from tests.browser.conftest import scripted_settings, started, visiting
from tests.browser.visitor import Visitor
from tests.fake.chat import question
from tests.fake.openai_server import FakeOpenAI

NAME = "editor"
TOKEN = "token-of-a-program-0123456789"  # noqa: S105  # of this server alone


class Program:
    """A program that sends all of its chat again with each question."""

    def __init__(self, address: str) -> None:
        self._client = OpenAI(base_url=f"{address.rstrip('/')}/v1", api_key=TOKEN, max_retries=0)
        self._said: list[dict[str, str]] = []

    def ask(self, text: str) -> tuple[str, str]:
        """Returns the session and the turn that answered."""
        self._said.append({"role": "user", "content": text})
        raw = self._client.chat.completions.with_raw_response.create(model="turnfold", messages=self._said)  # type: ignore[arg-type]  # plain dictionaries, as programs send them
        self._said.append({"role": "assistant", "content": raw.parse().choices[0].message.content or ""})
        return raw.headers["X-Turnfold-Session"], raw.headers["X-Turnfold-Turn"]


@pytest.fixture
def open_address(endpoint: FakeOpenAI, tmp_path: Path) -> Iterator[str]:
    """The address of a server that lets one program in; its sessions are those of the page."""
    with started(tmp_path, {**scripted_settings(endpoint), "CHAT_API_TOKENS": f"{NAME}:local:{TOKEN}"}) as address:
        yield address


def test_a_programs_chat_bears_its_name_and_both_go_on_with_it(chromium: Browser, open_address: str) -> None:
    program = Program(open_address)
    session_id, turn = program.ask(question(1))
    assert turn == "1"
    with visiting(chromium, open_address) as visitor:
        visitor.open(f"?session={session_id}")
        expect_mark(visitor, session_id)
        expect(visitor.find("begun_by")).to_contain_text(f"“{NAME}” 프로그램이 시작한 대화입니다.")
        expect(visitor.turn(1).get_by_text(f"프로그램: {NAME}")).to_be_visible()
        visitor.ask("여기서 이어 갑니다.", first=2)
        assert program.ask(question(3)) == (session_id, "3")
        expect(visitor.turn(3).get_by_text(f"프로그램: {NAME}")).to_be_visible()
        expect(visitor.turn(2).get_by_text("프로그램: ")).to_have_count(0)
        assert violations(visitor.page) == []


def expect_mark(visitor: Visitor, session_id: str) -> None:
    """The name stands right below the title."""
    mark, row = visitor.find(f"client_open_{session_id}"), visitor.find(f"open_session_{session_id}")
    expect(mark).to_have_text(f"terminal 프로그램: {NAME}")
    below, above = mark.bounding_box(), row.bounding_box()
    assert below is not None
    assert above is not None
    assert 0 <= below["y"] + below["height"] - (above["y"] + above["height"]) <= 40
