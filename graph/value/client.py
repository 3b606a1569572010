"""What a program's request says and what its answer tells: plain values between the HTTP routes and the service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from graph.value.event import ClientCall, Event

ClientRole = Literal["user", "assistant", "tool"]
Matched = Literal["header", "hint", "history", "tail", "new", "fork", "aside", "retry"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


@dataclass(frozen=True)
class ClientMessage:
    """One message of a request as its program sent it; system and developer messages stand in `ClientOptions.system`.

    Attributes:
        text: The text parts, joined by newlines.
        images: The URLs of its images, in order.
        calls: The tool calls of an assistant's message.
        call_id: Which call a message of the role "tool" answers, else "".
    """

    role: ClientRole
    text: str
    images: tuple[str, ...] = ()
    calls: tuple[ClientCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True)
class ClientOptions:
    """What a program adds to the turn that its request asks for.

    Attributes:
        name: The program's name: that of its token. The page shows it.
        system: Its system and developer messages, joined by blank lines; they replace those of the request before. None
            keeps these: it has no way to say any.
        lead: What it sent in front of the history that is known: its own context, sent with this turn and not archived.
        tools: Its tools, in OpenAI's shape.
        tool_choice: As OpenAI has it; None if it wasn't sent.
        sampling: Parameters that go to the model as they are: temperature, top_p, stop, response_format, and so on.
        allowed_tools: The names of the server's tools that it may use; None for all.
        hears_restarts: Whether it can be told that text which it was sent is void.
    """

    name: str
    system: str | None = ""
    lead: tuple[ClientMessage, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: str | Mapping[str, Any] | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    allowed_tools: frozenset[str] | None = None
    hears_restarts: bool = False

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of its tools."""
        return frozenset(str(tool["function"]["name"]) for tool in self.tools)


class Hint(NamedTuple):
    """A client's own id of a chat: the name of the header or field, in lower case, and its value."""

    name: str
    value: str


@dataclass(frozen=True)
class ClientRequest:
    """A request for the next answer of a chat, which sends all of the chat again.

    Attributes:
        messages: User, assistant and tool messages, oldest first; the last one is a user's or a tool's.
        model: A session's model name, "" for the default one.
        is_plain: Whether it asked for an answer without memory, by the model's name.
        task: What it says that it is for, such as a title, "" for the chat itself.
        session: The session that it names, "" for none.
        hint: Its own id of the chat, None if it sent none.
        user: Its id of the end user, "" for none; narrows what is recognised.
        idempotency_key: The same for each try of one request, "" for none.
        is_retry: Whether its library says that this isn't the first try.
    """

    messages: tuple[ClientMessage, ...]
    options: ClientOptions
    model: str = ""
    is_plain: bool = False
    task: str = ""
    session: str = ""
    hint: Hint | None = None
    user: str = ""
    idempotency_key: str = ""
    is_retry: bool = False


class ClientUsage(NamedTuple):
    """Tokens that the provider reported for the calls behind one response."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int | None


@dataclass(frozen=True)
class CompletionEnd:
    """What is told of a response when it is whole.

    Attributes:
        usage: None unless the provider reported the tokens of each of its calls.
        figures: What the memory did and cost, as JSON values; {} for an aside.
    """

    finish_reason: FinishReason
    usage: ClientUsage | None
    figures: Mapping[str, Any]


class Completion(Protocol):
    """A response that is being made, or was made before.

    Attributes:
        id: "chatcmpl-" and what makes it one; the same if a stored response is sent again, as is `created`.
        created: Seconds since 1970.
        session_id: "" for an aside.
        turn: Its number; 0 for an aside.
        matched: How its session was found.
    """

    id: str
    created: int
    session_id: str
    turn: int
    matched: Matched

    def watch(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Passes on all events so far, then each new one, in whichever thread it comes; returns what ends that.

        The last event is `TurnFinished`, `TurnFailed`, `TurnStopped` or `ActionRequired`.
        """
        ...

    def stop(self) -> None:
        """Ends the turn if it still runs; what was said is kept."""
        ...

    def end(self) -> CompletionEnd:
        """Returns what is told of the whole response; call it after the last event, in a worker thread."""
        ...


class CompletionSource(Protocol):
    """What answers the requests of one owner's programs: `service.completions`."""

    def begin(self, request: ClientRequest) -> Completion:
        """Finds the session that the request goes on with, and begins its answer.

        Raises:
            TurnfoldError: It is refused, and nothing was stored.
        """
        ...

    def models(self) -> tuple[str, ...]:
        """Returns the names of the models from memory; () while they aren't known."""
        ...
