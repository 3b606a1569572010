"""Converts a client's messages, in any order of roles, into turns, and matches tool results with the waiting calls."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from graph.core.attached import content_of, question_of, reference_of, urls_of
from graph.core.language import user_language
from graph.core.text import has_visible, plain_text, plain_value
from graph.core.thinking import split_whole
from graph.core.turn import IMAGE_MARK, closing_messages, going_on, is_complete, unanswered_calls, words_of
from graph.value.client import ClientMessage, ClientRole, is_image_url
from graph.value.error import InputError
from graph.value.event import ClientCall
from prompt.system.framing import ASSISTANT_BEGAN, NO_RESULT, NOT_RUN, Language

_BAD_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS: Final = 64
_UNNAMED: Final = "tool"
_IMPORTED: Final = "imported-"
_BRACKET: Final = re.compile(r"[\[\]{}]")
_DEEPEST: Final = 64
# The ids of calls towards programs. Those of models repeat: some servers number the calls of each answer.
CALL_ID: Final = re.compile(r"call_[0-9a-f]{24}")
_NAMED: Final = 5
_ID_CHARS: Final = 64
_MOST_MESSAGES: Final = 2_000
_MOST_BYTES: Final = 8 * 2**20


def check_history(messages: Sequence[ClientMessage]) -> None:
    """Checks that a history can be imported; `InputError` `too_long`: over 2,000 messages or 8 MB, images aside."""
    texts = (text for message in messages for text in (message.text, *(call.arguments for call in message.calls)))
    size = sum(len(text.encode(errors="replace")) for text in texts)
    for count, most in ((len(messages), _MOST_MESSAGES), (size, _MOST_BYTES)):
        if count > most:
            raise InputError("too_long", f"{count} > {most}")


def to_messages(messages: Iterable[ClientMessage]) -> list[AnyMessage]:
    """Converts to model messages without ids; unreadable arguments are passed on unchanged."""
    return [_to_message(message) for message in messages]


def _to_message(message: ClientMessage) -> AnyMessage:
    text = plain_text(message.text)
    if message.role == "user":
        return HumanMessage(content_of(text, [plain_text(url) for url in message.images]))
    if message.role == "tool":
        content = content_of(text, [plain_text(url) for url in message.images])
        return ToolMessage(content, tool_call_id=plain_text(message.call_id))
    valid, invalid = list[ToolCall](), list[InvalidToolCall]()
    for call in message.calls:
        call_id, name, arguments = plain_text(call.id), plain_text(call.name), plain_text(call.arguments)
        if (parsed := parsed_arguments(arguments or "{}")) is None:
            invalid.append(invalid_tool_call(name=name, args=arguments, id=call_id))
        else:
            valid.append(tool_call(name=name, args=parsed, id=call_id))
    return AIMessage(text, tool_calls=valid, invalid_tool_calls=invalid)


def parsed_arguments(arguments: str) -> dict[str, Any] | None:
    try:
        value = plain_value(json.loads(arguments, parse_constant=int))  # which refuses NaN and Infinity
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def turns_of(messages: Iterable[ClientMessage], *, id_prefix: str, language: Language = "en") -> list[list[AnyMessage]]:
    """Returns the messages as complete turns, oldest first; empty if no message has content.

    Consecutive messages of one speaker are joined. A call without a result gets a result that states so, a result
    without a call gets a call, and a turn without an answer is closed. If the assistant speaks first, a fixed sentence
    replaces the user's message. Call ids are new, as different clients use the same ones.
    """
    history = _History(id_prefix, language)
    for message in _cleaned(messages):
        history.add(message)
    return history.end_turn()


def continued(
    begun: Sequence[AnyMessage],
    messages: Iterable[ClientMessage],
    *,
    id_prefix: str,
    language: Language,
    not_run: Collection[str] = (),
    is_all: bool = False,
) -> list[AnyMessage]:
    """Returns what a program, but not its user, says further of a turn that has begun: results, and answers of others.

    A copy of the turn's newest calls and results that it has are left out. Further results come first, in the order of
    the calls; in the end each call has a result and each result a call. The program hasn't run the calls of `not_run`.
    `is_all`: the turn ends with it, as its user has said something else.
    """
    messages = _with_archived_ids(begun, messages)
    calls = {str(call["id"]): call["args"] for call in newest_calls(begun)}
    results = (message for message in begun if isinstance(message, ToolMessage))
    known = {(each.tool_call_id, words_of(each), urls_of(each)) for each in results}
    said = [
        each
        for each in _cleaned(messages)
        if not _is_copy(each, calls) and (each.call_id, each.text, _references_of(each)) not in known
    ]
    history, places = _History(id_prefix, language, begun, not_run), {name: place for place, name in enumerate(calls)}
    first = next((at for at, message in enumerate(said) if message.role != "tool"), len(said))
    for message in (*sorted(said[:first], key=lambda each: places.get(each.call_id, len(places))), *said[first:]):
        history.add(message)
    history.end_calls()
    return (history.end_turn() if is_all else history.turns)[-1][len(begun) :]


def said_by(message: AnyMessage, pictures: Mapping[str, str], ids: Mapping[str, str]) -> ClientMessage:
    """Returns an archived message as its program would send it; `pictures` are those that are still there."""
    images = tuple(filter(is_image_url, (pictures.get(url, url) for url in urls_of(message))))
    if isinstance(message, ToolMessage):
        call_id = ids.get(message.tool_call_id, message.tool_call_id)
        return ClientMessage("tool", words_of(message), images, call_id=call_id)
    called = message.tool_calls if isinstance(message, AIMessage) else []
    calls = tuple(replace(archived_call(call), id=ids[str(call["id"])]) for call in called)
    role: ClientRole = "assistant" if isinstance(message, AIMessage) else "user"
    return ClientMessage(role, words_of(message), images, calls)


def new_prefix() -> str:
    """Returns a prefix of ids by which `is_imported` knows the messages."""
    return f"{_IMPORTED}{uuid.uuid4().hex}"


def is_imported(message: AnyMessage) -> bool:
    """Returns True if a program sent the message with its request."""
    return str(message.id).startswith(_IMPORTED)


def unasked(messages: Iterable[ClientMessage]) -> ClientMessage:
    """Returns a fixed sentence in place of the missing question of these messages, in their language."""
    words = HumanMessage("\n".join(message.text for message in messages))
    return ClientMessage("user", ASSISTANT_BEGAN["ko" if user_language([words]) == "ko" else "en"])


def join_questions(
    history: Sequence[ClientMessage], asked: ClientMessage
) -> tuple[tuple[ClientMessage, ...], ClientMessage]:
    """Returns the history without the unanswered questions at its end, and the question joined with them.

    As turns of their own they would be closed as stopped.
    """
    answered = len(history)
    while answered and history[answered - 1].role == "user":
        answered -= 1
    *_, joined = _joined((*history[answered:], asked))
    return tuple(history[:answered]), joined


class _History:
    def __init__(
        self, id_prefix: str, language: Language, begun: Sequence[AnyMessage] = (), not_run: Collection[str] = ()
    ) -> None:
        self.turns: list[list[AnyMessage]] = [[*begun]] if begun else []
        self._not_run = not_run
        self._language: Language = language
        self._id_prefix = id_prefix
        self._id_count = 0
        # The client's ids of open calls, and the new ones.
        self._waiting = {call_id: call_id for call_id in unanswered_calls(begun)}

    def add(self, message: ClientMessage) -> None:
        if message.role == "user":
            self.end_turn().append([question_of(message.text, message.images, message_id=self._new_id())])
        elif not self.turns:
            self.turns.append([HumanMessage(ASSISTANT_BEGAN[self._language], id=self._new_id())])
        if message.role == "assistant":
            self._add_answer(message)
        elif message.role == "tool":
            self._add_result(message)

    def end_turn(self) -> list[list[AnyMessage]]:
        """Closes the last turn and returns all of them."""
        if self.turns and isinstance(self.turns[-1][-1], ToolMessage):
            self.end_calls().append(going_on(self._new_id()))
        elif self.turns and not is_complete(self.turns[-1]):
            turn, language = self.turns[-1], self._language
            turn += closing_messages(
                turn, status="unanswered", code="", partial_text="", language=language, message_id=self._new_id()
            )
        self._waiting = {}
        return self.turns

    def _add_answer(self, message: ClientMessage) -> None:
        self.end_calls()
        names = [_BAD_IN_NAME.sub("_", call.name)[:_NAME_CHARS] or _UNNAMED for call in message.calls]
        calls = [self._new_call(name, _arguments_of(call)) for name, call in zip(names, message.calls, strict=True)]
        self._waiting = {call.id: str(ours["id"]) for call, ours in zip(message.calls, calls, strict=True)}
        self.turns[-1].append(self._answer(message.text, calls))

    def _add_result(self, message: ClientMessage) -> None:
        call_id = self._waiting.pop(message.call_id, None)
        call_id = self._make_call() if call_id is None else call_id
        self.turns[-1].append(
            ToolMessage(content_of(message.text, _references_of(message)), tool_call_id=call_id, id=self._new_id())
        )

    def _make_call(self) -> str:
        """Adds a call for a result without one, to the preceding answer if it has no calls; returns its id."""
        self.end_calls()
        turn, call = self.turns[-1], self._new_call(_UNNAMED, {})
        text = turn.pop().text if isinstance(turn[-1], AIMessage) else ""
        turn.append(self._answer(text, [call]))
        return str(call["id"])

    def end_calls(self) -> list[AnyMessage]:
        """Returns the last turn, without an answer if there is none, but with a result of each call."""
        for call_id in unanswered_calls(self.turns[-1]):
            text = (NOT_RUN if call_id in self._not_run else NO_RESULT)[self._language]
            self.turns[-1].append(ToolMessage(text, tool_call_id=call_id, id=self._new_id(), status="error"))
        self._waiting = {}
        return self.turns[-1]

    def _answer(self, text: str, calls: list[ToolCall]) -> AIMessage:
        reason = "tool_calls" if calls else "stop"
        return AIMessage(text, id=self._new_id(), tool_calls=calls, response_metadata={"finish_reason": reason})

    def _new_id(self) -> str:
        self._id_count += 1
        return f"{self._id_prefix}-{self._id_count}"

    def _new_call(self, name: str, arguments: dict[str, Any]) -> ToolCall:
        """Returns a call with an id of nine letters and digits, the only form that some providers accept."""
        return tool_call(name=name, args=arguments, id=uuid.uuid4().hex[:9])


def _cleaned(messages: Iterable[ClientMessage]) -> list[ClientMessage]:
    plain = map(_plain, messages)
    return _joined(each for each in plain if each.text or each.images or each.calls or each.role == "tool")


def _plain(message: ClientMessage) -> ClientMessage:
    """Returns the message with storable text, without thoughts, and with a mark for an image that no provider takes."""
    images = [plain_text(url) for url in message.images]
    sent = tuple(url for url in images if message.role != "assistant" and is_image_url(url))
    is_answer, text = message.role == "assistant", plain_text(message.text)
    text = split_whole(text)[1] if is_answer else text
    marks = [IMAGE_MARK] * (len(images) - len(sent))
    text = "\n".join([text, *marks] if has_visible(text) else marks)
    return replace(message, text=text, images=sent, calls=message.calls if is_answer else ())


def _references_of(message: ClientMessage) -> tuple[str, ...]:
    return tuple(map(reference_of, message.images))


def _joined(messages: Iterable[ClientMessage]) -> list[ClientMessage]:
    """Joins consecutive messages of one speaker; a message with calls isn't joined with the next one."""
    runs = list[list[ClientMessage]]()
    for message in messages:
        before = runs[-1][-1] if runs else None
        if before is not None and before.role == message.role != "tool" and not before.calls:
            runs[-1].append(message)
        else:
            runs.append([message])
    return [_as_one(run) for run in runs]


