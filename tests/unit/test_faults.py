from __future__ import annotations

from typing import Any

import pytest

from tests.fake.body import faults

SYSTEM = {"role": "system", "content": "rules"}
USER = {"role": "user", "content": "question"}
ANSWER = {"role": "assistant", "content": "answer"}
BLANK = {"role": "assistant", "content": " \n"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "result"}


@pytest.mark.parametrize(
    "messages",
    [
        [SYSTEM, USER],
        [USER, ANSWER, USER],
        [SYSTEM, USER, CALL, RESULT, ANSWER, USER],
        [SYSTEM, USER, CALL, RESULT],
    ],
)
def test_a_sound_conversation_has_no_fault(messages: list[Any]) -> None:
    assert faults(messages) == []


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([SYSTEM], "no user message at all"),
        ([], "no user message at all"),
        ([SYSTEM, ANSWER], "no user message at all"),
        ([SYSTEM, ANSWER, USER], "the first message isn't the user's"),
        ([ANSWER, USER], "the first message isn't the user's"),
        ([SYSTEM, USER, USER], "two user messages running"),
        ([SYSTEM, USER, BLANK, USER], "blank answer"),
        ([SYSTEM, USER, CALL, USER], "calls without results: ['c1']"),
        ([SYSTEM, USER, CALL], "calls without results: ['c1']"),
        ([SYSTEM, USER, RESULT, ANSWER], "result without a call: c1"),
        ([SYSTEM, USER, CALL, RESULT, RESULT], "result without a call: c1"),
    ],
)
def test_each_fault_is_named(messages: list[Any], fault: str) -> None:
    assert faults(messages) == [fault]
