from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from graph.event import TokenDelta, TurnFailed, TurnFinished
from graph.model.catalog import Catalog
from graph.model_error import ModelError, UnreachableError
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI

# The list may take five seconds and is given one; each of these has what is between them on a machine under load.
SOON_SECONDS = 4.5


class HeldFetch:
    """A list that comes when the test lets it."""

    def __init__(self, *names: str, error: ModelError | None = None) -> None:
        self.names = names
        self.error = error
        self.count = 0
        self.gate = threading.Event()

    def __call__(self) -> list[Mapping[str, Any]]:
        self.count += 1
        assert self.gate.wait(30)
        if self.error is not None:
            raise self.error
        return [{"id": name} for name in self.names]


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fetch() -> Iterator[HeldFetch]:
    held = HeldFetch("one", "two")
    yield held
    held.gate.set()


def names(catalog: Catalog) -> list[str]:
    return [entry.name for entry in catalog.entries()]


def known(catalog: Catalog) -> list[str]:
    return [entry.name for entry in catalog.known()]


def wait_for_count(fetch: HeldFetch, count: int) -> None:
    ends_at = time.monotonic() + 10
    while fetch.count < count:
        assert time.monotonic() < ends_at
        time.sleep(0.005)


def test_one_fetch_serves_all_who_ask_meanwhile(fetch: HeldFetch, clock: Clock) -> None:
    catalog = Catalog(fetch, clock=clock)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(names, catalog) for _ in range(8)]
        wait_for_count(fetch, 1)
        fetch.gate.set()
        assert [future.result(10) for future in asked] == [["one", "two"]] * 8
    assert fetch.count == 1


def test_a_renewal_that_hangs_holds_up_nobody(fetch: HeldFetch, clock: Clock) -> None:
    catalog = Catalog(fetch, clock=clock)
    fetch.gate.set()
    assert names(catalog) == ["one", "two"]
    fetch.gate.clear()
    clock.seconds = 301
    # Would either wait, this would never end: nothing lets the list come.
    assert (names(catalog), known(catalog)) == (["one", "two"], ["one", "two"])
    wait_for_count(fetch, 2)
    assert names(catalog) == ["one", "two"]
    assert fetch.count == 2


def test_after_a_failure_only_who_needs_the_list_waits_for_the_next(clock: Clock) -> None:
    fetch = HeldFetch("one", error=UnreachableError())
    fetch.gate.set()
    catalog = Catalog(fetch, clock=clock, first_wait_seconds=60)
    with pytest.raises(UnreachableError):
        catalog.entries()
    fetch.gate.clear()
    fetch.error = None
    with pytest.raises(UnreachableError):
        catalog.entries()
    clock.seconds = 31
    began = time.monotonic()
    assert known(catalog) == []
    assert time.monotonic() - began < 30
    with ThreadPoolExecutor(1) as pool:
        needed = pool.submit(names, catalog)
        wait_for_count(fetch, 2)
        fetch.gate.set()
        assert needed.result(10) == ["one"]


def test_a_defect_in_reading_the_list_is_told_and_ends_no_thread_for_good(clock: Clock) -> None:
    def fetch() -> list[Mapping[str, Any]]:
        raise RuntimeError

    catalog = Catalog(fetch, clock=clock)
    for _ in range(2):
        with pytest.raises(ModelError):
            catalog.entries()
        clock.seconds += 31


def test_a_list_that_hangs_holds_up_neither_page_nor_turn(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.model_list_reply = hang()
    with open_chat(model_window_tokens=None) as chat:
        began = time.monotonic()
        assert chat.service.folds.gauge(None).window_tokens == 8_192
        assert [option.name for option in chat.service.sessions.model_options()] == ["scripted-model"]
        assert time.monotonic() - began < SOON_SECONDS
    with open_chat(model_window_tokens=None) as chat:
        began = time.monotonic()
        chat.start(question(1))
        log = chat.service.turns.follow(chat.session_id, timeout_seconds=30)
        next(event for event in log if isinstance(event, TokenDelta))
        assert time.monotonic() - began < SOON_SECONDS
        assert isinstance(chat.events()[-1], TurnFinished)
        began = time.monotonic()
    assert time.monotonic() - began < SOON_SECONDS


def test_a_turn_waits_for_the_list_once_and_only_if_its_model_is_not_known_otherwise(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.model_list_reply = hang()
    service = open_chat(model_window_tokens=None, chat_model=None, openai_api_key=None).service
    began = time.monotonic()
    assert service.sessions.default_model() == ""
    assert time.monotonic() - began < SOON_SECONDS
    chat = Chat(service)
    ending = chat.say(question(1))[-1]
    assert isinstance(ending, TurnFailed)
    assert ending.code == "deadline"
    assert server.model_list_count == 1
    began = time.monotonic()
    assert isinstance(chat.retry()[-1], TurnFailed)
    assert service.sessions.default_model() == ""
    assert time.monotonic() - began < SOON_SECONDS
    assert server.model_list_count == 1
