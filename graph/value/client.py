"""Requests and responses of client programs: plain values between the HTTP routes and the service."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any, Final, Literal, NamedTuple, Protocol

from graph.value.event import ClientCall, Event

ClientRole = Literal["user", "assistant", "tool"]
Matched = Literal["header", "hint", "history", "tail", "new", "fork", "aside", "retry"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


@dataclass(frozen=True)
class ClientMessage:
    """One message of a request; system and developer messages are in `ClientOptions.system`.

    `text` joins the text parts by newlines; `call_id` is the call answered by a tool message, else "".
    """

    role: ClientRole
    text: str
    images: tuple[str, ...] = ()
    calls: tuple[ClientCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True)
class ClientOptions:
    """The parts of a request that aren't messages of the chat.

    Attributes:
        name: The program's name, from the token; the page shows it.
        system: System and developer messages, joined by blank lines; they replace the session's. None keeps the
            session's, as the protocol can't send any.
        preamble: Messages that are no turns, sent before this turn's question and not archived.
        tools: Tools of the program, in OpenAI's shape.
        tool_choice: In OpenAI's shape; None if absent. Of `allowed_tools` it is the mode alone.
        sampling: Parameters passed to the model unchanged: temperature, top_p, stop, response_format, and so on.
        allowed_tools: Names of the server tools allowed to the program; None for all.
        supports_restart: True if text can be declared void: nothing is sent before the end, or the stream tells it.
    """

    name: str
    system: str | None = ""
    preamble: tuple[ClientMessage, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: str | Mapping[str, Any] | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    allowed_tools: frozenset[str] | None = None
    supports_restart: bool = False

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(str(tool["function"]["name"]) for tool in self.tools)

    @property
    def is_demand(self) -> bool:
        """True if the answer must be a call of the program's tools or JSON of a schema, so that ours are in the way."""
        if self.tool_choice == "required":
            must_call = bool(self.tools)
        else:
            must_call = _at(self.tool_choice, "function", "name") in self.tool_names
        return must_call or _at(self.sampling, "response_format", "json_schema", "strict") is True


def _at(value: object, *path: str) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


# OpenAI means it to be shared by requests that begin alike, so it is no chat's id.
CACHE_KEY: Final = "prompt_cache_key"


class Hint(NamedTuple):
    """A client's own chat id, or its `CACHE_KEY`: name of the header (lower case) or field, and the value."""

    name: str
    value: str


@dataclass(frozen=True)
class ClientRequest:
    """A request for the next answer of a chat, with the whole history, oldest first.

    Attributes:
        is_plain: True if the model's name selects an answer without memory.
        task: The declared purpose, such as a title, "" for the chat itself.
        session: Id of a session to continue, "" for none.
        previous: Id of the response that the messages follow, which then hold only what is new; "" for none.
        user: The client's id of the end user, "" for none; narrows the search for the session.
        is_personal: True if the token is one person's.
        idempotency_key: The same for each try of a request, "" for none.
    """

    messages: tuple[ClientMessage, ...]
    options: ClientOptions
    model: str = ""
    is_plain: bool = False
    task: str = ""
    session: str = ""
    previous: str = ""
    hint: Hint | None = None
    user: str = ""
    is_personal: bool = False
    idempotency_key: str = ""
    is_retry: bool = False


class ClientUsage(NamedTuple):
    input_tokens: int
    output_tokens: int
    cached_tokens: int | None


@dataclass(frozen=True)
class CompletionEnd:
    """Finish reason, usage (None unless reported for every call) and figures, as JSON values, of a response."""

    finish_reason: FinishReason
    usage: ClientUsage | None
    figures: Mapping[str, Any]


@dataclass(frozen=True)
class FoundResponse:
    """A response that was found by its id, as it stood then.

    Attributes:
        model: The name of the session's model, "" for the default.
        status: "finished" also of one that ended with calls of the program's tools.
        asked: What it answers: the question, or results of the program's tools.
        thoughts: Only of a turn that is one response.
        end: Usage and figures; None while it runs.
        is_alone: Whether its session holds nothing else.
        stop: Ends the turn if the response still runs, in whichever process, and waits a little for its end.
    """

    created: int
    session_id: str
    model: str
    status: Literal["running", "finished", "stopped", "failed"]
    asked: tuple[ClientMessage, ...]
    text: str
    thoughts: str
    calls: tuple[ClientCall, ...]
    end: CompletionEnd | None
    error_code: str
    error_detail: str
    is_alone: bool
    stop: Callable[[], None]


class Completion(Protocol):
    """A response: running, or stored earlier and sent again with the same `id` and `created`.

    Side requests have no session ("") and no turn (0).
    """

    id: str
    created: int
    session_id: str
    turn: int
    matched: Matched

    def watch(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Passes on all events so far, then each new one, in any thread; returns a function that unsubscribes.

        The last event is `TurnFinished`, `TurnFailed`, `TurnStopped` or `ActionRequired`.
        """
        ...

    def stop(self) -> None:
        """Ends a running turn; the partial answer is retained."""
        ...

    def end(self) -> CompletionEnd:
        """Returns the totals of the response. Call it after the last event, in a worker thread."""
        ...


class CompletionSource(Protocol):
    """Answers the requests of one owner's programs; implemented by `service.completions`."""

    def begin(self, request: ClientRequest) -> Completion:
        """Finds the session to continue and starts the answer; a `TurnfoldError` refuses and stores nothing."""
        ...

    def models(self) -> Mapping[str, int]:
        """Returns the context windows of the models by name, the default one first; empty before they are known."""
        ...


_DATA: Final = "data:image/"
# No user part before the host: parsers disagree on where it ends.
_WEB: Final = re.compile(
    r"https://(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?)(?::\d{1,5})?(?:[/?#][^\s\\\x00-\x1f\x7f]*)?",
    re.ASCII | re.IGNORECASE,
)
# A name whose last part is a number in any spelling is read as an IPv4 address.
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*", re.ASCII | re.IGNORECASE)
# Names of the computer itself, of local networks (RFC 6761, 6762, 8375), and common private suffixes.
_INTERNAL: Final = frozenset(
    {"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "svc"}
)
_HOME_NETWORK: Final = ".home.arpa"
# Global unicast. Other ranges embed IPv4 addresses in several ways.
_GLOBAL_IPV6: Final = ip_network("2000::/3")


def is_image_url(url: str) -> bool:
    """True for data URLs of images, and for https URLs with a public host, in any spelling of an address.

    Names aren't resolved: a public name with a private address isn't noticed.
    """
    if url[: len(_DATA)].lower() == _DATA:
        return True
    parts = _WEB.fullmatch(url)
    if parts is None:
        return False
    return _is_public_ipv6(parts["ipv6"]) if parts["ipv6"] else _is_public_name(parts["name"].lower())


def _is_public_name(name: str) -> bool:
    *parents, last = name.split(".")
    if _NUMBER.fullmatch(last):
        return _is_public_ipv4(name)
    return bool(parents) and last not in _INTERNAL and not name.endswith(_HOME_NETWORK)


def _is_public_ipv4(address: str) -> bool:
    try:
        # Unlike `ipaddress`, inet_aton reads every spelling that clients accept: 2130706433, 0x7f.1, 0177.0.0.1.
        found = IPv4Address(socket.inet_aton(address))
    except OSError:
        return False
    return found.is_global and not found.is_multicast


def _is_public_ipv6(address: str) -> bool:
    try:
        found = IPv6Address(address)
    except ValueError:
        return False
    return found in _GLOBAL_IPV6 and found.is_global and found.sixtofour is None
