"""What runs beside the turns: the queue of folds, the log of a turn, the watch of stops, and the newest values."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue

import pytest

from graph.model.caller import StopWatch
from graph.node.job_queue import JobQueue, Lane
from graph.server.newest import Newest
from graph.value.error import DatabaseUnreachableError
from graph.value.event import (
    AnswerRestarted,
    Event,
    ThoughtDelta,
    TokenDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from graph.worker.turn_log import TurnLog

ONE: Lane = ("one", True)
OTHER: Lane = ("other", True)
SECONDS = 10.0


def test_outage_in_a_job_is_one_line_of_the_log_and_a_defect_has_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(error: Exception) -> Callable[[threading.Event], bool]:
        def run(_: threading.Event) -> bool:
            raise error

        return run

    works = Works(1)
    works.queue.put(ONE, "outage", fail(DatabaseUnreachableError()))
    works.queue.put(OTHER, "defect", fail(KeyError("x")))
    works.wait_until_idle()
    works.queue.close()
    lines = [(record.getMessage(), record.exc_info is not None) for record in caplog.records]
    assert lines == [
        ("fold of session=one ended: database_unreachable", False),
        ("fold of session=other ended by a defect", True),
    ]


class Works:
    """Puts work into a queue that tells when it begins, and goes on once it's let go or told to stop."""

    def __init__(self, max_threads: int, quiet_seconds: float = 0.0) -> None:
        self.queue = JobQueue("fold", max_threads=max_threads, quiet_seconds=lambda: quiet_seconds)
        self.started: list[str] = []
        self.ended: list[str] = []
        self._gates: dict[str, threading.Event] = {}
        self._change = threading.Condition()

    def work(self, name: str, *, goes_on: bool = True) -> Callable[[threading.Event], bool]:
        gate = self._gates.setdefault(name, threading.Event())

        def run(stop: threading.Event) -> bool:
            with self._change:
                self.started.append(name)
                self._change.notify_all()
            while not gate.wait(0.005) and not stop.is_set():
                pass
            with self._change:
                self.ended.append(name + (" early" if stop.is_set() else ""))
            return goes_on

        return run

    def put(self, lane: Lane, *names: str) -> None:
        for name in names:
            self.queue.put(lane, name, self.work(name))

    def let_go(self, *names: str) -> None:
        for name in names:
            self._gates.setdefault(name, threading.Event()).set()

    def wait_for(self, *names: str) -> None:
        with self._change:
            assert self._change.wait_for(lambda: set(names) <= set(self.started), SECONDS), self.started

    def wait_until_idle(self, session_id: str = "one") -> None:
        self.wait_until(lambda: self.queue.is_idle(session_id))

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        for _ in range(int(SECONDS / 0.005)):
            if is_true():
                return
            threading.Event().wait(0.005)
        raise AssertionError(self.started, self.ended)


@pytest.fixture
def works() -> Iterator[Works]:
    opened = Works(max_threads=2)
    yield opened
    opened.queue.close()


def test_work_of_a_lane_goes_one_after_the_other_and_lanes_side_by_side(works: Works) -> None:
    works.put(ONE, "a", "b", "c")
    works.put(OTHER, "x")
    works.wait_for("a", "x")
    assert set(works.started) == {"a", "x"}
    works.let_go("a")
    works.wait_for("b")
    assert "c" not in works.started
    works.let_go("b", "c", "x")
    works.wait_until_idle()
    assert [name for name in works.started if name != "x"] == ["a", "b", "c"]


def test_lanes_take_turns_at_the_threads(works: Works) -> None:
    works.put(ONE, "stuck")
    works.put(OTHER, "a", "b")
    works.put(("third", True), "x")
    works.wait_for("stuck", "a")
    works.let_go("a")
    works.wait_for("x")
    assert "b" not in works.started
    works.let_go("stuck", "b", "x")


def test_same_work_is_queued_once_while_it_is_queued_or_running(works: Works) -> None:
    works.put(ONE, "a")
    works.wait_for("a")
    for _ in range(3):
        works.queue.put(ONE, "a", works.work("a again"))
        works.put(ONE, "b")
    works.let_go("a", "b")
    works.wait_until_idle()
    assert works.started == ["a", "b"]
    works.queue.put(ONE, "a", works.work("a later"))
    works.wait_for("a later")
    works.let_go("a later")


