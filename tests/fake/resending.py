"""A program that chats through the HTTP API as OpenAI's clients do: it sends all messages with each request."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from graph.service import ChatService
from graph.value.client import ClientMessage, ClientOptions, ClientRequest, Completion, CompletionEnd, Hint, Matched
from graph.value.event import ActionRequired, ClientCall, Event, TokenDelta, TurnFailed, TurnFinished, TurnStopped
from tests.fake.chat import Chat, question

_LAST_EVENTS: Final = (TurnFinished, TurnFailed, TurnStopped, ActionRequired)
_PATIENCE_SECONDS: Final = 60.0
# As Open WebUI sends it.
CHAT_ID: Final = Hint("x-openwebui-chat-id", "c0ffee")


def user(text: str, *images: str) -> ClientMessage:
    return ClientMessage("user", text, images=images)


def assistant(text: str, *calls: ClientCall) -> ClientMessage:
    return ClientMessage("assistant", text, calls=calls)


def result(call_id: str, text: str) -> ClientMessage:
    return ClientMessage("tool", text, call_id=call_id)


@dataclass
class Reading:
    """Reads one completion to its end."""

    completion: Completion
    events: list[Event] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.detach = self.completion.watch(self._hear)

    def _hear(self, event: Event) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    @property
    def last(self) -> Event:
        """The last event, once it is there."""
        self._wait(lambda: bool(self.events) and isinstance(self.events[-1], _LAST_EVENTS))
        return self.events[-1]

    def wait_for_text(self) -> None:
        """Waits until something was said."""
        self._wait(lambda: bool(self.text))

    def _wait(self, is_true: Any) -> None:  # noqa: ANN401  # a predicate
        with self._news:
            assert self._news.wait_for(is_true, _PATIENCE_SECONDS), self.events

    @property
    def text(self) -> str:
        """The text sent so far, as a program joins it."""
        return "".join(event.text for event in self.events if isinstance(event, TokenDelta))

    @property
    def calls(self) -> tuple[ClientCall, ...]:
        return self.last.calls if isinstance(self.last, ActionRequired) else ()

    @property
    def session_id(self) -> str:
        return self.completion.session_id

    @property
    def turn(self) -> int:
        return self.completion.turn

    @property
    def matched(self) -> Matched:
        return self.completion.matched

    @property
    def end(self) -> CompletionEnd:
        assert self.last
        return self.completion.end()


@dataclass
class Program:
    """One chat of a program; `messages` is all that it has, and all that it sends.

    Attributes:
        fields: What every request of it says beside its messages, such as `hint`.
        options: What every request adds to its turn.
    """

    service: ChatService
    name: str = "editor"
    messages: list[ClientMessage] = field(default_factory=list)
    fields: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def request(self, *messages: ClientMessage, **fields: Any) -> ClientRequest:  # noqa: ANN401  # any field
        """The request that sends these messages."""
        options = ClientOptions(self.name, **self.options)
        return replace(ClientRequest(messages, options), **{**self.fields, **fields})

    def begin(self, **fields: Any) -> Reading:  # noqa: ANN401  # any field
        """Sends all of its messages, which end with a question or with results."""
        return Reading(self.service.completions.begin(self.request(*self.messages, **fields)))

    def ask(self, text: str, **fields: Any) -> Reading:  # noqa: ANN401  # any field
        """Sends the chat with another question, waits for the answer, and keeps both."""
        self.messages.append(user(text))
        return self.take(self.begin(**fields))

    def take(self, reading: Reading) -> Reading:
        """Keeps an answer as the program's message."""
        assert isinstance(reading.last, TurnFinished | ActionRequired), reading.last
        self.messages.append(assistant(reading.text, *reading.calls))
        return reading


def begin(chat: Chat, **fields: Any) -> Program:  # noqa: ANN401  # any field
    """A program in a new chat over this one's service."""
    return Program(chat.service, fields=fields)


def go(program: Program, first: int, last: int) -> None:
    """Has the turns `first` to `last`, each with the folds that it causes."""
    for number in range(first, last + 1):
        reading = program.ask(question(number))
        Chat(program.service, reading.session_id).wait_for_folds()


def counts(chat: Chat) -> list[int]:
    """How many sessions, turns, messages and records there are."""
    return [chat.rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("session", "turn", "message", "record")]  # noqa: S608  # names of our own
