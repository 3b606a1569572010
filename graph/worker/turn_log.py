"""The event log of a turn that runs in this process, and the live view derived from it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from graph.event import (
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
from graph.view import LiveTurn, StepStatus, ToolStep

_LAST_EVENTS: Final = (TurnFinished, TurnFailed, TurnStopped, ActionRequired)


class TurnLog:
    """The events of one attempt of a turn in order, for any number of watchers in any thread.

    Attributes:
        stop: Set to end the turn.
    """

    def __init__(self, turn: int, attempt: int) -> None:
        self.stop = threading.Event()
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._said = ""
        self._saying: list[str] = []
        self._view = LiveTurn(turn, attempt, "waiting", (), "", (), stop_requested=False)

    @property
    def is_over(self) -> bool:
        """Whether the final event was appended."""
        return bool(self._events) and isinstance(self._events[-1], _LAST_EVENTS)

    @property
    def partial_text(self) -> str:
        """The text that the current model call has streamed so far."""
        return "".join(self._saying)

    def append(self, event: Event) -> None:
        """Appends an event and wakes the watchers."""
        with self._changed:
            self._apply(event)
            self._events.append(event)
            self._changed.notify_all()

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

    def _apply(self, event: Event) -> None:
        match event:
            case FoldWaiting(turns):
                self._view = replace(self._view, phase="folding", phase_turns=turns)
            case TurnStarted() | Folded():
                self._view = replace(self._view, phase="waiting", phase_turns=())
            case TokenDelta(text):
                self._saying.append(text)
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
        self._saying.clear()


def _finished(step: ToolStep, event: ToolFinished) -> ToolStep:
    status: StepStatus = "error" if event.is_error else "done"
    return replace(step, result=event.result, status=status, seconds=event.seconds, turns=event.turns)
