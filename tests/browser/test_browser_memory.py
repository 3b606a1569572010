"""A project's memory over a restart of the server: yesterday's work is there this morning, without any key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from graph.service import open_service
from graph.settings import Settings
from graph.view import TurnOptions
from tests.browser.conftest import started, visiting
from tests.fake.chat import Chat

KOREAN: Final = (
    ("작업 시작: 릴리스 노트 쓰기", "진행 중인 할 일: 릴리스 노트 쓰기", "지금 무슨 작업 중이었지?"),
    ("결정: 포트는 9090으로 하자.", "마지막 결정: 포트는 9090으로 하자", "마지막 결정이 뭐였지?"),
    ("열린 파일: docs/cli.md", "마지막으로 연 파일: docs/cli.md", "마지막으로 연 파일은?"),
)
ENGLISH: Final = (
    ("Start a task: write the release notes", "Active task: write the release notes", "What's the active task?"),
    ("Record the decision that the port is 9090", "Last decision: the port is 9090", "What was the last decision?"),
    ("Open file: docs/cli.md", "Last open file: docs/cli.md", "Which file did I open last?"),
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "allowed/shop"
    (root / "docs").mkdir(parents=True)
    (root / "docs/cli.md").write_text("# CLI", encoding="utf-8")
    return root


def begin(folder: Path, shop: Path, greeting: str) -> str:
    """Begins a chat in the project by a second server on the same files, and returns its session."""
    settings = Settings(_env_file=None, turnfold_data_dir=folder / "data", project_roots=(shop.parent,))  # type: ignore[call-arg]  # the base class's own argument
    with open_service(settings) as service:
        chat = Chat(service)
        chat.say(greeting, options=TurnOptions(project_root=str(shop)))
        assert chat.last_turn.status == "finished"
        return chat.session_id


@pytest.mark.parametrize(("locale", "day"), [("ko-KR", KOREAN), ("en-US", ENGLISH)], ids=["ko", "en"])
def test_after_a_restart_a_new_session_knows_the_task_the_decision_and_the_file(
    chromium: Browser, tmp_path: Path, shop: Path, locale: str, day: Sequence[tuple[str, str, str]]
) -> None:
    settings = {"PROJECT_ROOTS": str(shop.parent)}
    greeting = "안녕하세요" if locale == "ko-KR" else "Hello"
    with started(tmp_path, settings) as address, visiting(chromium, address, locale=locale) as visitor:
        visitor.open(f"?session={begin(tmp_path, shop, greeting)}")
        visitor.ask(*(noted for noted, _, _ in day), first=2)
        expect(visitor.turn(4)).to_contain_text("docs/cli.md")
    with started(tmp_path, settings) as address, visiting(chromium, address, locale=locale) as visitor:
        visitor.open()
        for _, answer, _ in day:
            expect(visitor.find("known")).to_contain_text(answer.partition(": ")[2])
        visitor.ask(*(asked for _, _, asked in day))
        for number, (_, answer, _) in enumerate(day, 1):
            expect(visitor.turn(number)).to_contain_text(answer)
            expect(visitor.turn(number).locator(".recalled")).to_have_count(0)
