"""How rows and messages become the views that the page gets; reads and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.close_turn import MARK, closed_mark, closing_messages, ending_of
from graph.core.turn import is_complete, is_cut, text_of
from graph.store.turn import TurnRow
from graph.view import StepStatus, ToolStep, TurnView


def turn_view(row: TurnRow, said: Sequence[AnyMessage], *, is_last: bool) -> TurnView:
    """Renders a turn from its row and what was said in its last attempt, in order."""
    user_text = next((text_of(message) for message in said if isinstance(message, HumanMessage)), "")
    return TurnView(
        number=row.number,
        attempt=row.attempt,
        status=row.status,
        user_text=user_text,
        answer_text="\n\n".join(_answers(said)),
        steps=tuple(_steps(said)),
        error_code=row.error_code,
        error_detail=row.error_detail,
        started_at=row.started_at,
        model=row.model,
        is_last=is_last,
        is_cut=row.status == "finished" and bool(said) and is_cut(said[-1]),
    )


def _answers(said: Iterable[AnyMessage]) -> list[str]:
    """Returns what the assistant said, without the fixed sentences that stand in for a missing answer."""
    return [
        text_of(message).strip()
        for message in said
        if isinstance(message, AIMessage)
        and text_of(message).strip()
        and ((mark := closed_mark(message)) is None or mark.get("is_partial"))
    ]


def _steps(said: Sequence[AnyMessage]) -> Iterable[ToolStep]:
    results = {message.tool_call_id: message for message in said if isinstance(message, ToolMessage)}
    for message in said:
        for call in message.tool_calls if isinstance(message, AIMessage) else []:
            arguments = json.dumps(call["args"], ensure_ascii=False)
            result = results.get(str(call["id"]))
            if result is None:
                yield ToolStep(str(call["id"]), call["name"], arguments, "", "running", None)
                continue
            seconds = result.additional_kwargs.get(MARK, {}).get("seconds")
            status: StepStatus = "error" if result.status == "error" else "done"
            yield ToolStep(str(call["id"]), call["name"], arguments, text_of(result), status, seconds)


def as_closed(row: TurnRow, said: list[AnyMessage], language: Literal["ko", "en"]) -> tuple[TurnRow, list[AnyMessage]]:
    """Returns an abandoned turn as the next message will settle it; reading changes nothing."""
    status, code = ending_of(said, stop_requested=row.stop_requested)
    if not is_complete(said) and status != "finished":
        closing = closing_messages(
            said, status=status, code=code, partial_text=row.partial_text, language=language, message_id="abandoned"
        )
        said = [*said, *closing]
    return replace(row, status=status, error_code=code), said
