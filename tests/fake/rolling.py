"""A chat under the strategy "rolling", and what it sent and stored."""

from __future__ import annotations

from typing import Any

from tests.fake.body import content_of, roles
from tests.fake.chat import Chat
from tests.fake.openai_server import FakeOpenAI

ROLLING: dict[str, Any] = {"context_strategy": "rolling", "app_context_threshold": 500}


def sent(server: FakeOpenAI, index: int = -1) -> str:
    """The one user message of a chat call."""
    body = server.bodies("chat")[index]
    assert roles(body) == ["system", "user"]
    return content_of(body["messages"][1])


def prompts(server: FakeOpenAI) -> list[str]:
    return [content_of(body["messages"][-1]) for body in server.bodies("summary")]


def row(chat: Chat, columns: str) -> list[tuple[object, ...]]:
    return chat.rows(f"SELECT {columns} FROM record WHERE session_id = ? ORDER BY sequence", chat.session_id)  # noqa: S608  # columns are the test's own
