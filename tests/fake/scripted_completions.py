"""Answers the requests of programs from a script, each in a thread of its own, as the service does.

completions = ScriptedCompletions("small-model")
completions.script(said("Hel", "lo"))
completions.script(BusyError())
gate = threading.Event()
completions.script([TokenDelta("Hel"), gate, TokenDelta("lo"), TurnFinished(1, "m1", "Hello")])
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graph.value.client import ClientRequest, ClientUsage, CompletionEnd, FinishReason, Matched
from graph.value.error import TurnfoldError
from graph.value.event import ActionRequired, Event, TokenDelta, TurnFailed, TurnFinished, TurnStarted, TurnStopped

Step = Event | threading.Event
_ENDS = (TurnFinished, TurnFailed, TurnStopped, ActionRequired)


def text_steps(*pieces: str) -> list[Step]:
    """The events of a turn that says these pieces."""
    return [TurnStarted("session-1", 1, 1), *map(TokenDelta, pieces), TurnFinished(1, "m1", "".join(pieces))]


def ended(reason: FinishReason = "stop", usage: ClientUsage | None = None, **figures: object) -> CompletionEnd:
    return CompletionEnd(reason, usage, figures)


class ScriptedCompletion:
    """A response: emits its steps, and waits wherever one of them is a gate.

    Attributes:
        is_stopped: Set when Stop was asked for.
        watcher_count: How many watch it now.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        end: CompletionEnd | TurnfoldError,
        *,
        matched: Matched = "history",
        session_id: str = "session-1",
        turn: int = 1,
        number: int = 1,
    ) -> None:
        self.id = f"chatcmpl-{number}"
        self.created = 1_800_000_000
        self.session_id = session_id
        self.turn = turn
        self.matched = matched
        self.is_stopped = threading.Event()
        self._steps = steps
        self._end = end
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._watchers: list[Callable[[Event], None]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def watcher_count(self) -> int:
        return len(self._watchers)

    def start(self) -> None:
        self._thread.start()

    def watch(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        with self._lock:
            for event in self._events:
                on_event(event)
            self._watchers.append(on_event)
        return lambda: self._watchers.remove(on_event)

    def stop(self) -> None:
        self.is_stopped.set()

    def end(self) -> CompletionEnd:
        assert any(isinstance(event, _ENDS) for event in self._events)
        assert threading.current_thread() is not threading.main_thread()
        if isinstance(self._end, TurnfoldError):
            raise self._end
        return self._end

    def _run(self) -> None:
        for event in self._due():
            with self._lock:
                self._events.append(event)
                for watcher in self._watchers:
                    watcher(event)

    def _due(self) -> Iterator[Event]:
        for step in self._steps:
            while isinstance(step, threading.Event) and not step.wait(0.005):
                if self.is_stopped.is_set():
                    texts = [event.text for event in self._events if isinstance(event, TokenDelta)]
                    yield TurnStopped(self.turn, "".join(texts))
                    return
            if not isinstance(step, threading.Event):
                yield step


class ScriptedCompletions:
    """A completion source; a request beyond the script fails its test.

    Attributes:
        names: The models that are there.
        requests: What was asked, in order.
        made: The responses that were made, in order.
    """

    def __init__(self, *names: str) -> None:
        self.forget(*names)

    def forget(self, *names: str) -> None:
        """Begins anew with these models."""
        self.names = names
        self.requests: list[ClientRequest] = []
        self.made: list[ScriptedCompletion] = []
        self._script: deque[ScriptedCompletion | Exception] = deque()
        self._count = 0

    def script(
        self,
        steps: Sequence[Step] | Exception,
        end: CompletionEnd | TurnfoldError | None = None,
        **values: Any,  # noqa: ANN401  # those of a ScriptedCompletion
    ) -> None:
        """Adds what the next request is answered with."""
        if isinstance(steps, Exception):
            self._script.append(steps)
            return
        self._count += 1
        self._script.append(ScriptedCompletion(steps, end or ended(), number=self._count, **values))

    def script_again(self, number: int) -> None:
        """Has the next request attached to that response, counted from 1."""
        self._script.append(self.made[number - 1])

    def begin(self, request: ClientRequest) -> ScriptedCompletion:
        self.requests.append(request)
        answer = self._script.popleft()
        if isinstance(answer, Exception):
            raise answer
        if answer not in self.made:
            self.made.append(answer)
            answer.start()
        return answer

    def models(self) -> dict[str, int]:
        return {name: 1_000 * number for number, name in enumerate(self.names, 8)}
