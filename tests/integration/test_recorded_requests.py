"""Holds what is sent to the model to what was recorded, byte for byte.

A change of the words or the order that a model is sent changes answers, summaries and the provider's cached prefix. One
that is meant is recorded again, and its difference is read before it is committed:

    python -m tests.integration.test_recorded_requests
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from graph.value.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI

RECORDED = Path(__file__).with_name("recorded_requests.jsonl")
SEOUL = TurnOptions(time_zone="Asia/Seoul")
Story = Callable[[Chat, FakeOpenAI], None]


def interval(chat: Chat, server: FakeOpenAI) -> None:
    """Folds, tools in a row and in one answer, small talk, a new attempt, a failure and its retry."""
    chat.ask(1, 4)
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text("서울은 낮입니다."), to="몇 시")
    chat.say("서울은 지금 몇 시야?", options=SEOUL)
    chat.wait_for_folds()
    calls = [
        ScriptedCall("get_current_time", '{"timezone": "Nowhere/None"}', "call-2"),
        ScriptedCall("reasoning", '{"question": "얼마야?", "material": "예산은 120만 원이다."}', "call-3"),
    ]
    server.script(tools(*calls, answer="찾아보겠습니다."), text("120만 원입니다."), text("그렇습니다."), to="예산")
    chat.say("예산이 얼마인지 따져 봐 줘")
    chat.wait_for_folds()
    chat.say("고마워요!")
    chat.wait_for_folds()
    chat.say(question(8))
    chat.wait_for_folds()
    chat.regenerate()
    chat.wait_for_folds()
    server.script(failure(400), to="질문 9번")
    chat.say(question(9))
    chat.wait_for_folds()
    chat.retry()
    chat.wait_for_folds()


def merge(chat: Chat, _: FakeOpenAI) -> None:
    chat.ask(1, 11)


def rolling(chat: Chat, _: FakeOpenAI) -> None:
    chat.ask(1, 8)


def compaction(chat: Chat, _: FakeOpenAI) -> None:
    """Compacts by itself, by hand, and goes back."""
    chat.ask(1, 6)
    chat.service.folds.compact(chat.session_id)
    chat.ask(7, 7)
    chat.service.folds.restore(chat.session_id, chat.service.folds.compactions(chat.session_id)[0].id)
    chat.ask(8, 8)
    chat.service.folds.reset(chat.session_id)
    chat.ask(9, 9)


def window(chat: Chat, _: FakeOpenAI) -> None:
    chat.ask(1, 5)


def guard(chat: Chat, server: FakeOpenAI) -> None:
    """A window that the chat outgrows, and a provider that finds an input too long all the same."""
    chat.ask(1, 8)
    server.script(failure(400, code="context_length_exceeded"), to="질문 9번")
    chat.ask(9, 9)


def english(chat: Chat, _: FakeOpenAI) -> None:
    for number in range(1, 6):
        chat.say(f"Question {number}: the move of the server is set for October {number}. Is anything missing? " * 3)
        chat.wait_for_folds()


def in_place(chat: Chat, server: FakeOpenAI) -> None:
    """Folds behind the chat: with a tool's result and a draft that is mended a turn later, then one mended at once."""
    chat.ask(1, 1)
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text("서울은 낮입니다."), to="몇 시")
    chat.say("서울은 지금 몇 시야?", options=SEOUL)
    server.script(text("서버 이전."), kind="summary")
    chat.ask(3, 5)
    server.script(text("서버 이전."), kind="summary")
    chat.ask(6, 7)


STORIES: dict[str, tuple[Story, dict[str, object]]] = {
    "interval": (interval, {}),
    "merge": (
        merge,
        {"records_budget_tokens": 500, "merged_together": 2, "newest_records": 1, "merged_tokens": 200},
    ),
    "rolling": (rolling, {"context_strategy": "rolling", "app_context_threshold": 500}),
    "compaction": (compaction, {"context_strategy": "compaction", "max_context_tokens": 1_000}),
    "window": (window, {"context_strategy": "window", "window_turns": 2}),
    "guard": (guard, {"context_strategy": "rolling", "model_window_tokens": 3_000}),
    "english": (english, {}),
    "in place": (in_place, {"fold_in_place": "always"}),
}


def play(name: str, folder: Path) -> list[str]:
    """Has the chat of that name and returns the bodies that were sent, in order."""
    story, changes = STORIES[name]
    with FakeOpenAI() as server, chat_opener(settings_maker(folder, server.url)) as open_chat:
        story(open_chat(clock=lambda: datetime(2026, 11, 21, 8, 30, tzinfo=UTC), **changes), server)
        return [exchange.sent.decode() for exchange in server.exchanges]


def recorded() -> dict[str, list[str]]:
    return {chat["name"]: chat["sent"] for chat in map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())}


@pytest.mark.parametrize("name", STORIES)
def test_what_is_sent_is_what_was_recorded(name: str, tmp_path: Path) -> None:
    assert play(name, tmp_path / "data") == recorded()[name]


def main() -> None:
    """Records all chats again."""
    lines = []
    for name in STORIES:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(json.dumps({"name": name, "sent": play(name, Path(folder) / "data")}, ensure_ascii=False))
    RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
