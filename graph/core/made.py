"""What earlier attempts of a turn have done by tools stays done: the next attempt goes on behind it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from graph.core.turn import MARK, RETURNED, mark_of, split_turns, text_of
from graph.value.mcp import ToolInfo
from prompt.system.framing import CUT_OFF, DECLINED, DONE_EARLIER, NOT_RUN, Language
from prompt.tool import words

_EARLIER: Final = "attempt"
_NOT_MADE: Final = frozenset(
    text for texts in (DECLINED, NOT_RUN, words.DECLINED, words.UNREADABLE) for text in texts.values()
)


class MadeCalls(NamedTuple):
    """Answers with calls and their results, as another attempt begins with them; the whole texts of cut ones by id."""

    messages: Sequence[AnyMessage]
    whole_texts: Mapping[str, str]


NOTHING_MADE: Final = MadeCalls((), {})


def made_calls(
    attempts: Sequence[tuple[int, AnyMessage]],
    tools: Mapping[str, ToolInfo],
    whole_text: Callable[[str], str],
    language: Language,
    *,
    waiting: Collection[str] = (),
    returned: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
) -> MadeCalls:
    """Returns what the attempts of a turn have called of servers, in order, each once, but for tools marked read-only.

    Args:
        attempts: All messages of the turn with the number of their attempt, in order.
        tools: The tools of servers that the turn was offered, by the name that the model calls.
        whole_text: Returns the whole text of a result by its message's id, "" of one that isn't cut.
        waiting: Ids of calls that still wait for the user's word.
        returned: What the provider wants back with calls, by the id of the message, as far as the state still has it.
    """
    found: list[AnyMessage] = []
    whole_texts: dict[str, str] = {}
    told: set[str] = set()
    wanted = {
        str(call["id"]): returned[str(message.id)]
        for _, message in attempts
        if isinstance(message, AIMessage) and str(message.id) in returned
        for call in message.tool_calls
    }
    for attempt in sorted({number for number, _ in attempts}):
        messages = [message for number, message in attempts if number == attempt]
        results = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
        for message in messages:
            # In a branch the first attempt begins with copies of what only its origin has.
            made_in = earlier_attempt(message) or attempt
            calls: list[ToolCall] = []
            copies: list[ToolMessage] = []
            for call in message.tool_calls if isinstance(message, AIMessage) else ():
                result = results.get(str(call["id"]))
                text = CUT_OFF[language] if result is None else _said(result)
                identity = json.dumps([call["id"], _key(call), text])
                if identity in told or call["id"] in waiting or not _has_acted(call, result, tools):
                    continue
                told.add(identity)
                calls.append(call)
                copies.append(copy := _told(call, result, text, made_in, language))
                if result is not None and (whole := whole_text(str(result.id))):
                    whole_texts[str(copy.id)] = whole
            if calls:
                kwargs: dict[str, object] = {MARK: {_EARLIER: made_in}}
                if back := wanted.get(str(calls[0]["id"])):
                    # What goes back with each call has the place of its call.
                    is_whole = isinstance(message, AIMessage) and len(calls) == len(message.tool_calls)
                    kwargs[RETURNED] = {
                        name: each for name, each in back.items() if is_whole or name != "extra_content"
                    }
                found.append(AIMessage("", tool_calls=calls, id=f"made-{uuid.uuid4().hex}", additional_kwargs=kwargs))
                found += copies
    return MadeCalls(found, whole_texts)


def _has_acted(call: ToolCall, result: ToolMessage | None, tools: Mapping[str, ToolInfo]) -> bool:
    """Returns whether a call of a server's tool was made, or may have been, that isn't known only to read."""
    tool = tools.get(call["name"])
    if tool is None:  # the server may be gone
        return result is not None and bool(mark_of(result).get("server")) and text_of(result) not in _NOT_MADE
    return not tool.is_read_only and (result is None or text_of(result) not in _NOT_MADE)


def _said(result: ToolMessage) -> str:
    """Returns a result's text, without the line that says that it was made earlier."""
    text = text_of(result)
    return text.partition("\n")[2] if earlier_attempt(result) else text


def _told(call: ToolCall, result: ToolMessage | None, text: str, attempt: int, language: Language) -> ToolMessage:
    return ToolMessage(
        f"{DONE_EARLIER[language]}\n{text}",
        tool_call_id=str(call["id"]),
        name=call["name"],
        id=f"made-{uuid.uuid4().hex}",
        status="error" if result is None else result.status,
        additional_kwargs={MARK: {**(mark_of(result) if result else {}), _EARLIER: attempt}},
    )


def earlier_attempt(message: AnyMessage) -> int:
    """Returns the attempt that made what this message repeats, 0 for what its own attempt said or did."""
    attempt = mark_of(message).get(_EARLIER)
    return attempt if isinstance(attempt, int) else 0


def repeats(messages: Sequence[AnyMessage], call: ToolCall) -> bool:
    """Returns whether an earlier attempt of the newest turn has made a call of this tool with these arguments."""
    turns = split_turns(messages)
    earlier = (each for each in (turns[-1] if turns else ()) if isinstance(each, AIMessage) and earlier_attempt(each))
    return _key(call) in [_key(made) for message in earlier for made in message.tool_calls]


def _key(call: ToolCall) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True)
