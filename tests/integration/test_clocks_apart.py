from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from graph.settings import Settings
from graph.store.postgres.pooled_saver import PooledSaver
from graph.store.stores import Stores, open_stores
from tests.fake.ahead_saver import AheadSaver
from tests.fake.body import faults, shape
from tests.fake.chat import Chat
from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def server_ahead(open_chat: OpenChat, url: SecretStr, seconds: float, session_id: str = "") -> Chat:
    """A chat on a server whose clock differs, in what it writes and in the ids of its checkpoints."""

    @contextmanager
    def ahead(settings: Settings, clock: Callable[[], datetime]) -> Iterator[Stores]:
        with open_stores(settings, clock) as stores:
            assert isinstance(stores.checkpointer, PooledSaver)
            yield replace(stores, checkpointer=AheadSaver(stores.checkpointer.pool, seconds))

    return open_chat(
        session_id,
        clock=lambda: datetime.now(UTC) + timedelta(seconds=seconds),
        stores=ahead,
        chat_database_url=url,
        turns_per_minute=10_000,
    )


def test_a_fork_by_a_server_whose_clock_is_behind_heads_the_list(open_chat: OpenChat, postgres_head_url: str) -> None:
    chat = server_ahead(open_chat, SecretStr(postgres_head_url), -60)
    chat.ask(1, 1)
    forked = chat.service.sessions.fork(chat.session_id, after_turn=1)
    assert [item.session_id for item in chat.service.sessions.list()] == [forked, chat.session_id]


def test_fifty_turns_on_two_servers_by_turns_miss_nothing(
    open_chat: OpenChat, server: FakeOpenAI, postgres_head_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="graph.recovery")
    url = SecretStr(postgres_head_url)
    first = server_ahead(open_chat, url, 60)
    second = server_ahead(open_chat, url, -60, first.session_id)
    for number in range(1, 51):
        (first, second)[number % 2].ask(number, number)
    bodies = server.bodies("chat")
    assert len(bodies) == 50
    assert all(faults(body["messages"]) == [] for body in bodies)
    for number, body in enumerate(bodies, 1):
        covered = (number - 1) // 3 * 3
        blocks = [(first, first + 2) for first in range(1, covered, 3)]
        assert shape(body) == [*blocks, *range(covered + 1, number + 1)]
    assert [turn.number for turn in second.turns] == list(range(1, 51))
    assert "rebuilt" not in caplog.text, "each server left the state that the other one needs"
