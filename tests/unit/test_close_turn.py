from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.close_turn import closed_mark, closing_messages
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


SAID: list[AnyMessage] = [
    HumanMessage("q"),
    AIMessage("먼저 시각을 알아보겠습니다.", tool_calls=[{"name": "a", "args": {}, "id": "1"}]),
]


@pytest.mark.parametrize("partial", ["먼저 시각을", "먼저 시각을 알아보겠습니다.", " 먼저 시각을 알아보겠습니다.\n"])
def test_words_that_were_archived_before_a_tool_call_are_not_said_twice(partial: str) -> None:
    answer = close(SAID, partial)[-1]
    assert answer.content == "(답변을 만들지 못했습니다.)"
    assert closed_mark(answer) == {"closed": "failed", "code": "deadline", "is_partial": False}


@pytest.mark.parametrize("partial", ["지금은", "먼저 시각을 알아보니", "먼저 시각을 알아보겠습니다. 지금은"])
def test_words_that_came_after_a_tool_call_are_kept(partial: str) -> None:
    said = [*SAID, ToolMessage("12:00", tool_call_id="1")]
    answer = close(said, partial)[-1]
    assert answer.content == partial
    assert closed_mark(answer) == {"closed": "failed", "code": "deadline", "is_partial": True}


def test_other_messages_carry_no_mark() -> None:
    assert closed_mark(AIMessage("a")) is None
    assert closed_mark(AIMessage("a", additional_kwargs={"turnfold": {"unreadable_calls": []}})) is None
