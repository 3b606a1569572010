"""Finds, closes and labels the turns in a list of messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from graph.core.day import written
from prompt.system.framing import (
    CLIENT_HEADING,
    CLOSED_ANSWER,
    COMPACTION_HEADING,
    CUT_OFF,
    DECLINED,
    LEDGER_HEADING,
    NO_RESULT,
    OWN_CHAT_HEADING,
    OWN_HEADING,
    PERSISTENT_HEADING,
    RECORD_LABEL,
    SUMMARY_HEADING,
    VOLATILE_HEADING,
    Language,
)

RECALL_TOOL: Final = "recall"
FILE_TOOL: Final = "look_in_file"
# In an answer: the turns that were looked up for a model without tools.
LOOKED_UP: Final = "turnfold_looked_up"
# In an answer to a program: what of the input was left out to fit the window.
LEFT_OUT: Final = "turnfold_left_out"
# Tools that write notes to a project and return its resulting state.
NOTE_TOOLS: Final = frozenset({"record_decision", "open_task", "complete_task", "switch_plan", "note_open_files"})
# Replaces an image wherever a message is text: in summaries, on the page, in the search.
IMAGE_MARK: Final = "[image]"
# The same with the name of a picture that was attached on the page.
ANY_IMAGE_MARK: Final = re.compile(r"\[image(?:: [^\[\]\n]{1,100})?\]")
IMAGE_NAME: Final = "name"  # the name's key in the part of a message
# Name of the embedded model at the endpoint, also in archived answers.
EMBEDDED_MODEL: Final = "offline-mini"
# `finish_reason` of an answer that was ended because it repeated itself.
REPETITION: Final = "repetition"


def text_of(message: AnyMessage) -> str:
    """Returns the text content of a message: the text blocks joined, then a line for each image."""
    text = words_of(message)
    return "\n".join([*([text] if text else []), *map(_image_mark, image_parts(message))])


def _image_mark(part: Mapping[str, Any]) -> str:
    name = image_name(part)
    return f"[image: {name}]" if name else IMAGE_MARK


def image_name(part: Mapping[str, Any]) -> str:
    """Returns the name of an image, "" without one; an imported archive may have anything there."""
    name = part.get(IMAGE_NAME)
    is_name = isinstance(name, str) and name.isprintable() and ANY_IMAGE_MARK.fullmatch(f"[image: {name}]")
    return str(name) if is_name else ""


def words_of(message: BaseMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    parts = (block if isinstance(block, str) else block.get("text", "") for block in content if _is_text(block))
    return "".join(str(part) for part in parts)


def image_parts(message: BaseMessage) -> list[dict[str, Any]]:
    blocks = [] if isinstance(message.content, str) else message.content
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == "image_url"]


def without_images(message: AnyMessage) -> AnyMessage:
    return message.model_copy(update={"content": text_of(message)}) if image_parts(message) else message


def with_words(message: AnyMessage, text: str) -> AnyMessage:
    images = image_parts(message)
    return message.model_copy(update={"content": [{"type": "text", "text": text}, *images] if images else text})


def is_recalled(message: BaseMessage) -> bool:
    """Returns True for a result of `recall`: its content is in the archive already."""
    return isinstance(message, ToolMessage) and message.name == RECALL_TOOL


def is_note(message: BaseMessage) -> bool:
    """Returns True for a result of a tool that writes to the project's own storage."""
    return isinstance(message, ToolMessage) and message.name in NOTE_TOOLS


def is_repetition(message: BaseMessage) -> bool:
    """Returns True for `recall` results, project notes and answers of the embedded model, which add nothing new."""
    answered_by = message.response_metadata.get("model_name") if isinstance(message, AIMessage) else None
    return is_recalled(message) or is_note(message) or answered_by == EMBEDDED_MODEL


