"""Turns whose model calls tools, and which calls of models are written down."""

from __future__ import annotations

import json
import threading

import pytest
from langchain_core.tools import StructuredTool

from graph.value.event import ToolFinished, TurnFailed, TurnFinished, TurnStopped
from graph.value.view import TurnOptions
from prompt.tool.words import CLOCK_ZONES, UNREADABLE, no_zone
from tests.fake.body import content_of, faults, roles, shape, tokens_of, tool_names
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, hang, text, tools
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI

SEOUL = ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")
THOUGHT = json.dumps({"material": "갑은 을보다 크다.", "question": "누가 더 큰가?"})
USAGE = "ordinal, kind, usage_input_tokens, usage_output_tokens, error_code"
NO_MORE = "도구를 더 쓸 수 없습니다"


def results(body: Body) -> list[str]:
    return [content_of(message) for message in body["messages"] if message["role"] == "tool"]


def choices(server: FakeOpenAI) -> list[str | None]:
    return [body.get("tool_choice") for body in server.bodies("chat")]


def reasoning(number: int = 1) -> ScriptedCall:
    return ScriptedCall("reasoning", THOUGHT, f"call-{number}")


def is_reasoning(body: Body) -> bool:
    return "<material>" in str(body["messages"][-1])


def calls_of(chat: Chat, columns: str = USAGE) -> list[tuple[object, ...]]:
    query = f"SELECT {columns} FROM model_call WHERE session_id = ? ORDER BY turn, attempt, ordinal"  # noqa: S608  # names of our own
    return chat.rows(query, chat.session_id)


def test_tool_runs_and_the_model_reads_its_result(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL), text("서울은 지금 낮입니다. 그 밖에 더 알려 드릴 것은 없습니다."))
    events = chat.say(question(1))
    assert names(events) == ["TurnStarted", "ToolStarted", "ToolFinished", "TokenDelta", "TurnFinished"]
    first, second = server.bodies("chat")
    assert tool_names(first) == ["get_current_time", "web_search", "reasoning", "recall"]
    assert second["tools"] == first["tools"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert roles(second) == ["system", "user", "assistant", "tool"]
    assert "Asia/Seoul (UTC+09:00)" in results(second)[0]
    (step,) = chat.last_turn.steps
    assert (step.name, json.loads(step.arguments), step.status, step.result) == (
        "get_current_time",
        {"timezone": "Asia/Seoul"},
        "done",
        results(second)[0],
    )
    assert calls_of(chat, "ordinal, kind") == [(1, "answer"), (2, "answer")]
    (point,) = chat.service.folds.chart(chat.session_id)
    assert point.sent_tokens == point.full_tokens == tokens_of(second)
    # A block with tools is folded with their results.
    chat.ask(2, 4)
    (record,) = chat.service.folds.records(chat.session_id)
    said = sum(len(turn.user_text + turn.answer_text) for turn in chat.turns[:3])
    assert record.original_chars == said + len(step.result)
    assert "Asia/Seoul (UTC+09:00)" in str(server.bodies("summary")[0])
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]


