from __future__ import annotations

import json
from typing import Any

import pytest

from graph.event import TurnFinished, TurnStopped
from tests.fake.body import tokens_of
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

ROWS = """
    SELECT turn, attempt, ordinal, kind, usage_input_tokens, usage_output_tokens, error_code FROM model_call
    ORDER BY turn, attempt, ordinal
"""
ARGUMENTS = json.dumps({"material": "갑은 을보다 크다.", "question": "누가 더 큰가?"})
USAGE = {"prompt_tokens": 71, "completion_tokens": 9, "total_tokens": 80}


def reasoning(number: int = 1) -> ScriptedCall:
    return ScriptedCall("reasoning", ARGUMENTS, f"call-{number}")


def is_reasoning(body: Any) -> bool:  # noqa: ANN401  # the request's JSON
    return "<material>" in str(body["messages"][-1])


def test_the_call_of_the_reasoning_tool_has_its_row_between_those_of_the_answer(chat: Chat, server: FakeOpenAI) -> None:
    usage = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}
    server.script(tools(reasoning(), usage=usage), text("갑이다.", usage=USAGE), text("갑입니다.", usage=usage))
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert chat.rows(ROWS) == [
        (1, 1, 1, "answer", 300, 20, ""),
        (1, 1, 2, "reasoning", 71, 9, ""),
        (1, 1, 3, "answer", 300, 20, ""),
    ]


def test_the_row_of_a_tools_call_says_what_was_sent(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(reasoning()), text("갑이다."), text("갑입니다."))
    chat.say(question(1))
    (body,) = [body for body in server.bodies("chat") if is_reasoning(body)]
    query = "SELECT manifest, sent_tokens, full_tokens, model, input_hash FROM model_call WHERE kind = 'reasoning'"
    ((written, sent, full, model, digest),) = chat.rows(query)
    _, prompt, given = json.loads(written)
    assert (prompt[:2], given[:2]) == (["system", "reasoning"], ["call", "call-1"])
    assert sent == full == prompt[-1] + given[-1] == tokens_of({"messages": body["messages"]})
    assert model == "scripted-model"
    assert digest not in ("", *(row[0] for row in chat.rows("SELECT input_hash FROM model_call WHERE kind = 'answer'")))


def test_what_a_tool_sends_counts_in_no_figure_of_the_chat(chat: Chat, server: FakeOpenAI) -> None:
    small = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    server.script(tools(reasoning(), usage=None), text("갑이다.", usage=small), text("갑입니다.", usage=None))
    chat.say(question(1))
    last = [body for body in server.bodies("chat") if not is_reasoning(body)][-1]
    (point,) = chat.service.folds.chart(chat.session_id)
    assert point.sent_tokens == point.full_tokens == tokens_of(last)
    # Had the tool's usage counted, the estimate would be corrected by it.
    assert chat.service.folds.gauge(chat.session_id).sent_tokens == tokens_of(last)
    assert chat.service.folds.statistics(chat.session_id).unsent_tokens == 0


def test_a_tools_call_that_fails_has_its_row_and_the_chat_goes_on(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(reasoning()), failure(401), text("생각해 보지 못했습니다."))
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert [row[2:] for row in chat.rows(ROWS)] == [
        (1, "answer", 100, 20, ""),
        (2, "reasoning", None, None, "authentication"),
        (3, "answer", 100, 20, ""),
    ]


def test_calls_side_by_side_have_a_number_each(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(*(reasoning(number) for number in range(1, 6))), *[text("갑이다.")] * 5, text("갑입니다."))
    chat.say(question(1))
    assert [row[2:4] for row in chat.rows(ROWS)] == [
        (1, "answer"),
        *((number, "reasoning") for number in range(2, 7)),
        (7, "answer"),
    ]


def test_each_attempt_counts_its_own_calls(chat: Chat, server: FakeOpenAI) -> None:
    server.script(
        tools(reasoning()), text("갑이다."), text("갑입니다."), tools(reasoning(2)), text("갑이다."), text("네.")
    )
    chat.say(question(1))
    chat.regenerate()
    assert [row[1:4] for row in chat.rows(ROWS)] == [
        (attempt, ordinal, kind)
        for attempt in (1, 2)
        for ordinal, kind in enumerate(("answer", "reasoning", "answer"), start=1)
    ]


def test_a_tools_call_that_stop_ends_has_its_row(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(reasoning()), hang("음"))
    chat.start(question(1))
    server.wait_until(lambda fake: len(fake.bodies("chat")) == 2)
    chat.service.turns.stop(chat.session_id)
    assert isinstance(chat.events()[-1], TurnStopped)
    assert [row[2:] for row in chat.rows(ROWS)] == [
        (1, "answer", 100, 20, ""),
        (2, "reasoning", None, None, "stopped"),
    ]


def test_a_tools_call_that_outlasts_its_time_has_its_row(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(tool_deadline_seconds=3)
    server.script(tools(reasoning()), hang("음"), text("오래 걸려 그만두었습니다."))
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert [row[3:] for row in chat.rows(ROWS)][1] == ("reasoning", None, None, "deadline")


def test_the_second_try_after_a_context_length_error_is_a_call_of_its_own(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    server.script(failure(400, "too long", code="context_length_exceeded"))
    assert isinstance(chat.say(question(3))[-1], TurnFinished)
    assert [(row[2], row[6]) for row in chat.rows(ROWS) if row[0] == 3] == [(1, "context_length"), (2, "")]
    *_, last = chat.service.folds.chart(chat.session_id)
    assert last.sent_tokens == tokens_of(server.bodies("chat")[-1])


@pytest.mark.parametrize("rounds", [1, 3])
def test_each_round_of_tools_is_a_call_of_its_own(chat: Chat, server: FakeOpenAI, rounds: int) -> None:
    clock = [tools(ScriptedCall("get_current_time", "{}", f"call-{number}")) for number in range(rounds)]
    server.script(*clock, text("지금입니다."))
    chat.say(question(1))
    assert [row[2:4] for row in chat.rows(ROWS)] == [(number, "answer") for number in range(1, rounds + 2)]