def test_urgent_work_goes_first_also_if_it_was_queued_before(works: Works) -> None:
    works.put(ONE, "a", "b", "c")
    works.wait_for("a")
    works.queue.put(ONE, "c", works.work("c again"), is_urgent=True)
    works.queue.put(ONE, "a", works.work("a again"), is_urgent=True)
    works.let_go("a", "b", "c")
    works.wait_until_idle()
    assert works.started == ["a", "c", "b"]


def test_failed_work_takes_what_is_behind_it_along(works: Works) -> None:
    def broken(_: threading.Event) -> bool:
        raise RuntimeError

    works.queue.put(ONE, "broken", broken)
    works.wait_until_idle()
    works.queue.put(ONE, "a", works.work("a", goes_on=False))
    works.put(ONE, "b")
    works.put(("one", False), "merge")
    works.wait_for("a", "merge")
    works.let_go("a", "b", "merge")
    works.wait_until_idle()
    assert sorted(works.started) == ["a", "merge"]


def test_failed_work_drops_what_was_put_with_it_however_soon_it_fails(works: Works) -> None:
    def items() -> Iterator[tuple[Lane, str, Callable[[threading.Event], bool]]]:
        works.let_go("a")
        yield ONE, "a", works.work("a", goes_on=False)
        works.wait_for("a")
        time.sleep(0.1)  # for its thread to drop what stands behind it, if it could
        yield ONE, "b", works.work("b")

    works.queue.put_all(items())
    works.let_go("b")
    works.wait_until_idle()
    assert works.started == ["a"]


def test_only_what_has_not_begun_is_withdrawn(works: Works) -> None:
    works.put(ONE, "a", "b")
    works.wait_for("a")
    for name in ("a", "b", "unknown"):
        works.queue.withdraw(ONE, name)
    works.queue.withdraw(OTHER, "a")
    assert (works.queue.has(ONE, "a"), works.queue.has(ONE, "b")) == (True, False)
    works.let_go("a", "b")
    works.wait_until_idle()
    assert works.ended == ["a"]


def test_forgetting_a_session_ends_its_work_and_no_other(works: Works) -> None:
    works.put(ONE, "a", "b")
    works.put(OTHER, "x")
    works.wait_for("a", "x")
    works.queue.forget("one")
    works.wait_until_idle()
    assert works.ended == ["a early"]
    assert not works.queue.is_idle("other")
    works.let_go("x")


def test_closing_ends_what_runs_and_begins_nothing_more() -> None:
    works = Works(max_threads=1)
    works.put(ONE, "a", "b")
    works.put(OTHER, "x")
    works.wait_for("a")
    works.queue.close()
    works.put(ONE, "late")
    assert (works.started, works.ended) == (["a"], ["a early"])


# Where jobs give way to turns


def test_what_runs_stops_for_a_turn_of_any_session_and_begins_anew_after_it(works: Works) -> None:
    works.put(ONE, "a", "b")
    works.put(OTHER, "x")
    works.wait_for("a", "x")
    works.queue.hold("one")
    works.wait_until(lambda: len(works.ended) == len(("a", "x")))
    works.put(ONE, "c")
    works.put(("third", True), "y")
    works.wait_for("y")
    assert sorted(works.started) == ["a", "x", "y"]
    works.let_go("y")
    works.queue.release("one")
    works.wait_until(lambda: works.started.count("a") == works.started.count("x") == 2)
    works.let_go("a", "b", "c", "x")
    works.wait_until_idle()
    assert [name for name in works.ended if name[0] in "abc"] == ["a early", "a", "b", "c"]


def test_work_is_stopped_twice_and_then_finished(works: Works) -> None:
    works.put(ONE, "a")
    for count in (1, 2):
        works.wait_until(lambda count=count: works.started.count("a") == count)  # type: ignore[misc]
        assert not works.queue.is_firm(ONE, "a")
        works.queue.hold("one")
        works.wait_until(lambda count=count: len(works.ended) == count)  # type: ignore[misc]
        works.queue.release("one")
    works.wait_until(lambda: works.queue.is_firm(ONE, "a"))
    works.queue.hold("one")
    works.let_go("a")
    works.wait_until_idle()
    works.queue.release("one")
    assert works.ended == ["a early", "a early", "a"]


