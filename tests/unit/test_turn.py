from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph import extract_current_turn, extract_last_n_turns
from graph.core.turn import (
    closed_mark,
    closing_messages,
    goes_on,
    going_on,
    is_complete,
    is_final_answer,
    split_turns,
    text_of,
    unanswered_calls,
)


def call(call_id: str) -> dict[str, Any]:
    return {"name": "search", "args": {"q": "x"}, "id": call_id, "type": "tool_call"}


def plain_turn(number: int) -> list[AnyMessage]:
    return [HumanMessage(f"q{number}"), AIMessage(f"a{number}")]


def tool_turn(number: int) -> list[AnyMessage]:
    return [
        HumanMessage(f"q{number}"),
        AIMessage("", tool_calls=[call(f"c{number}a"), call(f"c{number}b")]),
        ToolMessage("r1", tool_call_id=f"c{number}a"),
        ToolMessage("r2", tool_call_id=f"c{number}b"),
        AIMessage("", tool_calls=[call(f"c{number}c")]),
        ToolMessage("r3", tool_call_id=f"c{number}c"),
        AIMessage(f"a{number}"),
    ]


def test_last_turns_are_the_newest_complete_ones_with_every_message() -> None:
    messages = [*plain_turn(1), *tool_turn(2), *plain_turn(3)]
    assert extract_last_n_turns(messages, 2) == [*tool_turn(2), *plain_turn(3)]
    assert extract_last_n_turns(messages, 9) == messages
    assert extract_last_n_turns(messages, 0) == extract_last_n_turns(messages, -1) == []
    assert extract_current_turn(messages) == []
    no_calls: list[AnyMessage] = [HumanMessage("q"), AIMessage("a", tool_calls=[])]
    assert extract_last_n_turns(no_calls, 1) == no_calls


def test_turn_is_open_until_an_answer_that_calls_no_tool() -> None:
    for length in (2, 4, 5):
        opened = [*plain_turn(1), *tool_turn(2)[:length]]
        assert not is_final_answer(opened[-1])
        assert extract_last_n_turns(opened, 3) == plain_turn(1)
        assert extract_current_turn(opened) == tool_turn(2)[:length]
    assert is_final_answer(tool_turn(2)[-1])
    assert not is_final_answer(HumanMessage("q1"))
    assert extract_current_turn([HumanMessage("q1")]) == [HumanMessage("q1")]


def test_turn_begins_with_each_question() -> None:
    assert split_turns([SystemMessage("s"), *plain_turn(1)]) == [plain_turn(1)]
    assert [len(turn) for turn in split_turns([HumanMessage("a"), HumanMessage("b"), AIMessage("c")])] == [1, 2]


def test_text_of_content_blocks_is_their_text_and_a_mark_for_each_image() -> None:
    blocks: list[str | dict[str, Any]] = [
        {"type": "text", "text": "가나"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        "다",
        {"type": "reasoning", "text": "hidden"},
    ]
    assert text_of(HumanMessage(blocks)) == "가나다\n[image]"
    assert text_of(HumanMessage(blocks[1:2])) == "[image]"


OPEN: list[AnyMessage] = [
    HumanMessage("q"),
    AIMessage("먼저 시각을 알아보겠습니다.", tool_calls=[call("1"), call("2")]),
    ToolMessage("12:00", tool_call_id="1"),
]
NO_ANSWER = "(답변을 만들지 못했습니다.)"


def close(messages: list[AnyMessage], partial: str = "") -> list[AnyMessage]:
    return closing_messages(
        messages, status="failed", code="deadline", partial_text=partial, language="ko", message_id="closed-1"
    )


def test_closed_turn_is_complete_without_orphan_calls() -> None:
    assert unanswered_calls(OPEN) == ["2"]
    closed = [*OPEN, *close(OPEN)]
    assert is_complete(closed)
    assert unanswered_calls(closed) == []


def test_partial_text_is_kept_and_marked_unless_it_is_blank_or_was_said_before_a_call() -> None:
    asked, said = OPEN[:1], OPEN[:2]
    for messages, partial, retained in (
        (asked, "여기까지", "여기까지"),
        (asked, " \n", NO_ANSWER),
        (said, "먼저 시각을", NO_ANSWER),
        (said, "먼저 시각을 알아보겠습니다.", NO_ANSWER),
        (said, " 먼저 시각을 알아보겠습니다.\n", NO_ANSWER),
        (OPEN, "지금은", "지금은"),
        (OPEN, "먼저 시각을 알아보니", "먼저 시각을 알아보니"),
        (OPEN, "먼저 시각을 알아보겠습니다. 지금은", "먼저 시각을 알아보겠습니다. 지금은"),
    ):
        answer = close(messages, partial)[-1]
        assert answer.content == retained
        assert closed_mark(answer) == {"closed": "failed", "code": "deadline", "is_partial": retained != NO_ANSWER}
    assert closed_mark(AIMessage("a")) is None
    assert closed_mark(AIMessage("a", additional_kwargs={"turnfold": {"unreadable_calls": []}})) is None


def test_only_an_end_that_says_and_calls_nothing_is_left_out() -> None:
    """The mark may come from a file that anybody has written."""
    end = going_on("m-1")
    assert goes_on(end)
    assert is_complete([HumanMessage("q"), end])
    others: list[dict[str, Any]] = [
        {"content": "words"},
        {"tool_calls": [call("c")]},
        {"additional_kwargs": {"turnfold": "goes_on"}},
    ]
    assert not any(goes_on(end.model_copy(update=change)) for change in others)
    assert not goes_on(HumanMessage("", additional_kwargs=end.additional_kwargs))