def telling_calls(message: BaseMessage) -> list[ToolCall]:
    """Returns an answer's tool calls but those of `recall` and of project notes, which repeat what is stored."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return [call for call in calls if call["name"] not in (RECALL_TOOL, *NOTE_TOOLS)]


def _is_text(block: str | dict[str, object]) -> bool:
    return isinstance(block, str) or block.get("type", "text") == "text"


def is_final_answer(message: AnyMessage) -> bool:
    """Returns True if the message completes a turn: an `AIMessage` without tool calls (None or [])."""
    return isinstance(message, AIMessage) and not message.tool_calls


def is_cut(message: AnyMessage) -> bool:
    """Returns True if an answer ended at its length limit, or was ended because it repeated itself."""
    return is_endless(message) or _finish_reason(message) == "length"


def is_endless(message: AnyMessage) -> bool:
    return _finish_reason(message) == REPETITION


def _finish_reason(message: AnyMessage) -> str | None:
    return message.response_metadata.get("finish_reason") if isinstance(message, AIMessage) else None


def split_turns(messages: Iterable[AnyMessage]) -> list[list[AnyMessage]]:
    """Splits messages into turns at each `HumanMessage`; those before the first one are left out."""
    turns: list[list[AnyMessage]] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns


def is_complete(turn: Sequence[AnyMessage]) -> bool:
    return bool(turn) and is_final_answer(turn[-1])


def extract_last_n_turns(messages: Sequence[AnyMessage], n: int) -> list[AnyMessage]:
    """Returns the messages of the last `n` complete turns, in order; the open turn is left out."""
    if n <= 0:
        return []
    complete = [turn for turn in split_turns(messages) if is_complete(turn)]
    return [message for turn in complete[-n:] for message in turn]


def extract_current_turn(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Returns the messages of the open turn; empty if the last turn is complete."""
    turns = split_turns(messages)
    return [] if not turns or is_complete(turns[-1]) else turns[-1]


def unanswered_calls(messages: Sequence[AnyMessage]) -> list[str]:
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    return [
        str(call["id"])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] not in answered
    ]


MARK: Final = "turnfold"
# Marks what a provider wants back with an answer's calls as long as they are sent; the archive has none of it.
RETURNED: Final = "turnfold_returned"


def without_returned(message: AnyMessage) -> AnyMessage:
    """Returns a message as it is archived: what its provider wants back stays in the state alone."""
    retained = {name: value for name, value in message.additional_kwargs.items() if name != RETURNED}
    is_same = retained == message.additional_kwargs
    return message if is_same else message.model_copy(update={"additional_kwargs": retained})


ClosedStatus = Literal["failed", "stopped"]
# What a closed turn's answer says if nothing was said: "stopped" only of a user's stop.
Closing = ClosedStatus | Literal["unanswered"]
INTERRUPTED: Final = "interrupted"


def closing_messages(
    open_turn: Sequence[AnyMessage],
    *,
    status: Closing,
    code: str,
    partial_text: str,
    language: Language,
    message_id: str,
    declined: Collection[str] = (),
    had_begun: bool = False,
) -> list[AnyMessage]:
    """Returns the messages that complete an open turn: a `ToolMessage` for each open call, then a marked answer.

    `code` is the error's, "" for none. `partial_text`, the saved part of the streamed answer, is
    replaced by a fixed sentence if it is blank or already archived in the turn, before a tool call. `declined`
    are ids of calls that weren't made as the user didn't allow them; `had_begun` is said of the others.
    """
    unknown = CUT_OFF if had_begun else NO_RESULT
    closing: list[AnyMessage] = [
        ToolMessage(
            (DECLINED if call_id in declined else unknown)[language],
            tool_call_id=call_id,
            id=f"{message_id}-{index}",
            status="error",
        )
        for index, call_id in enumerate(unanswered_calls(open_turn))
    ]
    text = "" if is_archived(partial_text, open_turn) else partial_text
    mark = {"closed": status_of(status), "code": code, "is_partial": bool(text)}
    closing.append(AIMessage(text or CLOSED_ANSWER[status, language], id=message_id, additional_kwargs={MARK: mark}))
    return closing


def going_on(message_id: str) -> AIMessage:
    """Returns the end of a turn whose program brought results and its user's next words: no model is sent it."""
    return AIMessage("", id=message_id, additional_kwargs={MARK: {"goes_on": True}})


def goes_on(message: AnyMessage) -> bool:
    return is_final_answer(message) and not message.content and mark_of(message).get("goes_on") is True


def status_of(closing: Closing) -> ClosedStatus:
    return "stopped" if closing == "unanswered" else closing


def is_archived(partial_text: str, open_turn: Sequence[AnyMessage]) -> bool:
    """Returns True if the text is blank or the beginning of the turn's newest archived answer."""
    newest = next((text_of(message) for message in reversed(open_turn) if isinstance(message, AIMessage)), "")
    return newest.strip().startswith(partial_text.strip())


def closed_mark(message: AnyMessage) -> Mapping[str, object] | None:
    """Returns the mark of a closed turn's answer (`closed`, `code`, `is_partial`); None for any other message."""
    mark = mark_of(message)
    return mark if "closed" in mark else None