def test_work_that_a_turn_waits_for_begins_and_goes_on_while_its_session_is_held(works: Works) -> None:
    works.put(ONE, "a", "b")
    works.wait_for("a")
    works.queue.hold("one")
    works.wait_until(lambda: works.ended == ["a early"])
    works.queue.put(ONE, "b", works.work("b"), is_urgent=True)
    works.wait_for("b")
    works.queue.hold("other")
    works.let_go("b")
    works.wait_until(lambda: "b" in works.ended)
    works.queue.release("other")
    assert works.queue.has(ONE, "a")
    works.queue.withdraw(ONE, "a")
    works.wait_until_idle()
    works.queue.release("one")
    assert works.ended == ["a early", "b"]


def test_the_search_for_work_is_neither_stopped_nor_held(works: Works) -> None:
    works.put(("one", None), "search")
    works.wait_for("search")
    works.queue.hold("one")
    works.let_go("search")
    works.wait_until_idle()
    works.put(("one", None), "search again")
    works.let_go("search again")
    works.wait_until_idle()
    assert works.ended == ["search", "search again"]


def test_turns_that_overlap_hold_until_the_last_has_ended_and_a_deleted_session_leaves_nothing(works: Works) -> None:
    works.queue.hold("one")
    works.queue.hold("one")
    works.put(ONE, "a")
    works.put(OTHER, "x")
    works.wait_for("x")
    works.let_go("x")
    works.queue.release("one")
    works.wait_until_idle("other")
    assert works.started == ["x"]
    works.queue.forget("one")
    assert works.queue.is_idle("one")
    works.queue.release("one")
    assert works.queue.count() == 0


def test_work_that_was_stopped_twice_waits_for_quiet(works: Works) -> None:
    works.queue.close()
    slow = Works(max_threads=2, quiet_seconds=60.0)
    slow.queue.hold("one")
    slow.put(ONE, "a")
    slow.queue.release("one")
    slow.queue.hold("one")
    slow.queue.release("one")
    threading.Event().wait(0.1)
    assert slow.started == []
    slow.queue.close()


def test_no_work_begins_between_a_turn_and_the_one_that_is_expected(works: Works) -> None:
    works.queue.close()
    quick = Works(max_threads=2, quiet_seconds=1.0)
    quick.queue.hold("one")
    quick.queue.expect("one")
    assert not quick.queue.is_held("one")
    quick.put(ONE, "a")
    quick.put(OTHER, "x")
    quick.queue.release("one")
    quick.wait_for("x")
    threading.Event().wait(0.3)  # three times what it waits otherwise
    assert quick.started == ["x"]
    assert (quick.queue.is_held("one"), quick.queue.is_held("other")) == (True, False)
    quick.queue.hold("one")
    assert quick.queue.is_held("one")
    quick.queue.release("one")
    quick.wait_for("a")
    assert not quick.queue.is_held("one")
    quick.let_go("a", "x")
    quick.wait_until_idle()
    quick.queue.expect("one")
    quick.put(ONE, "b")
    quick.wait_for("b")  # the turn hasn't come
    assert not quick.queue.is_held("one")
    quick.queue.close()


FIRST, SECOND, LAST = TurnStarted("s", 1, 1), TokenDelta("a"), TurnFinished(1, "m", "a")


@pytest.fixture
def log() -> TurnLog:
    return TurnLog(1, 1)


def test_watcher_is_told_all_of_a_turn_until_it_is_detached_or_fails(
    log: TurnLog, caplog: pytest.LogCaptureFixture
) -> None:
    failing: list[Event] = []
    detached: list[Event] = []
    late: list[Event] = []

    def fail(event: Event) -> None:
        failing.append(event)
        raise RuntimeError

    def detach_at_second(event: Event) -> None:
        detached.append(event)
        if event is SECOND:
            detach()
            detach()
            log.watch(late.append)

    log.append(FIRST)
    log.watch(fail)
    detach = log.watch(detach_at_second)
    assert detached == [FIRST]
    log.append(SECOND)
    log.append(LAST)
    assert failing == [FIRST]
    assert "a watcher of turn 1 failed" in caplog.text
    assert detached == [FIRST, SECOND]
    assert late == [FIRST, SECOND, LAST]
    assert log.is_over


