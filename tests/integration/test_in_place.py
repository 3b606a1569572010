"""Folds that are asked for behind the chat itself, so that a provider's cache serves."""

from __future__ import annotations

from typing import Any

import pytest

from graph.value.event import TurnFinished
from prompt.summary.in_place_generator import BEGINNING
from tests.fake.body import content_of, faults, roles, shape
from tests.fake.caching import (
    ALWAYS,
    CachingResponder,
    all_tokens,
    before_summaries,
    is_in_place,
    lookup,
    shared_tokens,
)
from tests.fake.chat import Chat, question, text_of
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import CACHED_USAGE, Body, Reply, ScriptedCall, failure, text, tools
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.trip import DRAFTS, TRIP, fold, summary_of, target_of

ENGLISH = "The user moves a server in October and Kim is in charge of it; the database is copied first. " * 3


def in_place(server: FakeOpenAI) -> list[bool]:
    """Of each request for a summary whether it was in place."""
    return [is_in_place(body) for body in server.bodies("summary")]


def instruction(body: Body) -> str:
    return content_of(body["messages"][-1])


def test_a_fold_is_the_conversation_as_it_was_last_sent_its_answer_and_one_instruction(
    chat: Chat, cached: FakeOpenAI
) -> None:
    chat.ask(1, 7)
    asked, second = cached.bodies("summary")
    third = cached.bodies("chat")[2]
    assert asked["messages"][:-2] == third["messages"]
    assert asked["messages"][-2] == {"role": "assistant", "content": chat.turns[2].answer_text}
    assert roles(asked)[-1] == "user"
    assert instruction(asked).startswith(
        f"{BEGINNING['ko']} 답하거나 도구를 쓰지 말고 위의 1-3턴을 메모로 줄이세요: «질문 1번입니다."
    )
    assert "마지막 답까지. " in instruction(asked)
    assert '"(1턴) … (2턴) …"' in instruction(asked)
    record = chat.service.folds.records(chat.session_id)[0]
    asked_chars = round(record.original_chars * record.needed_rate)
    assert f" 공백 포함 {round(asked_chars * 0.85)}자쯤, 많아도 {round(asked_chars * 1.25)}자." in instruction(asked)
    assert asked["tools"] == third["tools"]
    assert (asked["tool_choice"], third.get("tool_choice")) == ("none", None)
    assert faults(asked["messages"]) == []
    # What was said before the block is before the next one, too.
    assert shape(second)[:4] == [(1, 3), 4, 5, 6]
    assert second["messages"][:-2] == cached.bodies("chat")[5]["messages"]
    assert "4-6턴" in instruction(second)
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]


def test_the_bytes_before_the_answer_are_those_sent_before(open_chat: OpenChat, cached: FakeOpenAI) -> None:
    chat = open_chat(tools=[lookup(2_000)])
    cached.script(tools(ScriptedCall("look_up", '{"case": "7"}', "call-1")), to="질문 2번")
    chat.ask(1, 3)
    (*_, third), (asked,) = (
        [exchange.sent.decode() for exchange in cached.exchanges if exchange.kind == kind]
        for kind in ("chat", "summary")
    )
    begin = third.index('"messages":[')
    end = third.index(f'{question(3)}"')
    assert asked[begin:].startswith(third[begin:end])
    assert '"tool_calls"' in third[begin:end]
    tools_in = [sent[sent.index('"tools":') :].partition(',"tool_choice"')[0].rstrip("}") for sent in (third, asked)]
    assert tools_in[0] == tools_in[1]


def _looking_up(body: Body) -> Reply | None:
    """Looks something up in the first turn of each block."""
    if kind_of(body) == "summary" or roles(body)[-1] != "user":
        return None
    number = int(content_of(body["messages"][-1]).partition("번")[0].split()[-1])
    call = ScriptedCall("look_up", f'{{"case": "{number}"}}', f"call-{number}")
    return tools(call, usage=CACHED_USAGE) if number % 3 == 1 else None


