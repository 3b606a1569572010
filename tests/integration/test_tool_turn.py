from __future__ import annotations

import json
import threading

from langchain_core.tools import BaseTool, StructuredTool

from graph.event import ToolFinished, TurnFailed, TurnFinished
from graph.service import ChatService
from graph.view import TurnOptions
from prompt.tool.description import CLOCK_ZONES
from prompt.tool.result import UNREADABLE, no_zone
from tests.fake.body import content_of, faults, roles, shape, tokens_of, tool_names
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, hang, text, tools
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI

SEOUL = ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")


def results(body: Body) -> list[str]:
    return [content_of(message) for message in body["messages"] if message["role"] == "tool"]


def test_the_time_tool_runs_and_the_model_reads_its_result(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL), text("서울은 지금 낮입니다."))
    events = chat.say("서울은 지금 몇 시야?")
    assert names(events) == ["TurnStarted", "ToolStarted", "ToolFinished", "TokenDelta", "TurnFinished"]
    first, second = server.bodies("chat")
    assert tool_names(first) == ["get_current_time", "web_search", "reasoning", "recall"]
    assert second["tools"] == first["tools"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert roles(second) == ["system", "user", "assistant", "tool"]
    assert "Asia/Seoul (UTC+09:00)" in results(second)[0]
    (step,) = chat.last_turn.steps
    assert (step.name, json.loads(step.arguments), step.status) == (
        "get_current_time",
        {"timezone": "Asia/Seoul"},
        "done",
    )
    assert step.result == results(second)[0]
    assert chat.last_turn.answer_text == "서울은 지금 낮입니다."


def test_the_users_own_zone_holds_where_none_is_named(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("get_current_time", "", "call-1")), text("네."))
    chat.say("지금 몇 시야?", options=TurnOptions(time_zone="America/New_York"))
    assert "America/New_York" in results(server.bodies("chat")[-1])[0]


def test_an_unknown_tool_is_an_error_that_the_model_can_mend(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("get_weather", "{}", "call-1")), text("날씨는 모릅니다."))
    assert isinstance(chat.say("날씨는?")[-1], TurnFinished)
    (result,) = results(server.bodies("chat")[-1])
    assert "get_weather" in result
    assert "get_current_time" in result
    assert chat.last_turn.steps[0].status == "error"


def test_a_call_that_found_no_zone_is_shown_as_failed_and_the_model_reads_why(chat: Chat, server: FakeOpenAI) -> None:
    calls = [ScriptedCall("get_current_time", f'{{"timezone": "{zone}"}}', zone) for zone in ("Mars/Base", "UTC")]
    server.script(tools(*calls), text("화성 시각은 모릅니다."))
    finished = [event.is_error for event in chat.say("화성은 몇 시야?") if isinstance(event, ToolFinished)]
    assert finished == [True, False]
    assert [step.status for step in chat.last_turn.steps] == ["error", "done"]
    told = results(server.bodies("chat")[-1])[0]
    assert told == no_zone("Mars/Base", CLOCK_ZONES, "ko") == chat.last_turn.steps[0].result


def test_half_arguments_never_run(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("get_current_time", '{"timezone": "Asia/Se', "call-1")), text("다시 하겠습니다."))
    assert isinstance(chat.say("서울은 지금 몇 시야?")[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert results(body)[0] == UNREADABLE["ko"]
    assert faults(body["messages"]) == []
    json.loads(body["messages"][2]["tool_calls"][0]["function"]["arguments"])


def test_a_stream_cut_inside_a_call_runs_nothing(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL, finish_reason=None, usage=None))
    failed = chat.say("서울은 지금 몇 시야?")[-1]
    assert isinstance(failed, TurnFailed)
    assert failed.code == "cut_stream"
    assert chat.last_turn.steps == ()
    chat.ask(2, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


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
    ids = chat.rows("SELECT message_id FROM message WHERE role = 'tool'")
    assert len(set(ids)) == 2


def long_tool() -> BaseTool:
    return StructuredTool.from_function(lambda: "가" * 25_000, name="long", description="Says much.")


def broken_tool() -> BaseTool:
    return StructuredTool.from_function(lambda: str(int("no luck")), name="broken", description="Fails.")


def test_a_long_result_is_cut_and_says_so(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("long", "{}", "call-1")), text("길군요."))
    open_chat(tools=[long_tool()]).say(question(1))
    (result,) = results(server.bodies("chat")[-1])
    assert result.startswith("가" * 10_000)
    assert "가" * 10_001 not in result
    assert "10000 of 25000" in result


def test_a_tool_that_breaks_becomes_a_result(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("broken", "{}", "call-1")), text("안 되네요."))
    chat = open_chat(tools=[broken_tool()])
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert chat.last_turn.steps[0].status == "error"
    assert "no luck" in results(server.bodies("chat")[-1])[0]


