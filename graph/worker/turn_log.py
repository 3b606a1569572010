"""The event log of a turn run in this process, its live view and metrics; steps and last event of archived messages."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from graph.core.attached import urls_of
from graph.core.made import earlier_attempt
from graph.core.text import HIDING
from graph.core.turn import LOOKED_UP, MARK, RECALL_TOOL, closed_mark, text_of, words_of
from graph.recognise.client_turns import newest_calls, waiting_calls
from graph.server.metrics import Metrics, TurnEnd
from graph.store.turn import TurnRow
from graph.tool.recall import opened_turns
from graph.value.event import (
    LAST_EVENTS,
    ActionRequired,
    AnswerRestarted,
    CallRetried,
    Event,
    Folded,
    FoldWaiting,
    InputRead,
    PendingCall,
    ThoughtDelta,
    TokenDelta,
    ToolAsked,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)
from graph.value.view import LiveTurn, StepStatus, ToolStep
from prompt.system import framing
from prompt.tool import words

_LOG = logging.getLogger(__name__)
_STARTS: Final = 2**30
_FAR: Final = 10**6
_DECLINED: Final = {*words.DECLINED.values(), *framing.DECLINED.values()}


@dataclass(eq=False)
class _Watcher:
    """A subscriber, the number of events it was sent, and whether a thread is sending now."""

    on_event: Callable[[Event], None]
    sent_count: int = 0
    is_being_sent: bool = False


class _Thoughts:
    """What the model thinks in a turn: the thoughts of earlier calls, and those of the call in progress.

    Attributes:
        since: When the call began to think, None while it doesn't.
    """

    def __init__(self, text: str, seconds: float) -> None:
        self._before = f"{text}\n\n" if text else ""
        self._pieces: list[str] = []
        self._seconds = self._seconds_before = seconds
        self._call_began: float | None = None
        self.since: float | None = None

    @property
    def text(self) -> str:
        return self._before + "".join(self._pieces)

    @property
    def has_paragraph(self) -> bool:
        """True if the call has just begun to think, after another call of the turn."""
        return bool(self._before) and len(self._pieces) == 1

    @property
    def seconds(self) -> float:
        """How long it has thought so far, without the call that thinks now."""
        return self._seconds

    @property
    def all_seconds(self) -> float:
        return self._seconds + (0.0 if self.since is None else time.monotonic() - self.since)

    def hear(self, event: Event) -> None:
        if isinstance(event, ThoughtDelta | TokenDelta):
            self._call_began = self._call_began or time.monotonic()
        match event:
            case ThoughtDelta(text):
                self._pieces.append(text if self._pieces else text.lstrip("\n"))
                # Text that turns out to be thoughts has been thought from its beginning on.
                self.since = self.since or (time.monotonic() if len(self._pieces) > 1 else self._call_began)
            case TokenDelta():
                self._end()
            case AnswerRestarted(is_sorted):
                self._pieces.clear()
                self._call_began = self._call_began if is_sorted else None
                self._seconds, self.since = self._seconds_before, None
            case ToolStarted():
                self._end_call()

    def _end_call(self) -> None:
        self._end()
        self._before = f"{self.text.rstrip()}\n\n" if self.text.strip() else ""
        self._pieces.clear()
        self._call_began, self._seconds_before = None, self._seconds

    def _end(self) -> None:
        self._seconds, self.since = self.all_seconds, None


class TurnLog:
    """The events of one attempt of a turn, in order, for any number of subscribers in any thread.

    `text`, `steps`, `thoughts` and `thought_seconds` are from before a resumption. The log of a resumed attempt, or a
    copy of another process's, starts at a random, distant `first_position`, so that it shares none with earlier logs.
    """

    def __init__(  # most of them for a resumption
        self,
        turn: int,
        attempt: int,
        *,
        text: str = "",
        steps: tuple[ToolStep, ...] = (),
        thoughts: str = "",
        thought_seconds: float = 0.0,
        is_copy: bool = False,
    ) -> None:
        self.stop = threading.Event()
        self.first_position = 1 + (secrets.randbelow(_STARTS) * _FAR if text or steps or is_copy else 0)
        self._before = text, steps
        self._thoughts_before = thoughts, thought_seconds
        self._thoughts = _Thoughts(thoughts, thought_seconds)
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._watchers: list[_Watcher] = []
        self._text = f"{text}\n\n" if text else ""
        self._saying: list[str] = []
        self._has_paragraph = False
        self._clock = time.monotonic if not is_copy else float  # when another process began a phase isn't known
        since = self._clock()
        self._view = LiveTurn(turn, attempt, "waiting", (), "", steps, stop_requested=False, phase_since=since)

    @property
    def is_over(self) -> bool:
        return bool(self._events) and isinstance(self._events[-1], LAST_EVENTS)

    @property
    def is_watched(self) -> bool:
        return bool(self._watchers)

    @property
    def partial_text(self) -> str:
        return "".join(self._saying)

    @property
    def thoughts(self) -> str:
        """All that the model has thought in the turn so far."""
        return self._thoughts.text.strip()

    @property
    def thought_seconds(self) -> float:
        return self._thoughts.all_seconds

    def sent_text(self, *, supports_restart: bool) -> str:
        """Returns all text sent so far, before and after tool calls; what was revoked only if that can't be told."""
        sent: list[str] = []
        fixed_count = 0
        for event in self.events():
            match event:
                case TokenDelta(text):
                    sent.append(text)
                case ToolStarted():
                    fixed_count = len(sent)
                case AnswerRestarted() if supports_restart:
                    del sent[fixed_count:]
        return "".join(sent)

    def append(self, event: Event) -> None:
        """Appends an event and wakes the subscribers; text after a tool call starts a paragraph, as on the page."""
        with self._changed:
            if self.is_over and isinstance(event, ToolProgress):
                return  # of a call that was given up
            awaited = _awaited(self._view)
            self._apply(event)
            if _awaited(self._view) != awaited:
                self._view = replace(self._view, phase_since=self._clock())
            self._events.append(self._parted(event))
            self._changed.notify_all()
            watchers = tuple(self._watchers)
        for watcher in watchers:
            self._send(watcher)

    def watch(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Passes on all events so far, then each new one, in order and once; returns a function that unsubscribes.

        Calls happen in the caller's or the turn's thread, one at a time, without a lock, and must be fast: the turn
        waits for them. An exception is logged and ends the subscription. A call in another thread may still run after
        unsubscribing.
        """
        watcher = _Watcher(on_event)
        with self._changed:
            self._watchers.append(watcher)
        self._send(watcher)

        return partial(self._forget, watcher)

    def view_behind(self, count: int) -> LiveTurn:
        text, steps = self._before
        thoughts, seconds = self._thoughts_before
        replayed = TurnLog(*self.attempt_key, text=text, steps=steps, thoughts=thoughts, thought_seconds=seconds)
        for event in self.events()[:count]:
            replayed.append(event)
        return replayed.view()

    @property
    def attempt_key(self) -> tuple[int, int]:
        return self._view.number, self._view.attempt

    def events(self, after: int = 0) -> list[Event]:
        with self._changed:
            return self._events[after:]

    def view(self) -> LiveTurn:
        with self._changed:
            return replace(
                self._view,
                text=self._text + "".join(self._saying),
                stop_requested=self.stop.is_set(),
                thoughts=self.thoughts,
                thought_seconds=self._thoughts.seconds,
                thinking_since=self._thoughts.since or 0.0,
            )

    def wait_for_news(self, seen: LiveTurn | None, timeout_seconds: float) -> None:
        """Waits until the turn is over or its view differs from `seen`, at most `timeout_seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_over or self.view() != seen, timeout_seconds)

    def follow(self, *, timeout_seconds: float | None = None) -> Iterator[Event]:
        """Yields all events from the first to the final one.

        Ends after `timeout_seconds` without a new one, None waits forever.
        """
        seen = 0
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: len(self._events) > seen, timeout_seconds):  # noqa: B023 - used at once
                    return
                fresh = self._events[seen:]
            yield from fresh
            seen += len(fresh)
            if isinstance(fresh[-1], LAST_EVENTS):
                return

    def wait_for_end(self, timeout_seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.is_over, timeout_seconds)

    def _send(self, watcher: _Watcher) -> None:
        """Sends all pending events to a subscriber; if another thread is doing so, leaves new ones to it."""
        with self._changed:
            if watcher.is_being_sent:
                return
            watcher.is_being_sent = True
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
        with self._changed:
            if watcher.sent_count == len(self._events) or watcher not in self._watchers:
                watcher.is_being_sent = False
                return None
            watcher.sent_count += 1
            return self._events[watcher.sent_count - 1]

    def _apply(self, event: Event) -> None:
        self._thoughts.hear(event)
        match event:
            case FoldWaiting(turns):
                self._view = replace(self._view, phase="folding", phase_turns=turns)
            case TurnStarted() | Folded():
                self._view = replace(self._view, phase="waiting", phase_turns=())
            case InputRead(read, whole):
                percent = min(100, 100 * read // max(1, whole))
                self._view = replace(self._view, phase="reading", phase_turns=(), phase_percent=percent)
            case ThoughtDelta():
                self._view = replace(self._view, phase="thinking", phase_turns=())
            case TokenDelta(text):
                self._saying += [text] if text else []
                self._view = replace(self._view, phase="answering", phase_turns=())
            case AnswerRestarted():
                self._saying.clear()
                self._view = replace(self._view, phase="waiting", phase_turns=())
            case ToolStarted() | ToolProgress() | ToolFinished():
                self._apply_step(event)
            case CallRetried():
                self._view = replace(self._view, phase="waiting", phase_turns=(), retry=event)

    def _apply_step(self, event: ToolStarted | ToolProgress | ToolFinished) -> None:
        steps = self._view.steps
        match event:
            case ToolStarted(call_id, name, arguments, server, title):
                self._end_paragraph()
                step = ToolStep(call_id, name, arguments, "", "running", None, server=server, title=title)
                self._view = replace(self._view, phase="tool", phase_turns=(), steps=(*steps, step))
            case ToolProgress(call_id, text):
                told = (
                    replace(step, progress=text) if (step.call_id, step.status) == (call_id, "running") else step
                    for step in steps
                )
                self._view = replace(self._view, steps=tuple(told))
            case ToolFinished(call_id):
                steps = tuple(_finished(step, event) if step.call_id == call_id else step for step in steps)
                is_running = any(step.status == "running" for step in steps)
                self._view = replace(self._view, phase="tool" if is_running else "waiting", steps=steps, retry=None)

    def _end_paragraph(self) -> None:
        """Closes the text before a tool call as a paragraph; later text belongs to another message."""
        text = "".join(self._saying).strip()
        if text:
            self._text += text + "\n\n"
            self._has_paragraph = True
        self._saying.clear()

    def _parted(self, event: Event) -> Event:
        if isinstance(event, TokenDelta) and event.text and self._has_paragraph and len(self._saying) == 1:
            return TokenDelta(f"\n\n{event.text}")
        if isinstance(event, ThoughtDelta) and self._thoughts.has_paragraph:
            return ThoughtDelta("\n\n" + event.text.lstrip("\n"))
        return event


def _awaited(view: LiveTurn) -> tuple[object, ...]:
    return view.phase, view.phase_turns, view.retry


def _finished(step: ToolStep, event: ToolFinished) -> ToolStep:
    return replace(
        step,
        result=event.result,
        status=_status(event.result, is_error=event.is_error),
        seconds=event.seconds,
        turns=event.turns,
        progress="",
        images=event.images,
    )


def _status(result: str, *, is_error: bool) -> StepStatus:
    """Returns how a call ended; one that the user didn't allow is known by the sentence in place of its result."""
    if not is_error:
        return "done"
    return "declined" if result in _DECLINED else "error"


_ENDS: Final[Mapping[type[Event], TurnEnd]] = {
    TurnFinished: "finished",
    ActionRequired: "requires_action",
    ToolAsked: "asking",
    TurnStopped: "stopped",
    TurnFailed: "failed",
}


class TurnMeter:
    """Measures the result of a turn, and the time from now until its first word and its end."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._began = time.monotonic()
        self._is_silent = True

    def hear(self, event: Event) -> None:
        if isinstance(event, TokenDelta):
            if self._is_silent:
                self._is_silent = False
                self._metrics.first_word(time.monotonic() - self._began)
        elif (end := _ENDS.get(type(event))) is not None:
            code = event.code if isinstance(event, TurnFailed) else ""
            self._metrics.turn_ended(end, seconds=time.monotonic() - self._began, error_code=code)


def answers_in(messages: Iterable[AnyMessage]) -> list[str]:
    """Returns the assistant's texts, without the fixed sentences that replace a missing answer."""
    return [
        text_of(message).strip()
        for message in messages
        if isinstance(message, AIMessage)
        and text_of(message).strip()
        and ((mark := closed_mark(message)) is None or mark.get("is_partial"))
    ]


def steps_in(messages: Sequence[AnyMessage]) -> Iterable[ToolStep]:
    """Returns the tool calls in order; those without a result are running."""
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    for message in messages:
        if turns := message.additional_kwargs.get(LOOKED_UP):
            yield ToolStep(f"look-up-{message.id}", RECALL_TOOL, "{}", "", "done", 0.0, tuple(turns))
        for call in message.tool_calls if isinstance(message, AIMessage) else []:
            arguments = json.dumps(call["args"], ensure_ascii=False)
            result = results.get(str(call["id"]))
            if result is None:
                yield ToolStep(str(call["id"]), call["name"], arguments, "", "running", None)
                continue
            mark = result.additional_kwargs.get(MARK, {})
            yield ToolStep(
                str(call["id"]),
                call["name"],
                arguments,
                words_of(result),
                _status(words_of(result), is_error=result.status == "error"),
                mark.get("seconds"),
                opened_turns(call["name"], words_of(result)),
                str(mark.get("server", "")),
                str(mark.get("title", "")),
                images=urls_of(result),
                attempt=earlier_attempt(result),
            )


def pending_in(row: TurnRow, messages: Sequence[AnyMessage]) -> tuple[PendingCall, ...]:
    """Returns the calls of a turn that wait for the user's word, in order."""
    if row.status != "asking":
        return ()
    asked = {call.get("id"): call for call in row.asked_calls}
    return tuple(
        PendingCall(
            str(call["id"]),
            str(asked[call["id"]].get("server", "")),
            _shown(str(asked[call["id"]].get("tool", call["name"]))),
            _shown(str(asked[call["id"]].get("title", call["name"]))),
            _shown(json.dumps(call["args"], ensure_ascii=False, indent=2)),
            is_repeated="repeats" in asked[call["id"]],
        )
        for call in newest_calls(messages)
        if call["id"] in asked
    )


def _shown(text: str) -> str:
    """Returns a text so that what is allowed is what is seen: signs that would hide some of it are escaped."""
    return HIDING.sub(lambda found: json.dumps(found[0])[1:-1], text)


def last_event(row: TurnRow, messages: Sequence[AnyMessage]) -> Event:
    """Returns the last event of a turn that has ended or waits, given the messages of its last attempt."""
    if row.status == "failed":
        return TurnFailed(row.number, row.error_code, row.error_detail)
    if row.status == "stopped":
        return TurnStopped(row.number, row.partial_text)
    # A waiting answer may be followed by results of server tools.
    last = next(message for message in reversed(messages) if isinstance(message, AIMessage))
    if row.status == "finished":
        return TurnFinished(row.number, str(last.id), text_of(last))
    if row.status == "asking":
        return ToolAsked(row.number, str(last.id), text_of(last), pending_in(row, messages))
    return ActionRequired(row.number, str(last.id), text_of(last), waiting_calls(messages))
