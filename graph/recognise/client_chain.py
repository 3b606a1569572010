"""Keyed hashes over a client's messages: equal histories have equal hashes, which don't reveal the text."""

from __future__ import annotations

import hmac
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol

from langchain_core.messages import AnyMessage

from graph.core.attached import reference_of
from graph.core.text import plain_text
from graph.recognise.client_turns import parsed_arguments
from graph.value.client import CACHE_KEY, ClientMessage, ClientRequest, ClientRole, Hint
from graph.value.view import TurnStatus

HASH_BYTES: Final = 16
_ROLES: Final[Mapping[ClientRole, bytes]] = {"user": b"u", "assistant": b"a", "tool": b"t"}
# Reasoning and tools as front ends show them within an answer, and may or may not send again.
_TAG: Final = re.compile(r"<(/?)(?:(think)>|(details)\b([^<>]*)>)", re.IGNORECASE)
_TYPE: Final = re.compile(r"\btype=", re.IGNORECASE)
_LINE_END: Final = re.compile(r"(?<!\r)\r+\n")
# The value that Open WebUI sends for all temporary chats of a tab.
_TEMPORARY: Final = "local:"
SHARED_KEY: Final = "~"  # in front of a hash that is no chat's id
FRAME_BYTES: Final = 8
# Of a call's id towards programs: the part that all calls of an answer share.
OF_ANSWER: Final = len("call_") + 16
_DATED: Final = re.compile(
    r"\d[\d:.,/-]*\s?(?:(?:st|nd|rd|th|am|pm|z)\b|t(?=\d)|[년월일시분초])?"
    r"|\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?"
    r"|sat(?:urday)?|sun(?:day)?|[ap]\.?m|utc|gmt|kst)\b|[월화수목금토일]요일|\([월화수목금토일]\)|오전|오후"
)


class EndedFingerprint(NamedTuple):
    """Hashes of a complete response: of the history with it, and of its first call's id or else its answer alone."""

    asked: bytes
    chain: bytes | None
    answer: bytes | None


class Link(NamedTuple):
    """A message that counts for recognition.

    Attributes:
        at: Its index among the request's messages.
        text: Canonical.
        chain: Hash of the words of users and assistant up to this message.
        exact: The same with pictures, calls and results of tools; of an assistant's message, before it.
    """

    at: int
    role: ClientRole
    text: str
    chain: bytes
    exact: bytes


