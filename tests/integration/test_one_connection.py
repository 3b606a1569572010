from __future__ import annotations

import threading
import traceback
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI
from tests.integration.test_distribution import tell_story

pytestmark = pytest.mark.both_engines


@contextmanager
def second_connections() -> Iterator[set[str]]:
    """Collects who takes a connection from the pool while holding one: the innermost functions of ours."""
    held: dict[int, list[Any]] = defaultdict(list)
    found: set[str] = set()

    def take(_: object, record: Any, __: object) -> None:  # noqa: ANN401  # SQLAlchemy's signature
        holder = held[threading.get_ident()]
        if holder:
            names = [frame.name for frame in traceback.extract_stack() if "/graph/" in frame.filename]
            found.add(" > ".join(names[-6:]))
        holder.append(record)

    def give_back(_: object, record: Any) -> None:  # noqa: ANN401  # SQLAlchemy's signature
        for records in list(held.values()):
            if record in records:
                records.remove(record)

    event.listen(Pool, "checkout", take)
    event.listen(Pool, "checkin", give_back)
    try:
        yield found
    finally:
        event.remove(Pool, "checkout", take)
        event.remove(Pool, "checkin", give_back)


def test_nobody_takes_a_second_connection_while_holding_one(open_chat: OpenChat, server: FakeOpenAI) -> None:
    with second_connections() as found:
        tell_story(open_chat(heartbeat_seconds=0.05, lease_seconds=5, auto_titles=True), server)
    assert found == set()