def test_six_in_seven_tokens_of_a_request_in_place_are_a_prefix_of_the_one_before(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.respond_with(CachingResponder(reply=_looking_up))
    chat = open_chat(tools=[lookup(10_000)])
    chat.ask(1, 7)
    pairs = list(before_summaries(server))
    assert len(pairs) == 2
    for before, asked in pairs:
        assert is_in_place(asked)
        assert shared_tokens(before, asked) / all_tokens(asked) >= 0.85
    for record in chat.service.folds.records(chat.session_id):
        assert (record.is_usage, record.outcome) == (True, "compressed")


def test_an_english_turn_with_tools_is_remembered_with_its_last_round(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ALWAYS)
    answer = text("It is noon there, as it was yesterday. " * 20)
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), answer, to="Question 3")
    for number in range(1, 5):
        chat.say(f"Question {number}: the move of the server is set for October {number}. Is anything missing? " * 3)
        chat.wait_for_folds()
    (asked,) = server.bodies("summary")
    assert roles(asked)[-5:] == ["user", "assistant", "tool", "assistant", "user"]
    assert faults(asked["messages"]) == []
    assert instruction(asked).startswith("[Summary request] Don't answer and use no tools: condense turns 1-3 of")
    assert "from “Question 1: the move…” to the last answer, into notes." in instruction(asked)
    assert not any("가" <= char <= "힣" for char in instruction(asked))
    assert chat.covered == [(1, 2, 3)]


# Where in place does not serve


@pytest.mark.parametrize(
    ("settings", "usage"),
    [
        ({}, {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}),
        ({"fold_in_place": "never"}, CACHED_USAGE),
        ({**ALWAYS, "chat_summary_model": "small"}, CACHED_USAGE),
    ],
    ids=["no cache", "never", "another model"],
)
def test_a_fold_is_quoted_where_in_place_does_not_serve(
    chat_with: OpenChat, server: FakeOpenAI, settings: dict[str, Any], usage: dict[str, Any]
) -> None:
    answer = text("그렇게 정리하겠습니다. " * 12, usage=usage)
    server.respond_with(lambda body: answer_body(body) if kind_of(body) == "summary" else answer)
    chat = chat_with(**settings)
    chat.ask(1, 4)
    assert in_place(server) == [False]
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize(("window_tokens", "fits"), [(2_200, False), (3_400, True)])
def test_what_would_not_fit_into_the_window_is_quoted(
    chat_with: OpenChat, server: FakeOpenAI, window_tokens: int, *, fits: bool
) -> None:
    server.respond_with(CachingResponder(300))
    chat = chat_with(**ALWAYS, model_window_tokens=window_tokens, guard_share=0.95)
    chat.ask(1, 4)
    assert in_place(server) == [fits]
    assert chat.covered == [(1, 2, 3)]


def test_a_server_that_did_not_send_the_last_input_quotes(open_chat: OpenChat, cached: FakeOpenAI) -> None:
    with open_chat(context_strategy="compaction") as first:
        first.ask(1, 6)
    later = open_chat(first.session_id, **ALWAYS, context_strategy="compaction")
    later.service.folds.compact(first.session_id)
    later.ask(7, 9)
    later.service.folds.compact(first.session_id)
    assert in_place(cached) == [False, True]


def test_a_provider_that_finds_it_too_long_gets_the_source_quoted(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ALWAYS)
    server.script(failure(400, code="context_length_exceeded"), kind="summary")
    chat.ask(1, 4)
    assert in_place(server) == [True, False]
    assert chat.covered == [(1, 2, 3)]


# The other strategies


def test_a_version_that_the_last_input_holds_whole_is_asked_for_in_place(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**ALWAYS, context_strategy="rolling", app_context_threshold=500)
    chat.ask(1, 6)
    asked = server.bodies("summary")
    assert len(asked) >= 2
    assert all(in_place(server))
    assert {body.get("max_tokens", body.get("max_completion_tokens")) for body in asked} == {4_096}
    first, second = map(instruction, asked[:2])
    assert "from “질문 1번입니다. 서버 이전은 10월…” to the answer to “" in first
    assert "Update the previous summary" not in first
    assert "from the earlier summary to the answer to “" in second
    assert "Update the previous summary" in second
    assert len(chat.covered) == 1