def calls_for_ever(body: Body) -> Reply:
    return answer_body(body) if body.get("tool_choice") == "none" else tools(SEOUL)


def test_after_eight_rounds_the_model_answers_with_what_it_has(chat: Chat, server: FakeOpenAI) -> None:
    server.respond_with(calls_for_ever)
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    bodies = server.bodies("chat")
    assert [body.get("tool_choice") for body in bodies] == [None] * 8 + ["none"]
    assert "도구를 더 쓸 수 없습니다" in results(bodies[-1])[-1]
    assert not any("도구를 더 쓸 수 없습니다" in result for result in results(bodies[-1])[:-1])
    assert [faults(body["messages"]) for body in bodies] == [[]] * 9
    assert len(chat.last_turn.steps) == 8


def test_a_model_that_only_ever_calls_tools_fails_the_turn(chat: Chat, server: FakeOpenAI) -> None:
    server.respond_with(lambda body: tools(SEOUL) if kind_of(body) == "chat" else answer_body(body))
    failed = chat.say(question(1))[-1]
    assert isinstance(failed, TurnFailed)
    assert failed.code == "tool_rounds"


def test_a_provider_that_uses_one_call_id_again_leaves_no_orphan(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL), tools(SEOUL), failure(500))
    chat.say(question(1))
    chat.ask(2, 2)
    body = server.bodies("chat")[-1]
    assert faults(body["messages"]) == []
    ids = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert len(set(ids)) == 2


def test_an_answer_cut_after_a_tool_keeps_the_tools_result(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL), hang("서울은 "))
    chat.start("서울은 지금 몇 시야?")
    chat.stop_when(lambda live: live.text == "서울은 ")
    turn = chat.last_turn
    assert (turn.status, turn.answer_text, turn.steps[0].status) == ("stopped", "서울은", "done")
    chat.ask(2, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_a_block_with_tools_is_folded_with_their_results(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL), text("서울은 지금 낮입니다. 그 밖에 더 알려 드릴 것은 없습니다."))
    chat.say(question(1))
    chat.ask(2, 4)
    (record,) = chat.service.folds.records(chat.session_id)
    said = sum(len(turn.user_text + turn.answer_text) for turn in chat.turns[:3])
    assert record.original_chars == said + len(chat.turns[0].steps[0].result)
    assert "Asia/Seoul (UTC+09:00)" in str(server.bodies("summary")[0])
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]


def test_the_chart_counts_tool_calls_and_results(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL), text("서울은 지금 낮입니다."))
    chat.say(question(1))
    (point,) = chat.service.folds.chart(chat.session_id)
    assert point.sent_tokens == point.full_tokens == tokens_of(server.bodies("chat")[-1])


def test_reasoning_is_a_call_of_its_own_whose_words_stay_out_of_the_answer(
    service: ChatService, server: FakeOpenAI
) -> None:
    chat = Chat(service)
    arguments = json.dumps({"material": "갑은 을보다 크다.", "question": "누가 더 큰가?"})
    server.script(
        tools(ScriptedCall("reasoning", arguments, "call-1")), text("몰래 한 생각: 갑이 크다."), text("갑이 더 큽니다.")
    )
    events = chat.say("갑과 을 가운데 누가 더 큰지 생각해 봐.")
    assert names(events) == ["TurnStarted", "ToolStarted", "ToolFinished", "TokenDelta", "TurnFinished"]
    assert chat.last_turn.answer_text == "갑이 더 큽니다."
    assert chat.last_turn.steps[0].result == "몰래 한 생각: 갑이 크다."
