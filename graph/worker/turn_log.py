"""The event log of a turn that runs in this process, the live view made of it, and its metrics."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from graph.server.metrics import Metrics, TurnEnd
from graph.value.event import (
    ActionRequired,
    AnswerRestarted,
    Event,
    Folded,
    FoldWaiting,
    TokenDelta,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)
from graph.value.view import LiveTurn, StepStatus, ToolStep

_LOG = logging.getLogger(__name__)
_LAST_EVENTS: Final = (TurnFinished, TurnFailed, TurnStopped, ActionRequired)
_PLACES: Final = 2**30
_FAR: Final = 10**6


@dataclass(eq=False)
class _Watcher:
    """Who is told of the events, how many it was told of, and whether a thread is telling it now."""

    on_event: Callable[[Event], None]
    told: int = 0
    is_being_told: bool = False


class TurnLog:
    """The events of one attempt of a turn in order, for any number of watchers in any thread.

    Attributes:
        stop: Set to end the turn.
        first_place: The place of its first event. A log that goes on in an attempt begins anywhere far behind, so that
            no place in the logs before it, which may have been another process's, is one of its own. So does a copy.

    Args:
        turn: The turn's number.
        attempt: Its attempt.
        said: What the attempt has said before, if it goes on behind what a program answered.
        steps: Its tool calls before.
        is_copy: Whether another process has the log itself.
    """

    def __init__(
        self, turn: int, attempt: int, *, said: str = "", steps: tuple[ToolStep, ...] = (), is_copy: bool = False
    ) -> None:
        self.stop = threading.Event()
        self.first_place = 1 + (secrets.randbelow(_PLACES) * _FAR if said or steps or is_copy else 0)
        self._before = said, steps
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._watchers: list[_Watcher] = []
        self._said = f"{said}\n\n" if said else ""
        self._saying: list[str] = []
        self._has_paragraph = False
        self._view = LiveTurn(turn, attempt, "waiting", (), "", steps, stop_requested=False)

    @property
    def is_over(self) -> bool:
        """Whether the final event was appended."""
        return bool(self._events) and isinstance(self._events[-1], _LAST_EVENTS)

    @property
    def is_watched(self) -> bool:
        """Whether anybody is told of its events."""
        return bool(self._watchers)

    @property
    def partial_text(self) -> str:
        """The text that the current model call has streamed so far."""
        return "".join(self._saying)

    @property
    def sent_text(self) -> str:
        """All the text that was streamed so far, before and behind tool calls."""
        with self._changed:
            return "".join(event.text for event in self._events if isinstance(event, TokenDelta))

    def append(self, event: Event) -> None:
        """Appends an event and wakes the watchers; text behind a tool call begins a paragraph, as on the page."""
        with self._changed:
            self._apply(event)
            self._events.append(self._parted(event))
            self._changed.notify_all()
            watchers = tuple(self._watchers)
        for watcher in watchers:
            self._tell(watcher)

    def watch(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Passes on all events so far, then each new one, in order and each once; returns what ends that.

        The calls come in the caller's thread or that of the turn, one at a time, and hold no lock. They must not take
        long: the turn waits for them. One that raises is logged and is the watcher's last. When the returned function
        is called, a call in another thread may still be under way.
        """
        watcher = _Watcher(on_event)
        with self._changed:
            self._watchers.append(watcher)
        self._tell(watcher)

        return partial(self._forget, watcher)

    def view_behind(self, count: int) -> LiveTurn:
        """Returns what the turn looked like behind the first `count` of its events."""
        said, steps = self._before
        replayed = TurnLog(*self.place, said=said, steps=steps)
        for event in self.events()[:count]:
            replayed.append(event)
        return replayed.view()

    @property
    def place(self) -> tuple[int, int]:
        """The numbers of the turn and of the attempt."""
        return self._view.number, self._view.attempt

    def events(self, after: int = 0) -> list[Event]:
        """Returns the events so far, without the first `after` of them."""
        with self._changed:
            return self._events[after:]

    def view(self) -> LiveTurn:
        """Returns the turn as it is now."""
        with self._changed:
            return replace(self._view, text=self._said + "".join(self._saying), stop_requested=self.stop.is_set())

    def wait_for_news(self, seen: LiveTurn | None, timeout_seconds: float) -> None:
        """Waits until the turn is over or looks different from `seen`, but no longer than this."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_over or self.view() != seen, timeout_seconds)

    def follow(self, *, timeout_seconds: float | None = None) -> Iterator[Event]:
        """Yields all events from the first to the final one, waiting for new ones.

        Args:
            timeout_seconds: The iteration ends after this long without a new event; None waits forever.
        """
        seen = 0
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: len(self._events) > seen, timeout_seconds):  # noqa: B023 - used at once
                    return
                fresh = self._events[seen:]
            yield from fresh
            seen += len(fresh)
            if isinstance(fresh[-1], _LAST_EVENTS):
                return

    def wait_for_end(self, timeout_seconds: float) -> None:
        """Waits for the final event, at most this long."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_over, timeout_seconds)

    def _tell(self, watcher: _Watcher) -> None:
        """Tells a watcher all that it wasn't told; if another thread is at it, that one goes on with what is new."""
        with self._changed:
            if watcher.is_being_told:
                return
            watcher.is_being_told = True
        while (event := self._next_for(watcher)) is not None:
            try:
                watcher.on_event(event)
            except Exception:  # noqa: BLE001 - the edge to the watcher: neither the turn nor other watchers may suffer
                _LOG.exception("a watcher of turn %d failed", self._view.number)
                self._forget(watcher)

    def _forget(self, watcher: _Watcher) -> None:
        with self._changed:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

    def _next_for(self, watcher: _Watcher) -> Event | None:
        """Returns the next event for a watcher; None if there is none, or it has been detached."""
        with self._changed:
            if watcher.told == len(self._events) or watcher not in self._watchers:
                watcher.is_being_told = False
                return None
            watcher.told += 1
            return self._events[watcher.told - 1]

    def _apply(self, event: Event) -> None:
        match event:
            case FoldWaiting(turns):
                self._view = replace(self._view, phase="folding", phase_turns=turns)
            case TurnStarted() | Folded():
                self._view = replace(self._view, phase="waiting", phase_turns=())
            case TokenDelta(text):
                self._saying += [text] if text else []
                self._view = replace(self._view, phase="answering", phase_turns=())
            case AnswerRestarted():
                self._saying.clear()
                self._view = replace(self._view, phase="waiting", phase_turns=())
            case ToolStarted(call_id, name, arguments):
                self._end_paragraph()
                step = ToolStep(call_id, name, arguments, "", "running", None)
                self._view = replace(self._view, phase="tool", phase_turns=(), steps=(*self._view.steps, step))
            case ToolFinished():
                steps = tuple(
                    _finished(step, event) if step.call_id == event.call_id else step for step in self._view.steps
                )
                is_running = any(step.status == "running" for step in steps)
                self._view = replace(self._view, phase="tool" if is_running else "waiting", steps=steps)

    def _end_paragraph(self) -> None:
        """Keeps the text before a tool call as a paragraph; the text after it belongs to another message."""
        said = "".join(self._saying).strip()
        if said:
            self._said += said + "\n\n"
            self._has_paragraph = True
        self._saying.clear()

    def _parted(self, event: Event) -> Event:
        if isinstance(event, TokenDelta) and event.text and self._has_paragraph and len(self._saying) == 1:
            return TokenDelta(f"\n\n{event.text}")
        return event


def _finished(step: ToolStep, event: ToolFinished) -> ToolStep:
    status: StepStatus = "error" if event.is_error else "done"
    return replace(step, result=event.result, status=status, seconds=event.seconds, turns=event.turns)


_ENDS: Final[Mapping[type[Event], TurnEnd]] = {
    TurnFinished: "finished",
    ActionRequired: "requires_action",
    TurnStopped: "stopped",
    TurnFailed: "failed",
}


class TurnMeter:
    """Counts how a turn ends, and how long it takes from now until its first word and until its end.

    Usage:
        >>> log.watch(TurnMeter(metrics).hear)
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._began = time.monotonic()
        self._is_silent = True

    def hear(self, event: Event) -> None:
        """Takes the next event of the turn."""
        if isinstance(event, TokenDelta):
            if self._is_silent:
                self._is_silent = False
                self._metrics.first_word(time.monotonic() - self._began)
        elif (end := _ENDS.get(type(event))) is not None:
            code = event.code if isinstance(event, TurnFailed) else ""
            self._metrics.turn_ended(end, seconds=time.monotonic() - self._began, error_code=code)
