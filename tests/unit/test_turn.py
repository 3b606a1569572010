from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph import extract_current_turn, extract_last_n_turns
from graph.core.turn import is_final_answer, split_turns, text_of, unanswered_calls


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


def test_last_turns_keep_every_message_of_a_tool_turn() -> None:
    messages = [*plain_turn(1), *tool_turn(2), *plain_turn(3)]
    assert extract_last_n_turns(messages, 2) == [*tool_turn(2), *plain_turn(3)]


@pytest.mark.parametrize("n", [0, -1])
def test_no_turns_asked_for_gives_none(n: int) -> None:
    assert extract_last_n_turns(plain_turn(1), n) == []


def test_more_turns_than_there_are_gives_all() -> None:
    assert extract_last_n_turns(plain_turn(1), 9) == plain_turn(1)


def test_open_turn_is_not_among_the_last_turns() -> None:
    opened = [*plain_turn(1), *tool_turn(2)[:4]]
    assert extract_last_n_turns(opened, 3) == plain_turn(1)
    assert extract_current_turn(opened) == tool_turn(2)[:4]


def test_an_answer_that_calls_tools_leaves_its_turn_open() -> None:
    for length in (2, 5):
        opened = [*plain_turn(1), *tool_turn(2)[:length]]
        assert not is_final_answer(opened[-1])
        assert extract_last_n_turns(opened, 3) == plain_turn(1)
        assert extract_current_turn(opened) == tool_turn(2)[:length]
    assert is_final_answer(tool_turn(2)[-1])
    assert not is_final_answer(HumanMessage("q1"))


def test_no_current_turn_once_it_is_answered() -> None:
    assert extract_current_turn([*plain_turn(1), *tool_turn(2)]) == []


def test_current_turn_of_a_first_question_is_the_question() -> None:
    assert extract_current_turn([HumanMessage("q1")]) == [HumanMessage("q1")]


def test_tool_calls_none_and_empty_both_end_a_turn() -> None:
    messages: list[AnyMessage] = [HumanMessage("q"), AIMessage("a", tool_calls=[])]
    assert extract_last_n_turns(messages, 1) == messages


def test_messages_before_the_first_question_belong_to_no_turn() -> None:
    assert split_turns([SystemMessage("s"), *plain_turn(1)]) == [plain_turn(1)]


def test_two_questions_running_are_two_turns() -> None:
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


def test_unanswered_calls_are_those_without_a_result() -> None:
    assert unanswered_calls(tool_turn(1)[:3]) == ["c1b"]
    assert unanswered_calls(tool_turn(1)) == []