def test_thoughts_of_all_calls_are_joined_and_those_of_a_failed_one_are_void(log: TurnLog) -> None:
    started: list[Event] = [FIRST, ThoughtDelta("I look "), ThoughtDelta("it up.")]
    for event in started:
        log.append(event)
    assert (log.view().phase, log.view().thinking_since > 0) == ("thinking", True)
    log.append(ToolStarted("t", "recall", "{}"))
    assert (log.view().phase, log.view().thinking_since) == ("tool", 0)
    log.append(ToolFinished("t", "recall", "x", is_error=False, seconds=0.1))
    log.append(ThoughtDelta("Lost"))
    log.append(AnswerRestarted())
    log.append(ThoughtDelta("Found."))
    log.append(SECOND)
    view = log.view()
    assert (view.phase, view.thoughts, view.text) == ("answering", "I look it up.\n\nFound.", "a")
    assert log.view_behind(len(log.events())).thoughts == view.thoughts
    told = "".join(event.text for event in log.events() if isinstance(event, ThoughtDelta))
    assert told == "I look it up.\n\nLost\n\nFound."


def test_progress_is_that_of_a_running_call_and_none_comes_behind_the_end(log: TurnLog) -> None:
    log.append(ToolStarted("t", "notes__look", "{}", "notes", "Look"))
    log.append(ToolProgress("t", "half"))
    assert [(step.title, step.progress) for step in log.view().steps] == [("Look", "half")]
    log.append(ToolFinished("t", "notes__look", "x", is_error=False, seconds=0.1, images=("image:1",)))
    log.append(ToolProgress("t", "late"))
    assert [(step.progress, step.images) for step in log.view().steps] == [("", ("image:1",))]
    log.append(LAST)
    log.append(ToolProgress("t", "much later"))
    assert log.is_over


def test_what_was_sent_is_what_a_program_has(log: TurnLog) -> None:
    sent: list[Event] = [FIRST, TokenDelta("Hm"), AnswerRestarted(is_sorted=True), ThoughtDelta("Hm"), TokenDelta("9")]
    for event in [*sent, LAST]:
        log.append(event)
    assert (log.sent_text(supports_restart=False), log.sent_text(supports_restart=True)) == ("Hm9", "9")
    assert log.partial_text == "9"


def test_no_event_is_lost_or_told_twice(log: TurnLog) -> None:
    events: list[Event] = [FIRST, *(TokenDelta(str(number)) for number in range(2_000)), LAST]
    told: list[list[Event]] = [[] for _ in range(8)]
    started = threading.Barrier(9)

    def watch(mine: list[Event], after: int) -> None:
        started.wait()
        while len(list(log.follow(timeout_seconds=0))) < after:
            pass
        log.watch(mine.append)

    def write() -> None:
        started.wait()
        for event in events:
            log.append(event)

    threads = [threading.Thread(target=partial(watch, mine, 200 * index)) for index, mine in enumerate(told)]
    threads.append(threading.Thread(target=write))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [events] * 8


def test_stop_wakes_its_own_call_and_no_other() -> None:
    watch, woken = StopWatch(), SimpleQueue[str]()
    first, second = threading.Event(), threading.Event()
    with watch.watching(first, lambda: woken.put("first")), watch.watching(second, lambda: woken.put("second")):
        second.set()
        assert woken.get(timeout=10) == "second"
        first.set()
        while woken.get(timeout=10) != "first":
            pass


def test_next_call_is_watched_after_the_last_one_has_ended() -> None:
    others, watch, stop = {*threading.enumerate()}, StopWatch(), threading.Event()
    stop.set()
    for _ in range(3):
        woken = SimpleQueue[None]()
        with watch.watching(stop, lambda: woken.put(None)):  # noqa: B023 - called within the block
            woken.get(timeout=10)
        for thread in {*threading.enumerate()} - others:
            thread.join(timeout=10)
            assert not thread.is_alive()


def test_values_that_were_put_last_are_kept() -> None:
    retained: Newest[str, int] = Newest(2)
    for name, value in [("a", 1), ("b", 2), ("a", 3), ("c", 4)]:
        retained.put(name, value)
    assert (retained.get("a"), retained.get("b"), retained.get("c")) == (3, None, 4)
    assert ("a" in retained, "b" in retained, len(retained)) == (True, False, 2)
    retained.drop("a")
    retained.drop("b")
    assert (retained.get("a"), len(retained)) == (None, 1)
