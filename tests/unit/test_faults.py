from __future__ import annotations

from typing import Any

from tests.fake.body import faults

SYSTEM = {"role": "system", "content": "rules"}
USER = {"role": "user", "content": "question"}
ANSWER = {"role": "assistant", "content": "answer"}
BLANK = {"role": "assistant", "content": " \n"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "result"}


def test_each_fault_of_a_conversation_is_named() -> None:
    conversations: list[tuple[list[Any], list[str]]] = [
        ([SYSTEM, USER, CALL, RESULT, ANSWER, USER], []),
        ([SYSTEM, USER, CALL, RESULT], []),
        ([SYSTEM, ANSWER], ["no user message at all"]),
        ([SYSTEM, ANSWER, USER], ["the first message isn't the user's"]),
        ([SYSTEM, USER, USER], ["two user messages running"]),
        ([SYSTEM, USER, BLANK, USER], ["blank answer"]),
        ([SYSTEM, USER, CALL, USER], ["calls without results: ['c1']"]),
        ([SYSTEM, USER, CALL], ["calls without results: ['c1']"]),
        ([SYSTEM, USER, CALL, RESULT, RESULT], ["result without a call: c1"]),
    ]
    for messages, named in conversations:
        assert faults(messages) == named