def _as_one(messages: Sequence[ClientMessage]) -> ClientMessage:
    text = "\n\n".join(message.text for message in messages if message.text)
    return replace(messages[-1], text=text, images=tuple(url for message in messages for url in message.images))


def _arguments_of(call: ClientCall) -> dict[str, Any]:
    """Returns the arguments; as text if they are no object or nested implausibly deep."""
    depth = max(accumulate(1 if sign in "[{" else -1 for sign in _BRACKET.findall(call.arguments)), default=0)
    parsed = parsed_arguments(call.arguments) if depth <= _DEEPEST else None
    return {"arguments": plain_text(call.arguments)} if parsed is None else parsed


def waiting_calls(open_turn: Sequence[AnyMessage]) -> tuple[ClientCall, ...]:
    """Returns the calls of the newest answer without a result, as programs know them; () if the turn waits for none."""
    waiting, ids = set(unanswered_calls(open_turn)), sent_ids(open_turn)
    newest = (call for call in newest_calls(open_turn) if call["id"] in waiting)
    return tuple(replace(archived_call(call), id=ids[str(call["id"])]) for call in newest)


def sent_ids(turn: Sequence[AnyMessage]) -> dict[str, str]:
    """Returns the ids of a turn's calls as programs know them, by those that the model gave.

    They begin with a hash of the answer's random id, so that no two chats have the same one.
    """
    answers = (message for message in turn if isinstance(message, AIMessage))
    ids = ((str(answer.id), str(call["id"])) for answer in answers for call in answer.tool_calls)
    return {name: f"call_{_digest(at)[:16]}{_digest(f'{at} {name}')[:8]}" for at, name in ids}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _with_archived_ids(turn: Sequence[AnyMessage], sent: Iterable[ClientMessage]) -> list[ClientMessage]:
    """Returns a program's messages with the ids of calls that the model gave."""
    ids = {ours: archived for archived, ours in sent_ids(turn).items()}
    messages = []
    for message in sent:
        calls = tuple(replace(call, id=ids.get(call.id, call.id)) for call in message.calls)
        messages.append(replace(message, call_id=ids.get(message.call_id, message.call_id), calls=calls))
    return messages


