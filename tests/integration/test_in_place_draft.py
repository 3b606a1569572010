from __future__ import annotations

import pytest

from graph.event import TurnFinished
from tests.fake.body import content_of, faults, shape
from tests.fake.caching import (
    ALWAYS,
    is_in_place,
)
from tests.fake.chat import question, text_of
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, text, tools
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.trip import TRIP, fold, summary_of, target_of
from tests.integration.test_fold_text import DRAFTS


def test_a_block_that_failed_is_named_by_where_it_ends(open_chat: OpenChat, cached: FakeOpenAI) -> None:
    chat = open_chat()
    cached.script(failure(500), kind="summary")
    chat.ask(1, 5)
    _, second = cached.bodies("summary")
    fourth = cached.bodies("chat")[3]
    assert second["messages"][: len(fourth["messages"])] == fourth["messages"]
    assert "«질문 1번입니다. 서버 이전은 10월…»부터 «질문 3번" in content_of(second["messages"][-1])
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize(("draft", "said"), DRAFTS.values(), ids=DRAFTS)
def test_a_flawed_draft_is_mended_behind_itself_in_the_chat(
    open_chat: OpenChat, server: FakeOpenAI, draft: str, said: str
) -> None:
    good = summary_of(target_of(TRIP))
    record = fold(open_chat(**ALWAYS), server, TRIP, draft, good, after_turns=3)
    assert record is not None
    assert (record.summary, record.outcome) == (good, "compressed")
    _, first, second = server.bodies("summary")
    assert second["messages"][: len(first["messages"])] == first["messages"]
    behind = second["messages"][len(first["messages"]) :]
    assert [message["role"] for message in behind] == ["assistant", "user"]
    assert said in content_of(behind[1])
    assert "<source>" not in content_of(behind[1])
    assert (first["tools"], first["tool_choice"]) == (second["tools"], second["tool_choice"])
    assert faults(second["messages"]) == []


def test_a_tool_call_in_place_of_a_summary_is_a_failed_draft(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    good = summary_of(target_of(TRIP))
    call = tools(ScriptedCall("get_current_time", "{}", "call-1"), answer="시간을 먼저 보겠습니다.")
    chat.ask(1, 3)
    server.script(*(text(answer) for _, answer in TRIP))
    server.script(call, text(good), kind="summary")
    for asked, _ in TRIP:
        chat.say(asked)
    chat.wait_for_folds()
    chat.ask(7, 7)
    *_, second = server.bodies("summary")
    assert faults(second["messages"]) == []
    assert content_of(second["messages"][-1]).startswith("답이 비어 있습니다")
    *_, record = chat.service.folds.records(chat.session_id)
    assert (record.summary, record.input_tokens, record.output_tokens) == (good, 200, 40)
    assert all(not turn.steps for turn in chat.turns)


def test_two_tool_calls_in_place_of_a_summary_leave_the_turns_raw(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    call = tools(ScriptedCall("get_current_time", "{}", "call-1"))
    chat.ask(1, 3)
    server.script(call, call, kind="summary")
    chat.ask(4, 7)
    assert chat.rows("SELECT error_code FROM record WHERE status = 'FAILED'") == [("summary_empty",)]
    assert shape(server.bodies("chat")[6]) == [(1, 3), 4, 5, 6, 7]


def test_an_endpoint_that_refuses_tool_choice_gets_none_for_a_summary_either(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    refusal = failure(400, "Unsupported parameter: 'tool_choice' is not supported with this model.")
    server.respond_with(lambda body: refusal if "tool_choice" in body else answer_body(body))
    chat = open_chat(**ALWAYS)
    chat.ask(1, 3)
    chat.say("고마워요!")
    chat.ask(5, 7)
    asked = server.bodies("summary")
    assert [("tool_choice" in body, bool(body["tools"])) for body in asked] == [
        (True, True),
        (False, True),
        (False, True),
    ]
    assert ["tool_choice" in body for body in server.bodies("chat")] == [False] * 7
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]


def test_a_provider_that_finds_it_too_long_gets_the_source_quoted(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    server.script(failure(400, code="context_length_exceeded"), kind="summary")
    chat.ask(1, 4)
    assert [is_in_place(body) for body in server.bodies("summary")] == [True, False]
    assert chat.covered == [(1, 2, 3)]


def test_no_word_of_a_summary_is_heard_in_the_turn_that_waits_for_it(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    slow = text(summary_of(target_of(TRIP)), pause_seconds=0.01)
    server.script(*(text(answer) for _, answer in TRIP), text("넷째 답입니다."))
    server.script(slow, kind="summary")
    for asked, _ in TRIP:
        chat.say(asked)
    events = chat.say(question(4))
    assert isinstance(events[-1], TurnFinished)
    assert text_of(events) == events[-1].text == "넷째 답입니다."
    assert chat.covered == [(1, 2, 3)]
