"""Keyed hashes over what a program says was said: one history gives the same ones, and they tell nobody what it is."""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from graph.client import ClientMessage, ClientRequest, ClientRole, Hint
from graph.core.text import plain_text

HASH_BYTES: Final = 16
_ROLES: Final[Mapping[ClientRole, bytes]] = {"user": b"u", "assistant": b"a", "tool": b"t"}
# What front ends show of thoughts and tools within an answer, and may or may not send again.
_TAG: Final = re.compile(r"<(/?)(?:(think)>|(details)\b([^<>]*)>)", re.IGNORECASE)
_TYPE: Final = re.compile(r"\btype=", re.IGNORECASE)
# The value that Open WebUI sends for a temporary chat: all those of a tab have it.
_TEMPORARY: Final = "local:"


class EndedAnchor(NamedTuple):
    """What a response is recognised by once it is whole.

    Attributes:
        asked: Says which of the turn's responses it is.
        chain: Of the history with this answer behind it; None if nothing was sent, as are the others.
        answer: Of the answer alone.
    """

    asked: bytes
    chain: bytes | None
    answer: bytes | None


class Link(NamedTuple):
    """A message that counts for recognition.

    Attributes:
        at: Its place among the request's messages.
        text: Its canonical text.
        chain: The hash of the history up to it.
    """

    at: int
    role: ClientRole
    text: str
    chain: bytes


@dataclass(frozen=True)
class ChainKey:
    """The server's key for these hashes; two servers with different keys recognise nothing of each other.

    Usage:
        >>> key = ChainKey(bytes(32))
        >>> request = ClientRequest((ClientMessage("user", "Hi"),), ClientOptions("editor"))
        >>> chain = key.read(request, owner="ann")
        >>> ended = chain.anchor.ended("Hello! How can I help?")
        >>> later = ClientRequest((*request.messages, ClientMessage("assistant", "Hello! How can I help?"), ...), ...)
        >>> key.read(later, owner="ann").links[1].chain == ended.chain
        True
    """

    secret: bytes = field(repr=False)

    def read(self, request: ClientRequest, *, owner: str) -> RequestChain:
        """Returns the hashes of a request whose last message is a user's or a tool's."""
        scope = self.hash("scope", _bytes(owner), _bytes(request.user))
        links = tuple(self._links(scope, request.messages))
        state = links[-1].chain if links else scope
        answered = answered_calls(request.messages)
        asked = self.hash("calls", state, *map(_bytes, answered)) if answered else state
        once = self.hash("once", asked, _bytes(request.idempotency_key)) if request.idempotency_key else None
        anchor = OpenAnchor(self, scope, asked, once, state)
        return RequestChain(links, answered, anchor, self._family(scope, request.hint))

    def answer(self, scope: bytes, text: str) -> bytes:
        """Returns the hash of an answer alone, by its canonical text."""
        return self.hash("answer", scope, _bytes(text))

    def next(self, before: bytes, role: ClientRole, text: str) -> bytes:
        """Returns the hash of a history with one more message, by its canonical text."""
        # Of parts of fixed lengths but for the last, and beginning unlike those of `hash`: one for each message counts.
        return hmac.digest(self.secret, _ROLES[role] + before + text.encode(), "sha256")[:HASH_BYTES]

    def hash(self, purpose: str, *fields: bytes) -> bytes:
        """Returns the keyed hash of these fields. Their lengths are in it, so that no two lists of fields are one."""
        whole = b"".join(len(part).to_bytes(8, "big") + part for part in (purpose.encode(), *fields))
        return hmac.digest(self.secret, whole, "sha256")[:HASH_BYTES]

    def _links(self, scope: bytes, messages: Sequence[ClientMessage]) -> Iterable[Link]:
        chain = scope
        for index, message in enumerate(messages):
            text = canonical(message.role, message.text)
            # An assistant's message that only calls tools is left out by some clients, and kept by others.
            if message.role == "user" or (message.role == "assistant" and text):
                chain = self.next(chain, message.role, text)
                yield Link(index, message.role, text, chain)

    def _family(self, scope: bytes, hint: Hint | None) -> str:
        if hint is None or not hint.value or hint.name == "user" or hint.value.startswith(_TEMPORARY):
            return ""
        return self.hash("family", scope, _bytes(hint.name), _bytes(hint.value)).hex()


@dataclass(frozen=True)
class OpenAnchor:
    """What a request whose answer isn't there yet is recognised by.

    Attributes:
        scope: Whose histories it is told from: an owner's, or those of one end user.
        asked: Of the history up to the question, or up to the answered tool calls.
        idempotency: Of `asked` with the request's Idempotency-Key; None without one.
        state: The chain that the answer continues.
    """

    key: ChainKey
    scope: bytes
    asked: bytes
    idempotency: bytes | None
    state: bytes

    def ended(self, sent_text: str) -> EndedAnchor:
        """Returns what completes it, given all of the text that the response sent."""
        text = canonical("assistant", sent_text)
        if not text:
            return EndedAnchor(self.asked, None, None)
        chain = self.key.next(self.state, "assistant", text)
        return EndedAnchor(self.asked, chain, self.key.answer(self.scope, text))


@dataclass(frozen=True)
class RequestChain:
    """The hashes of a request.

    Attributes:
        links: One for each message that counts, oldest first.
        answered: The ids of the tool calls that its last messages answer, sorted; none if it ends with a question.
        family: The hash of the client's own id of the chat, in hex; "" for none.
    """

    links: tuple[Link, ...]
    answered: tuple[str, ...]
    anchor: OpenAnchor
    family: str


def canonical(role: ClientRole, text: str) -> str:
    """Returns the text in the form in which it is compared: clients differ in what they make of the same words."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text if _is_encodable(text) else plain_text(text))
    if "\x00" in text:
        text = plain_text(text)
    if role == "assistant" and "<" in text:
        text = _without_asides(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return text.strip()


def answered_calls(messages: Sequence[ClientMessage]) -> tuple[str, ...]:
    """Returns the ids of the tool calls that the last messages answer, sorted."""
    calls: list[str] = []
    for message in reversed(messages):
        if message.role != "tool":
            break
        calls.append(message.call_id)
    return tuple(sorted(calls))


def _without_asides(text: str) -> str:
    """Drops `<think>…</think>` and `<details type=…>…</details>` where they are closed.

    Tag by tag: one pattern for a whole block would read the rest of a hostile text again from each of its tags.
    """
    tags = [(tag, str(tag[2] or tag[3]).lower()) for tag in _TAG.finditer(text)]
    last_end = {name: tag.start() for tag, name in tags if tag[1]}
    kept, begin, inside = [], 0, ""
    for tag, name in tags:
        is_begin = not tag[1] and (name == "think" or _TYPE.search(tag[4]) is not None)
        if not inside and is_begin and last_end.get(name, 0) > tag.start():
            kept.append(text[begin : tag.start()])
            inside = name
        elif inside == name and tag[1]:
            begin, inside = tag.end(), ""
    return "".join([*kept, text[begin:]])


def _is_encodable(text: str) -> bool:
    """Whether the text has no lone surrogate; far quicker than to search for one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
