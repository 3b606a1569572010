from __future__ import annotations

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.closing import closed_mark, closing_messages
from graph.core.turn import is_complete, unanswered_calls

OPEN: list[AnyMessage] = [
    HumanMessage("q"),
    AIMessage("", tool_calls=[{"name": "a", "args": {}, "id": "1"}, {"name": "b", "args": {}, "id": "2"}]),
    ToolMessage("done", tool_call_id="1"),
]


def close(messages: list[AnyMessage], partial: str = "") -> list[AnyMessage]:
    return closing_messages(
        messages, status="failed", code="deadline", partial_text=partial, language="ko", message_id="closed-1"
    )


def test_a_closed_turn_is_complete_without_orphan_calls() -> None:
    closed = [*OPEN, *close(OPEN)]
    assert is_complete(closed)
    assert unanswered_calls(closed) == []


def test_the_partial_text_is_kept_and_marked() -> None:
    answer = close(OPEN[:1], "여기까지")[-1]
    assert answer.content == "여기까지"
    assert closed_mark(answer) == {"closed": "failed", "code": "deadline", "is_partial": True}


def test_a_blank_answer_is_never_made() -> None:
    answer = close(OPEN[:1], " \n")[-1]
    assert answer.content == "(답변을 만들지 못했습니다.)"
    assert closed_mark(answer) == {"closed": "failed", "code": "deadline", "is_partial": False}


def test_other_messages_carry_no_mark() -> None:
    assert closed_mark(AIMessage("a")) is None
    assert closed_mark(AIMessage("a", additional_kwargs={"turnfold": {"unreadable_calls": []}})) is None
