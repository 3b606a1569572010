from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from graph.event import Event, TokenDelta, TurnFinished, TurnStarted
from graph.worker.turn_log import TurnLog

FIRST, SECOND, LAST = TurnStarted("s", 1, 1), TokenDelta("a"), TurnFinished(1, "m", "a")


@pytest.fixture
def log() -> TurnLog:
    return TurnLog(1, 1)


def deltas(count: int) -> Iterator[Event]:
    yield from (TokenDelta(str(number)) for number in range(count))


def test_a_watcher_is_told_what_was_before_and_what_comes(log: TurnLog) -> None:
    told: list[Event] = []
    log.append(FIRST)
    log.watch(told.append)
    assert told == [FIRST]
    log.append(SECOND)
    log.append(LAST)
    assert told == [FIRST, SECOND, LAST]


def test_a_watcher_that_comes_late_is_told_all_of_it(log: TurnLog) -> None:
    told: list[Event] = []
    for event in (FIRST, SECOND, LAST):
        log.append(event)
    log.watch(told.append)
    assert told == [FIRST, SECOND, LAST]


def test_a_watcher_that_is_detached_is_told_nothing_more(log: TurnLog) -> None:
    told: list[Event] = []
    detach = log.watch(told.append)
    log.append(FIRST)
    detach()
    detach()
    log.append(SECOND)
    assert told == [FIRST]


def test_a_watcher_may_detach_itself_and_add_another_while_it_is_told(log: TurnLog) -> None:
    told: list[Event] = []
    late: list[Event] = []
    detaching: list[Callable[[], None]] = []

    def on_event(event: Event) -> None:
        told.append(event)
        if event is SECOND:
            detaching[0]()
            log.watch(late.append)

    detaching.append(log.watch(on_event))
    for event in (FIRST, SECOND, LAST):
        log.append(event)
    assert told == [FIRST, SECOND]
    assert late == [FIRST, SECOND, LAST]


def test_a_watcher_that_fails_harms_neither_the_turn_nor_the_others(
    log: TurnLog, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Event] = []
    told: list[Event] = []

    def fail(event: Event) -> None:
        seen.append(event)
        raise RuntimeError

    log.watch(fail)
    log.watch(told.append)
    for event in (FIRST, SECOND, LAST):
        log.append(event)
    assert seen == [FIRST]
    assert told == [FIRST, SECOND, LAST]
    assert log.is_over
    assert "a watcher of turn 1 failed" in caplog.text


def test_no_event_is_lost_or_told_twice_whoever_comes_while_others_are_told(log: TurnLog) -> None:
    events = [FIRST, *deltas(2_000), LAST]
    told: list[list[Event]] = [[] for _ in range(8)]
    begun = threading.Barrier(9)

    def watch(mine: list[Event], after: int) -> None:
        begun.wait()
        while len(list_of(log)) < after:
            pass
        log.watch(mine.append)

    def write() -> None:
        begun.wait()
        for event in events:
            log.append(event)

    threads = [threading.Thread(target=partial(watch, mine, 200 * place)) for place, mine in enumerate(told)]
    threads.append(threading.Thread(target=write))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [events] * 8


def list_of(log: TurnLog) -> list[Event]:
    return list(log.follow(timeout_seconds=0))