def edited_answer(messages: Sequence[AnyMessage], text: str, new_id: Callable[[], str]) -> list[AnyMessage]:
    """Returns the messages of a complete turn behind its question, under new ids, with this text as the answer.

    What was said beside tool calls is part of the answer that the text replaces.
    """
    edited = [message.model_copy(update={"id": new_id()}) for message in messages]
    said = [message for message in edited if isinstance(message, AIMessage)]
    for message in said[:-1]:
        message.content = ""
    said[-1].content, said[-1].additional_kwargs = text, {**said[-1].additional_kwargs, MARK: {"edited": True}}
    said[-1].response_metadata = {}
    return edited


def is_edited(message: AnyMessage) -> bool:
    return bool(mark_of(message).get("edited"))


def mark_of(message: AnyMessage) -> Mapping[str, object]:
    mark = message.additional_kwargs.get(MARK)
    return mark if isinstance(mark, dict) else {}


def ending_of(
    messages: Sequence[AnyMessage], *, stop_requested: bool
) -> tuple[Literal["finished"] | ClosedStatus, str]:
    """Returns the end status and error code of a turn whose worker wrote no result."""
    if not is_complete(messages):
        return ("stopped", "") if stop_requested else ("failed", INTERRUPTED)
    mark = closed_mark(messages[-1])
    if mark is None:
        return "finished", ""
    return ("stopped" if mark["closed"] == "stopped" else "failed"), str(mark["code"])


_INDENT: Final = "  "
_OWN_HEADINGS: Final = (
    *SUMMARY_HEADING.values(),
    *LEDGER_HEADING.values(),
    *CLIENT_HEADING.values(),
    *OWN_HEADING.values(),
    *OWN_CHAT_HEADING.values(),
    COMPACTION_HEADING,
)
_HEADINGS: Final = "|".join(map(re.escape, (heading.partition("\n")[0] for heading in _OWN_HEADINGS)))
# Beginnings of the lines that divide an input, of every strategy and in both languages.
_DIVIDER: Final = re.compile(
    rf"\[(?:\d+-\d+턴|Turns \d+-\d+|\d+턴 (?:사용자|AI) 원문|Turn \d+, (?:user|AI), verbatim)\]|{_HEADINGS}"
    r"|\[(?:CONVERSATION CONTEXT|RECENT MESSAGES|CURRENT MESSAGE)\]"
    r"|(?:USER|ASSISTANT|TOOL): |---",
    re.IGNORECASE,
)
_BLOCK_HEADINGS: Final = (PERSISTENT_HEADING, VOLATILE_HEADING)


# The days in the label of a record.
_LABEL_DAYS: Final = re.compile(r"^(\[(?:\d+-\d+턴|Turns \d+-\d+)\] )\(\d{4}-\d\d-\d\d[0-9 ~-]{0,13}\) ", re.MULTILINE)


def label_of(turns: Sequence[int], language: Language, days: str = "") -> str:
    """Returns the label of a record: its turns and, if they are known, its days (`range_of`)."""
    label = RECORD_LABEL[language].format(first=turns[0], last=turns[-1])
    return f"{label}({written(days)}) " if days else label


def without_days(text: str) -> str:
    """Returns summaries without the days in their labels, which are no facts of theirs."""
    return _LABEL_DAYS.sub(r"\1", text)


def labelled(label: str, text: str) -> str:
    """Renders a text after its label; further lines are indented, so that none of them can imitate a label."""
    return label + f"\n{_INDENT}".join(text.splitlines())


def unlabelled(text: str) -> str:
    """Renders a text without a label; a first line that imitates a label or a block's heading is indented too."""
    block = labelled("", text)
    return _INDENT + block if block.startswith(_BLOCK_HEADINGS) else _indented(block)


def undivided(text: str) -> str:
    """Renders a context block with its own headings; lines that imitate any other divider are indented."""
    return "\n".join(map(_indented, text.splitlines()))


def headed(heading: str, text: str) -> str:
    """Renders external text below a heading; lines that imitate a divider or a block's heading are indented."""
    return "\n".join(
        [
            heading,
            *(_INDENT + line if line.startswith(_BLOCK_HEADINGS) else _indented(line) for line in text.splitlines()),
        ]
    )


def _indented(text: str) -> str:
    return _INDENT + text if _DIVIDER.match(text) else text