def test_call_that_cannot_be_run_is_shown_as_failed_and_the_model_reads_why(chat: Chat, server: FakeOpenAI) -> None:
    calls = [
        ScriptedCall("get_weather", "{}", "no-tool"),
        ScriptedCall("get_current_time", '{"timezone": "Mars/Base"}', "no-zone"),
        ScriptedCall("get_current_time", "", "good"),
        ScriptedCall("get_current_time", '{"timezone": "Asia/Se', "half"),
    ]
    server.script(tools(*calls), text("화성 시각은 모릅니다."))
    events = chat.say("화성은 몇 시야?", options=TurnOptions(time_zone="America/New_York"))
    assert isinstance(events[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    unknown, zone, good, half = results(body)
    is_error = {unknown: True, half: True, zone: True, good: False}
    assert {event.result: event.is_error for event in events if isinstance(event, ToolFinished)} == is_error
    assert {step.result: step.status == "error" for step in chat.last_turn.steps} == is_error
    assert "get_weather" in unknown
    assert "get_current_time" in unknown
    assert half == UNREADABLE["ko"]
    json.loads(body["messages"][2]["tool_calls"][3]["function"]["arguments"])
    assert zone == no_zone("Mars/Base", CLOCK_ZONES, "ko")
    assert "America/New_York" in good  # the user's own zone holds where none is named
    assert faults(body["messages"]) == []


def test_several_calls_run_side_by_side_and_answer_in_order(open_chat: OpenChat, server: FakeOpenAI) -> None:
    both = threading.Barrier(2)

    def meet(name: str) -> str:
        both.wait(timeout=10)  # passes only if the other call runs at the same time
        return f"{name} 결과"

    tool = StructuredTool.from_function(meet, name="meet", description="Meets the other call.")
    calls = [ScriptedCall("meet", '{"name": "첫째"}', "call-1"), ScriptedCall("meet", '{"name": "둘째"}', "call-2")]
    server.script(tools(*calls), text("다 됐습니다."))
    chat = open_chat(tools=[tool])
    events = chat.say(question(1))
    assert names(events)[1:5] == ["ToolStarted", "ToolStarted", "ToolFinished", "ToolFinished"]
    body = server.bodies("chat")[-1]
    assert results(body) == ["첫째 결과", "둘째 결과"]
    assert [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"] == ["call-1", "call-2"]
    assert len(set(chat.rows("SELECT message_id FROM message WHERE role = 'tool'"))) == 2


def test_long_result_is_cut_and_that_of_a_broken_tool_says_why(open_chat: OpenChat, server: FakeOpenAI) -> None:
    long_tool = StructuredTool.from_function(lambda: "가" * 25_000, name="long", description="Says much.")
    broken_tool = StructuredTool.from_function(lambda: str(int("no luck")), name="broken", description="Fails.")
    server.script(tools(ScriptedCall("long", "{}", "c1"), ScriptedCall("broken", "{}", "c2")), text("길군요."))
    chat = open_chat(tools=[long_tool, broken_tool])
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    long, broken = results(server.bodies("chat")[-1])
    assert long.startswith("가" * 10_000)
    assert "가" * 10_001 not in long
    assert "10000 of 25000" in long
    assert "no luck" in broken
    assert [step.status for step in chat.last_turn.steps] == ["done", "error"]


def test_after_eight_rounds_the_model_answers_with_what_it_has(chat: Chat, server: FakeOpenAI) -> None:
    server.respond_with(lambda body: answer_body(body) if body.get("tool_choice") == "none" else tools(SEOUL))
    server.script(text("10월 3일입니다."))
    chat.say(question(1))
    chat.say("고마워요!")
    assert isinstance(chat.say(question(3))[-1], TurnFinished)
    assert choices(server) == [None, "none", *[None] * 8, "none"]
    bodies = server.bodies("chat")
    assert len({json.dumps(body["tools"], ensure_ascii=False) for body in bodies}) == 1
    assert calls_of(chat, "sent_tokens") == [(tokens_of(body),) for body in bodies]
    assert [faults(body["messages"]) for body in bodies] == [[]] * 11
    assert [NO_MORE in result for result in results(bodies[-1])] == [False] * 7 + [True]
    assert len(chat.last_turn.steps) == 8


def test_endpoint_that_ignores_tool_choice_gets_no_tools_in_the_last_round(chat: Chat, server: FakeOpenAI) -> None:
    server.respond_with(
        lambda body: tools(SEOUL) if body.get("tools") and kind_of(body) == "chat" else answer_body(body)
    )
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert choices(server) == [*[None] * 8, "none", None]
    assert NO_MORE in content_of(server.bodies("chat")[-1]["messages"][-1])
    assert len(chat.last_turn.steps) == 8
    # Small talk that is answered by a call and no word is asked for again without tools, too.
    assert isinstance(chat.say("고마워요!")[-1], TurnFinished)
    first, second = server.bodies("chat")[-2:]
    assert second["messages"] == first["messages"]
    assert (first["tool_choice"], {"tools", "tool_choice"} & second.keys()) == ("none", set())
    assert calls_of(chat, "sent_tokens")[-2:] == [(tokens_of(first),), (tokens_of(second),)]
    assert [step.name for step in chat.last_turn.steps] == []


def test_call_beside_an_answer_to_small_talk_is_dropped(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL, answer="천만에요."))
    assert isinstance(chat.say("고마워요!")[-1], TurnFinished)
    assert (chat.last_turn.answer_text, chat.last_turn.steps) == ("천만에요.", ())
    chat.ask(2, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


WORDINGS = [
    (400, "Unsupported parameter: 'tool_choice' is not supported with this model."),
    (400, "tool_choice: Extra inputs are not permitted"),
    (422, "toolChoice: unknown variant `none`"),
]


@pytest.mark.parametrize(("status", "words"), WORDINGS)
def test_endpoint_that_refuses_tool_choice_gets_none_anymore(
    open_chat: OpenChat, server: FakeOpenAI, status: int, words: str
) -> None:
    def refuse(body: Body) -> Reply:
        is_refused = "tool_choice" in body and body["model"] == "scripted-model"
        return failure(status, words) if is_refused else answer_body(body)

    server.respond_with(refuse)
    chat = open_chat()
    for small_talk in ("고마워요!", "안녕히 계세요"):
        assert isinstance(chat.say(small_talk)[-1], TurnFinished)
    assert choices(server) == ["none", None, None]
    assert calls_of(chat, "error_code") == [("rejected",), ("",), ("",)]
    chat.service.sessions.configure(chat.session_id, model="another-model")
    chat.say("고마워요!")
    Chat(chat.service).say("안녕하세요")
    assert choices(server)[3:] == ["none", None]
    assert len({json.dumps(body["tools"], ensure_ascii=False) for body in server.bodies("chat")}) == 1


def test_error_that_only_mentions_tool_choice_is_not_remembered(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(failure(*WORDINGS[0]), failure(400, "bad request"))
    failed = chat.say("안녕하세요")[-1]
    assert isinstance(failed, TurnFailed)
    assert failed.code == "rejected"
    chat.retry()
    assert choices(server) == ["none", None, "none"]


def test_provider_that_uses_one_call_id_again_leaves_no_orphan(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL), tools(SEOUL), failure(500))
    chat.say(question(1))
    chat.ask(2, 2)
    body = server.bodies("chat")[-1]
    assert faults(body["messages"]) == []
    ids = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert len(set(ids)) == 2


def test_answer_cut_after_a_tool_keeps_the_tools_result(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL), hang("서울은 "))
    chat.start("서울은 지금 몇 시야?")
    chat.stop_when(lambda live: live.text == "서울은 ")
    turn = chat.last_turn
    assert (turn.status, turn.answer_text, turn.steps[0].status) == ("stopped", "서울은", "done")
    chat.ask(2, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_call_of_the_reasoning_tool_is_written_between_those_of_the_answer(chat: Chat, server: FakeOpenAI) -> None:
    used, thought = ({"prompt_tokens": n, "completion_tokens": 9, "total_tokens": n + 9} for n in (300, 71))
    server.script(tools(reasoning(), usage=used), text("몰래 한 생각", usage=thought), text("갑입니다.", usage=used))
    events = chat.say(question(1))
    assert names(events) == ["TurnStarted", "ToolStarted", "ToolFinished", "TokenDelta", "TurnFinished"]
    assert (chat.last_turn.answer_text, chat.last_turn.steps[0].result) == ("갑입니다.", "몰래 한 생각")
    assert calls_of(chat) == [
        (1, "answer", 300, 9, ""),
        (2, "reasoning", 71, 9, ""),
        (3, "answer", 300, 9, ""),
    ]
    (body,) = filter(is_reasoning, server.bodies("chat"))
    _, row, _ = calls_of(chat, "manifest, sent_tokens, full_tokens, model, input_hash")
    _, prompt, given = json.loads(str(row[0]))
    assert (prompt[:2], given[:2]) == (["system", "reasoning"], ["call", "call-1"])
    tokens = prompt[-1] + given[-1]
    assert tokens == tokens_of({"messages": body["messages"]})
    assert row[1:4] == (tokens, tokens, "scripted-model")
    hashes = calls_of(chat, "input_hash")
    assert len({*hashes, ("",)}) == 4
    # Each attempt counts its own calls.
    server.script(tools(reasoning(2)), text("갑이다."), text("네."))
    chat.regenerate()
    kinds = enumerate(("answer", "reasoning", "answer"), start=1)
    assert calls_of(chat, "attempt, ordinal, kind")[3:] == [(2, ordinal, kind) for ordinal, kind in kinds]


def test_what_a_tool_sends_counts_in_no_figure_of_the_chat(chat: Chat, server: FakeOpenAI) -> None:
    small = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    server.script(tools(reasoning(), usage=None), text("갑이다.", usage=small), text("갑입니다.", usage=None))
    chat.say(question(1))
    last = [body for body in server.bodies("chat") if not is_reasoning(body)][-1]
    (point,) = chat.service.folds.chart(chat.session_id)
    assert point.sent_tokens == point.full_tokens == tokens_of(last)
    # Had the tool's usage counted, the estimate would be corrected by it.
    assert chat.service.folds.gauge(chat.session_id).sent_tokens == pytest.approx(tokens_of(last), rel=0.05)
    assert chat.service.folds.statistics(chat.session_id).unsent_tokens == 0


def test_calls_side_by_side_have_a_number_each_also_if_they_fail(chat: Chat, server: FakeOpenAI) -> None:
    calls = tools(*(reasoning(number) for number in range(1, 6)))
    server.script(calls, failure(401), *[text("갑이다.")] * 4, text("갑입니다."))
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    first, *thoughts, last = calls_of(chat)
    assert (first, last) == ((1, "answer", 100, 20, ""), (7, "answer", 100, 20, ""))
    assert [row[:2] for row in thoughts] == [(number, "reasoning") for number in range(2, 7)]
    assert sorted(str(row[4]) for row in thoughts) == ["", "", "", "", "authentication"]


def test_tools_call_that_is_ended_is_written(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(tool_deadline_seconds=3)
    server.script(tools(reasoning()), hang("음"), text("오래 걸려 그만두었습니다."))
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert calls_of(chat)[1] == (2, "reasoning", None, None, "deadline")
    stopped = Chat(open_chat().service)
    server.script(tools(reasoning()), hang("음"))
    stopped.start(question(1))
    server.wait_until(lambda fake: len(fake.bodies("chat")) == 5)
    stopped.service.turns.stop(stopped.session_id)
    assert isinstance(stopped.events()[-1], TurnStopped)
    assert calls_of(stopped)[1:] == [(2, "reasoning", None, None, "stopped")]


def test_second_try_after_a_context_length_error_is_a_call_of_its_own(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    server.script(failure(400, "too long", code="context_length_exceeded"))
    assert isinstance(chat.say(question(3))[-1], TurnFinished)
    assert calls_of(chat, "turn, ordinal, error_code")[2:] == [(3, 1, "context_length"), (3, 2, "")]
    *_, last = chat.service.folds.chart(chat.session_id)
    assert last.sent_tokens == tokens_of(server.bodies("chat")[-1])