@dataclass(frozen=True)
class ChainKey:
    """The server's key for these hashes; servers with different keys recognise nothing of each other."""

    secret: bytes = field(repr=False)

    def read(self, request: ClientRequest, *, owner: str) -> RequestChain:
        """Returns the hashes of a request whose last message is a user's or a tool's."""
        scope = self.hash("scope", _bytes(owner), _bytes(request.user))
        # Not the chain of that response: two chats with the same words have the same one.
        before = self.hash("behind", scope, _bytes(request.previous)) if request.previous else scope
        links, exact = self._links(before, request.messages)
        state = next((link.chain for link in reversed(links) if not request.messages[link.at].calls), before)
        places = newest_results(request.messages)
        is_trailing = places.stop == len(request.messages)
        answered = tuple(sorted(request.messages[at].call_id for at in places)) if is_trailing else ()
        asked = self.hash("calls", state, *map(_bytes, answered)) if answered else state
        frame = self._frame(request, exact)
        once = self.hash("once", asked, frame, _bytes(request.idempotency_key)) if request.idempotency_key else None
        fingerprint = OpenFingerprint(self, scope, asked, once, state, exact, frame)
        return RequestChain(links, answered, fingerprint, self._group(scope, request.hint))

    def answer(self, scope: bytes, text: str) -> bytes:
        return self.hash("answer", scope, _bytes(text))

    def call(self, scope: bytes, call_id: str) -> bytes:
        """Returns the hash of the answer that made a call."""
        return self.hash("call", scope, _bytes(call_id[:OF_ANSWER]))

    def called(self, before: bytes, text: str) -> bytes:
        """Returns the chain up to what is said beside calls: it is no answer."""
        return self.hash("called", before, _bytes(text))

    def next(self, before: bytes, role: ClientRole, text: str) -> bytes:
        # Unambiguous without lengths, hence faster: only the last part varies, and `hash` input begins differently.
        return hmac.digest(self.secret, _ROLES[role] + before + text.encode(), "sha256")[:HASH_BYTES]

    def hash(self, purpose: str, *fields: bytes) -> bytes:
        """Returns the keyed hash of the fields and their lengths, so that no two lists are encoded alike."""
        whole = b"".join(len(part).to_bytes(8, "big") + part for part in (purpose.encode(), *fields))
        return hmac.digest(self.secret, whole, "sha256")[:HASH_BYTES]

    def _links(self, chain: bytes, messages: Sequence[ClientMessage]) -> tuple[tuple[Link, ...], bytes]:
        """Returns the links, and the hash of all words, pictures, calls and results of tools."""
        links, exact = list[Link](), chain
        for index, message in enumerate(messages):
            text = canonical(message.role, message.text)
            if message.role == "tool":
                shown = (_bytes(reference_of(url)) for url in message.images)
                exact = self.hash("result", exact, _bytes(message.call_id), _bytes(text), *shown)
            elif message.role == "user" or text:
                linked = self.called(chain, text) if message.calls else self.next(chain, message.role, text)
                # Until there is a picture or a result, both are the same.
                told = linked if exact is chain else self.next(exact, message.role, text)
                if message.images:
                    told = self.hash("pictures", told, *(_bytes(reference_of(url)) for url in message.images))
                links.append(Link(index, message.role, text, linked, told if message.role == "user" else exact))
                # Many clients leave out an assistant's message that calls tools, with what it says.
                if not message.calls:
                    chain, exact = linked, told
            if message.calls:
                said = (part for call in message.calls for part in (call.id, call.name, _in_one_form(call.arguments)))
                exact = self.hash("calls", exact, _bytes(text), *map(_bytes, said))
        return tuple(links), exact

    def _frame(self, request: ClientRequest, exact: bytes) -> bytes:
        """Returns hashes of the system message, of its words, of the tools' names, and of the whole request."""
        options, hint = request.options, request.hint or Hint("", "")
        made = (options.name, request.is_personal, options.tools, options.tool_choice, options.sampling)
        told = (*made, request.model, request.session, request.previous)
        settings = json.dumps(told, sort_keys=True, default=str).encode()
        system, words = _bytes(options.system or ""), _bytes(undated(options.system or ""))
        parts = (
            self.hash("system", system),
            self.hash("words", words),
            self.hash("tools", *map(_bytes, sorted(options.tool_names))),
            self.hash("request", system, exact, settings, *map(_bytes, (*hint, str(options.system is None)))),
        )
        return b"".join(part[:FRAME_BYTES] for part in parts)

    def _group(self, scope: bytes, hint: Hint | None) -> str:
        if hint is None or not hint.value or hint.name == "user" or hint.value.startswith(_TEMPORARY):
            return ""
        group = self.hash("family", scope, _bytes(hint.name), _bytes(hint.value)).hex()
        return f"{SHARED_KEY}{group}" if hint.name == CACHE_KEY else group


def _in_one_form(arguments: str) -> str:
    """Returns a call's arguments in one form, as libraries re-serialise JSON."""
    parsed = parsed_arguments(arguments or "{}")
    return arguments if parsed is None else json.dumps(parsed, sort_keys=True)


def is_chat_id(group: str) -> bool:
    """Returns True for the hash of a chat's own id, False for "" and for that of a key which requests share."""
    return bool(group) and not group.startswith(SHARED_KEY)


def undated(system: str) -> str:
    """Returns the words of a system message without its dates, times and numbers."""
    return "".join(sign for sign in _DATED.sub("", system.lower()) if sign.isalpha())


@dataclass(frozen=True)
class OpenFingerprint:
    """Fingerprint of a request without an answer yet.

    Attributes:
        scope: Separates histories: by owner, or by end user of an owner.
        asked: Hash of the history up to the question, or up to the answered tool calls.
        idempotency: Hash of the whole request and its Idempotency-Key; None without one.
        state: The chain that the answer continues.
        whole: Hash of all that was said, with pictures, calls and results of tools; None if the session has turns that
            don't stand in the request.
        frame: What isn't said: 8 bytes each of the system message, its words, the tools' names, the whole request.
    """

    key: ChainKey
    scope: bytes
    asked: bytes
    idempotency: bytes | None
    state: bytes
    whole: bytes | None
    frame: bytes

    def ended(self, sent_text: str, first_call: str = "") -> EndedFingerprint:
        text = canonical("assistant", sent_text)
        said = self.key.called(self.state, text) if first_call else self.key.next(self.state, "assistant", text)
        answer = self.key.call(self.scope, first_call) if first_call else self.key.answer(self.scope, text)
        return EndedFingerprint(self.asked, said if text else None, answer if text or first_call else None)


@dataclass(frozen=True)
class RequestChain:
    """The hashes of a request.

    Attributes:
        answered: The ids of the tool calls answered by the last messages; empty if the request ends with a question.
        group: The hash of the client's own chat id, in hex; behind `SHARED_KEY` that of a key for many; "" for none.
    """

    links: tuple[Link, ...]
    answered: tuple[str, ...]
    fingerprint: OpenFingerprint
    group: str