def archived_call(call: ToolCall) -> ClientCall:
    return ClientCall(str(call["id"]), call["name"], json.dumps(call["args"], ensure_ascii=False))


def results_of(
    open_turn: Sequence[AnyMessage], sent: Sequence[ClientMessage], *, id_prefix: str, language: Language
) -> list[AnyMessage]:
    """Returns the messages that let a turn go on: the results of its waiting calls; empty if all have results already.

    The client's copy of the assistant's message may be among the results, in parts, too. Calls are compared by id and
    parsed arguments, as libraries re-serialise JSON; a changed call, and a result of no call here, are added with the
    results. A call that the copy leaves out is one that the client has dropped: it wasn't run.

    Raises `InputError`, with the calls' ids: `unknown_call` (no result is of the newest answer's calls) or
    `unanswered_call` (a call without a result, though the client knows of it or sends results alone).
    """
    sent = _with_archived_ids(open_turn, sent)
    calls = {str(call["id"]): call["args"] for call in newest_calls(open_turn)}
    ids = {each.call_id: None for each in sent if each.role == "tool"}
    if not ids.keys() & calls.keys():
        raise InputError("unknown_call", _named([*ids]))
    copied = [{plain_text(call.id) for call in each.calls} & calls.keys() for each in sent]
    first = next((at for at, known in enumerate(copied) if known), 0)  # before it are earlier rounds
    said = [each for each in sent[first:] if each.role == "tool" or each.calls]
    is_changed = any(each.calls and not _is_copy(each, calls) for each in said)
    known = set[str]().union(*copied)
    without = [name for name in unanswered_calls(open_turn) if name not in ids]
    not_run = [name for name in without if known and name not in known]
    missing = [name for name in without if name not in not_run]
    if missing and not is_changed:
        raise InputError("unanswered_call", _named([sent_ids(open_turn)[name] for name in missing]))
    return continued(open_turn, said, id_prefix=id_prefix, language=language, not_run=not_run)


def newest_calls(open_turn: Sequence[AnyMessage]) -> list[ToolCall]:
    return next((message.tool_calls for message in reversed(open_turn) if isinstance(message, AIMessage)), [])


def newest_ids(turn: Sequence[AnyMessage]) -> set[str]:
    """Returns the ids of a turn's newest calls: the model's, and those that its program knows."""
    ids = sent_ids(turn)
    return {name for call in newest_calls(turn) for name in (str(call["id"]), ids[str(call["id"])])}


def _is_copy(message: ClientMessage, calls: Mapping[str, Any]) -> bool:
    """Returns True if a message has calls and all of them are among these, which are arguments by id."""
    copies = [(plain_text(call.id), parsed_arguments(call.arguments or "{}")) for call in message.calls]
    return bool(copies) and all(name in calls and arguments == calls[name] for name, arguments in copies)


def _named(ids: Sequence[str]) -> str:
    return ", ".join(plain_text(each)[:_ID_CHARS] for each in ids[:_NAMED])
