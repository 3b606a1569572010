"""Finds turns in a list of messages, and the text of a message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

RECALL_TOOL: Final = "recall"
# They note in a project what the user said, and answer with what stands there then.
NOTE_TOOLS: Final = frozenset({"record_decision", "open_task", "complete_task", "switch_plan", "note_open_files"})
# Stands for an image wherever a message is text: in summaries, on the page, in the search.
IMAGE_MARK: Final = "[image]"
# What the endpoint names the model that is built in, also in archived answers.
EMBEDDED_MODEL: Final = "offline-mini"


def text_of(message: AnyMessage) -> str:
    """Returns the text content of a message: the text blocks of a list joined, then a line for each image."""
    text = words_of(message)
    return "\n".join([*([text] if text else []), *[IMAGE_MARK] * len(image_parts(message))])


def words_of(message: BaseMessage) -> str:
    """Returns the text content of a message without its images."""
    content = message.content
    if isinstance(content, str):
        return content
    parts = (block if isinstance(block, str) else block.get("text", "") for block in content if _is_text(block))
    return "".join(str(part) for part in parts)


def image_parts(message: BaseMessage) -> list[dict[str, Any]]:
    """Returns the blocks of a message that are images, in order."""
    blocks = [] if isinstance(message.content, str) else message.content
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == "image_url"]


def without_images(message: AnyMessage) -> AnyMessage:
    """Returns the message with its images told as text."""
    return message.model_copy(update={"content": text_of(message)}) if image_parts(message) else message


def with_words(message: AnyMessage, text: str) -> AnyMessage:
    """Returns the message with another text; its images stay."""
    images = image_parts(message)
    return message.model_copy(update={"content": [{"type": "text", "text": text}, *images] if images else text})


def is_recalled(message: BaseMessage) -> bool:
    """Whether a message is what `recall` found, which was said before and stands in the archive already."""
    return isinstance(message, ToolMessage) and message.name == RECALL_TOOL


def is_note(message: BaseMessage) -> bool:
    """Whether a message is the answer of a tool that notes things in a project, which keeps them."""
    return isinstance(message, ToolMessage) and message.name in NOTE_TOOLS


def is_repetition(message: BaseMessage) -> bool:
    """Whether a message only repeats what is known: what `recall` found, notes, each answer of the embedded model."""
    answered_by = message.response_metadata.get("model_name") if isinstance(message, AIMessage) else None
    return is_recalled(message) or is_note(message) or answered_by == EMBEDDED_MODEL


def _is_text(block: str | dict[str, object]) -> bool:
    return isinstance(block, str) or block.get("type", "text") == "text"


def is_final_answer(message: AnyMessage) -> bool:
    """Whether the message completes a turn: an `AIMessage` without tool calls (None or [])."""
    return isinstance(message, AIMessage) and not message.tool_calls


def is_cut(message: AnyMessage) -> bool:
    """Whether the model stopped at its length limit."""
    return isinstance(message, AIMessage) and message.response_metadata.get("finish_reason") == "length"


def split_turns(messages: Iterable[AnyMessage]) -> list[list[AnyMessage]]:
    """Splits messages into turns, oldest first; the last one may be open.

    A turn starts at each `HumanMessage`. Messages before the first one are left out.
    """
    turns: list[list[AnyMessage]] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns


def is_complete(turn: Sequence[AnyMessage]) -> bool:
    """Whether the turn has its answer."""
    return bool(turn) and is_final_answer(turn[-1])


def extract_last_n_turns(messages: Sequence[AnyMessage], n: int) -> list[AnyMessage]:
    """Returns the messages of the last `n` complete turns, in order; the open turn is left out.

    Args:
        messages: Messages of a session, oldest first.
        n: How many turns; 0 or less gives none.
    """
    if n <= 0:
        return []
    complete = [turn for turn in split_turns(messages) if is_complete(turn)]
    return [message for turn in complete[-n:] for message in turn]


def extract_current_turn(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Returns the messages of the open turn; none if the last turn is complete."""
    turns = split_turns(messages)
    return [] if not turns or is_complete(turns[-1]) else turns[-1]


def unanswered_calls(messages: Sequence[AnyMessage]) -> list[str]:
    """Returns the ids of tool calls without a `ToolMessage`, in order."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    return [
        str(call["id"])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] not in answered
    ]
