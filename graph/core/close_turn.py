"""Closes a turn that can't go on, so that every turn has an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from graph.core.turn import is_complete, text_of, unanswered_calls
from prompt.system.framing import CLOSED_ANSWER, UNFINISHED_CALL, Language

MARK: Final = "turnfold"
ClosedStatus = Literal["failed", "stopped"]
INTERRUPTED: Final = "interrupted"


def closing_messages(
    open_turn: Sequence[AnyMessage],
    *,
    status: ClosedStatus,
    code: str,
    partial_text: str,
    language: Language,
    message_id: str,
) -> list[AnyMessage]:
    """Returns the messages that complete an open turn: a `ToolMessage` for each open call, then a marked answer.

    Args:
        open_turn: The messages of the turn so far, the user's first.
        status: How the turn ended.
        code: The error's code, "" if it was stopped.
        partial_text: The last saved part of the streamed answer. It is replaced by a fixed sentence if it is blank, or
            if the turn has archived these words since, before a tool call.
        language: The language of the fixed sentences.
        message_id: The id of the marked answer and the prefix of the tool messages' ids.
    """
    closing: list[AnyMessage] = [
        ToolMessage(UNFINISHED_CALL[language], tool_call_id=call_id, id=f"{message_id}-{index}", status="error")
        for index, call_id in enumerate(unanswered_calls(open_turn))
    ]
    text = "" if is_archived(partial_text, open_turn) else partial_text
    closing.append(
        AIMessage(
            text or CLOSED_ANSWER[status, language],
            id=message_id,
            additional_kwargs={MARK: {"closed": status, "code": code, "is_partial": bool(text)}},
        )
    )
    return closing


def is_archived(partial_text: str, open_turn: Sequence[AnyMessage]) -> bool:
    """Whether the text is blank or the beginning of the turn's newest archived answer."""
    newest = next((text_of(message) for message in reversed(open_turn) if isinstance(message, AIMessage)), "")
    return newest.strip().startswith(partial_text.strip())


def closed_mark(message: AnyMessage) -> dict[str, object] | None:
    """Returns the mark of a closed turn's answer (`closed`, `code`, `is_partial`); None for any other message."""
    mark = message.additional_kwargs.get(MARK)
    return mark if isinstance(mark, dict) and "closed" in mark else None


def ending_of(said: Sequence[AnyMessage], *, stop_requested: bool) -> tuple[Literal["finished"] | ClosedStatus, str]:
    """Returns how a turn ended whose worker wrote no result, and the error's code.

    Args:
        said: The messages of the turn's last attempt, as archived.
        stop_requested: Whether the user had asked it to stop.
    """
    if not is_complete(said):
        return ("stopped", "") if stop_requested else ("failed", INTERRUPTED)
    mark = closed_mark(said[-1])
    if mark is None:
        return "finished", ""
    return ("stopped" if mark["closed"] == "stopped" else "failed"), str(mark["code"])