def canonical(role: ClientRole, text: str) -> str:
    """Normalises a text for comparison, as clients change the form of the same words."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # far faster than a search for lone surrogates
            text = plain_text(text)
        text = unicodedata.normalize("NFC", text)
    if "\x00" in text:
        text = plain_text(text)
    if role == "assistant" and "<" in text:
        text = _without_hidden_blocks(text)
    if "\r" in text:
        text = _LINE_END.sub("\n", text)
    return text.strip()


def squeezed(text: str) -> str:
    """Returns a canonical text without white space: front ends join the parts of an answer in different ways."""
    return "".join(text.split())


def newest_results(messages: Sequence[ClientMessage]) -> range:
    """Returns where the results stand behind which only the user speaks; empty for none."""
    end = next((at for at in range(len(messages), 0, -1) if messages[at - 1].role != "user"), 0)
    first = next((at for at in range(end, 0, -1) if messages[at - 1].role != "tool"), 0)
    return range(first, end)


def results_first(messages: Iterable[ClientMessage]) -> tuple[ClientMessage, ...]:
    """Returns the messages with the results of an answer's calls before what the user says behind the answer."""
    ordered: list[ClientMessage] = []
    place: int | None = None  # of the next result
    for message in messages:
        at = len(ordered) if place is None or message.role != "tool" else place
        ordered.insert(at, message)
        if message.role != "user":
            place = at + 1 if message.calls or message.role == "tool" else None
    return tuple(ordered)


def _without_hidden_blocks(text: str) -> str:
    """Drops closed `<think>…</think>` and `<details type=…>…</details>` blocks.

    Scans tag by tag: a pattern for a whole block would read the rest of a hostile text again from each tag.
    """
    tags = [(tag, str(tag[2] or tag[3]).lower()) for tag in _TAG.finditer(text)]
    last_end = {name: tag.start() for tag, name in tags if tag[1]}
    retained, begin, inside = [], 0, ""
    for tag, name in tags:
        is_begin = not tag[1] and (name == "think" or _TYPE.search(tag[4]) is not None)
        if not inside and is_begin and last_end.get(name, 0) > tag.start():
            retained.append(text[begin : tag.start()])
            inside = name
        elif inside == name and tag[1]:
            begin, inside = tag.end(), ""
    return "".join([*retained, text[begin:]])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


FingerprintHash = Literal["asked", "idempotency", "chain", "answer"]


@dataclass(frozen=True)
class FingerprintRow:
    """A stored response fingerprint with the current state of its turn and session; times are UTC.

    Attributes:
        chain: None until the response is complete, and if nothing was sent.
        whole, frame: As in `OpenFingerprint`; None of an old row.
        client: The program that asked for the last attempt; "" for the page.
        status: Of the last attempt; "failed" if its server died, as the next message will close it.
        is_live: The response is from the turn's last attempt.
        is_last: The turn is the session's last one.
    """

    session_id: str
    group: str
    turn: int
    attempt: int
    created_at: datetime
    asked: bytes
    chain: bytes | None
    status: TurnStatus
    model: str
    is_live: bool
    is_last: bool
    whole: bytes | None = None
    frame: bytes | None = None
    client: str = ""


@dataclass(frozen=True)
class ArchivedTurn:
    """An archived turn.

    Attributes:
        question: Squeezed.
        answers: The assistant's whole text, or the archived part if the turn was stopped, and the same without what was
            said beside calls of tools: squeezed; none without an answer.
        is_elsewhere: The page or another client asked, so that this client never saw the turn.
        images: References or URLs of the question's images, in order.
        results: Canonical texts of the results that its program sent.
        calls: The ids of its calls as its program knows them.
    """

    number: int
    question: str
    answers: frozenset[str]
    status: TurnStatus
    is_elsewhere: bool = False
    is_imported: bool = False
    images: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


class Known(Protocol):
    """Stored histories of one scope."""

    def find(self, kind: FingerprintHash, hashes: Sequence[bytes]) -> Sequence[FingerprintRow]:
        """Returns the fingerprints with one of the hashes, newest first."""

    def turns(self, session_id: str, first: int, last: int) -> Sequence[ArchivedTurn]: ...

    def last(self, session_id: str) -> tuple[int, bool]:
        """Returns the number of a session's last turn, 0 for none, and whether it runs."""

    def seen(self, session_id: str, last: int) -> tuple[int, bool]:
        """Returns how many turns up to `last` clients asked or imported, and whether one sent messages of its own."""

    def open_turn(self, session_id: str) -> Sequence[AnyMessage]:
        """Returns the messages of a session's last turn if results can resume it: it waits, or its server died."""