def test_a_compaction_is_asked_for_in_place(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ALWAYS, context_strategy="compaction")
    chat.ask(1, 6)
    record = chat.service.folds.compact(chat.session_id)
    (asked,) = server.bodies("summary")
    last = server.bodies("chat")[-1]
    assert asked["messages"][: len(last["messages"])] == last["messages"]
    assert "1. **Task Overview**" in instruction(asked)
    assert "<summary></summary>" in instruction(asked)
    assert "to the answer to “질문 4번" in instruction(asked)
    assert record.kind == "compaction"
    chat.ask(7, 9)
    chat.service.folds.compact(chat.session_id)
    assert "from the earlier summary" in instruction(server.bodies("summary")[-1])


def test_merges_are_quoted(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ALWAYS, records_budget_tokens=500, merged_together=2, newest_records=1, merged_tokens=200)
    chat.ask(1, 22)
    asked = server.bodies("summary")
    merges = [body for body in asked if 'from="summary"' in instruction(body)]
    assert merges
    assert all(is_in_place(body) for body in asked if body not in merges)
    assert len(asked) > len(merges)


# Drafts


def test_a_block_that_failed_is_named_by_where_it_ends(chat: Chat, cached: FakeOpenAI) -> None:
    cached.script(failure(500), kind="summary")
    chat.ask(1, 5)
    _, second = cached.bodies("summary")
    fourth = cached.bodies("chat")[3]
    assert second["messages"][: len(fourth["messages"])] == fourth["messages"]
    assert "«질문 1번입니다. 서버 이전은 10월…»부터 «질문 3번" in instruction(second)
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize("flaw", ["language", "answer"])
def test_a_flawed_draft_is_mended_behind_itself_in_the_chat(chat_with: OpenChat, server: FakeOpenAI, flaw: str) -> None:
    draft, said = DRAFTS[flaw]
    good = summary_of(target_of(TRIP))
    record = fold(chat_with(**ALWAYS), server, TRIP, draft, good, after_turns=3)
    assert record is not None
    assert (record.summary, record.outcome) == (good, "compressed")
    _, first, second = server.bodies("summary")
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert roles({"messages": second["messages"][len(first["messages"]) :]}) == ["assistant", "user"]
    assert said in instruction(second)
    assert "<source>" not in instruction(second)
    assert (first["tools"], first["tool_choice"]) == (second["tools"], second["tool_choice"])
    assert faults(second["messages"]) == []


def test_a_first_draft_is_mended_behind_the_chat_as_it_has_become(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ALWAYS)
    server.script(text(ENGLISH), kind="summary")
    chat.ask(1, 5)
    first, second = server.bodies("summary")
    fourth = server.bodies("chat")[3]["messages"]
    assert second["messages"][: len(fourth)] == fourth
    assert roles(second)[len(fourth) :] == ["assistant", "user", "assistant", "user"]
    assert content_of(second["messages"][-2]) == ENGLISH.strip()
    assert roles(first)[-1] == "user"
    assert chat.covered == [(1, 2, 3)]


def test_a_tool_call_in_place_of_a_summary_is_a_failed_draft(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ALWAYS)
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
    assert instruction(second).startswith("답이 비어 있습니다")
    *_, record = chat.service.folds.records(chat.session_id)
    assert (record.summary, record.input_tokens, record.output_tokens) == (good, 200, 40)
    assert all(not turn.steps for turn in chat.turns)


def test_an_endpoint_that_refuses_tool_choice_gets_none_for_a_summary_either(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    refusal = failure(400, "Unsupported parameter: 'tool_choice' is not supported with this model.")
    server.respond_with(lambda body: refusal if "tool_choice" in body else answer_body(body))
    chat = open_chat(**ALWAYS)
    chat.ask(1, 3)
    chat.say("고마워요!")
    chat.ask(5, 7)
    asked = [("tool_choice" in body, bool(body["tools"])) for body in server.bodies("summary")]
    assert asked == [(True, True), (False, True), (False, True)]
    assert ["tool_choice" in body for body in server.bodies("chat")] == [False] * 7
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]


def test_no_word_of_a_summary_is_heard_in_the_turn_that_waits_for_it(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ALWAYS)
    server.script(*(text(answer) for _, answer in TRIP), text("넷째 답입니다."))
    server.script(text(summary_of(target_of(TRIP)), pause_seconds=0.01), kind="summary")
    for asked, _ in TRIP:
        chat.say(asked)
    events = chat.say(question(4))
    assert isinstance(events[-1], TurnFinished)
    assert text_of(events) == events[-1].text == "넷째 답입니다."
    assert chat.covered == [(1, 2, 3)]
