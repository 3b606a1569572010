from __future__ import annotations

import threading
from typing import TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph

from graph.error import TurnStoppedSignal
from graph.model.chunk import Usage
from graph.model.factory import open_models
from graph.model_error import CutStreamError
from tests.fake.model_caller import Caller, settings_of
from tests.fake.openai_reply import (
    ScriptedCall,
    chunk,
    hang,
    raw,
    text,
    tools,
)
from tests.fake.openai_server import FakeOpenAI


@tool
def lookup(word: str, count: int = 1) -> str:
    """Looks a word up."""
    return word * count


ARGUMENTS = '{"word": "한글 \\"q\\"", "count": 12}'


def test_tool_calls_come_with_their_arguments(call: Caller) -> None:
    call.server.script(tools(ScriptedCall("lookup", ARGUMENTS, "c1"), ScriptedCall("lookup", '{"word": "b"}', "c2")))
    answer = call(model=call.models.chat("m").bind_tools([lookup]))
    assert [(c["name"], c["args"], c["id"]) for c in answer.message.tool_calls] == [
        ("lookup", {"word": '한글 "q"', "count": 12}, "c1"),
        ("lookup", {"word": "b"}, "c2"),
    ]
    assert call.server.bodies()[0]["tools"][0]["function"]["name"] == "lookup"


@pytest.mark.parametrize("end", range(1, len(ARGUMENTS)))
def test_arguments_cut_anywhere_never_become_a_call(call: Caller, end: int) -> None:
    cut = ScriptedCall("lookup", ARGUMENTS[:end], "c1")
    call.server.script(tools(cut), tools(cut, finish_reason=None))
    answer = call()
    assert answer.message.tool_calls == []
    assert [(c["name"], c["args"], c["id"]) for c in answer.message.invalid_tool_calls] == [
        ("lookup", ARGUMENTS[:end], "c1")
    ]
    with pytest.raises(CutStreamError):
        call()


@pytest.mark.parametrize(
    "arguments", ["[1]", '"text"', "NaN", '{"a": NaN}', '{"a": 1}}', "{'a': 1}", "[" * 5000, "null"]
)
def test_arguments_that_are_no_json_object_are_kept_but_never_run(call: Caller, arguments: str) -> None:
    call.server.script(tools(ScriptedCall("lookup", arguments, "c1"), fragment_chars=1000))
    answer = call()
    assert answer.message.tool_calls == []
    assert answer.message.invalid_tool_calls[0]["args"] == arguments


def test_no_arguments_are_an_empty_object(call: Caller) -> None:
    call.server.script(tools(ScriptedCall("lookup", "", "c1")))
    assert call().message.tool_calls[0]["args"] == {}


def test_missing_and_doubled_ids_become_unique(call: Caller) -> None:
    call.server.script(tools(*[ScriptedCall("f", "{}", name) for name in ("same", "same", None, None, "")]))
    ids = [c["id"] for c in call().message.tool_calls]
    assert ids[0] == "same"
    assert all(ids)
    assert len(set(ids)) == 5


def test_calls_that_all_have_index_zero_stay_apart(call: Caller) -> None:
    deltas = [
        {"tool_calls": [{"index": 0, "id": "", "function": {"name": "f", "arguments": f'{{"n": {number}}}'}}]}
        for number in range(3)
    ]
    call.server.script(raw(*[chunk(delta) for delta in deltas], chunk({}, finish_reason="tool_calls")))
    assert [c["args"] for c in call().message.tool_calls] == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_name_repeated_in_every_fragment_is_one_call(call: Caller) -> None:
    deltas = [
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": part}}]}
        for part in ('{"a"', ": 1", "}", "")
    ]
    call.server.script(raw(*[chunk(delta) for delta in deltas], chunk({}, finish_reason="tool_calls")))
    assert [(c["name"], c["args"]) for c in call().message.tool_calls] == [("f", {"a": 1})]


def test_lone_surrogates_are_replaced(call: Caller) -> None:
    call.server.script(
        raw('{"choices":[{"index":0,"delta":{"content":"a\\ud800b"}}]}', chunk({}, finish_reason="stop"))
    )
    assert call().message.content == "a\ufffdb"


def test_a_running_total_of_usage_counts_once(call: Caller) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    call.server.script(
        raw(
            chunk({"content": "a"}, usage={**usage, "completion_tokens": 1}),
            chunk({"content": "b"}, usage=usage),
            chunk({}, finish_reason="stop", usage=usage),
        )
    )
    assert call().usage == Usage(10, 2, 0)


def test_closing_the_models_ends_a_call_that_hangs(server: FakeOpenAI) -> None:
    server.script(hang(is_silent=True))
    ended: list[BaseException] = []

    def run(caller: Caller) -> None:
        try:
            caller(deadline_seconds=60)
        except TurnStoppedSignal as error:
            ended.append(error)

    with open_models(settings_of(server)) as models:
        thread = threading.Thread(target=run, args=(Caller(server, models),))
        thread.start()
        server.wait_until(lambda s: len(s.exchanges) == 1)
    thread.join(5)
    assert len(ended) == 1
    server.wait_until(lambda s: s.open_count == 0)


def test_calls_from_several_threads_do_not_mix(call: Caller) -> None:
    call.server.respond_with(lambda body: text(str(body["messages"][-1]["content"])))
    answers: dict[int, object] = {}

    def run(number: int) -> None:
        answer = call.models.caller.call(
            call.models.chat("m"), [HumanMessage(f"n {number}")], stop=call.stop, deadline_seconds=30, attempts=1
        )
        answers[number] = answer.message.content

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"n {number}" for number in range(8)}


class State(TypedDict):
    answer: str


def test_tokens_of_a_call_do_not_leak_into_the_graph_that_makes_it(call: Caller) -> None:
    call.server.script(text("secret thoughts"))

    def think(state: State) -> State:
        return {"answer": state["answer"] + str(call().message.content)}

    builder = StateGraph(State)
    builder.add_node("think", think)
    builder.add_edge(START, "think")
    builder.add_edge("think", END)
    seen = list(builder.compile().stream({"answer": ""}, stream_mode=["messages", "updates"]))
    assert seen == [("updates", {"think": {"answer": "secret thoughts"}})]


def test_a_conversation_with_tools_goes_over_the_wire(call: Caller) -> None:
    call.server.script(text("done"))
    past = AIMessage("", tool_calls=[{"name": "lookup", "args": {"word": "a"}, "id": "c1"}])
    result = lookup.invoke({"type": "tool_call", "name": "lookup", "args": {"word": "a"}, "id": "c1"})
    call.models.caller.call(
        call.models.chat("m"), [*call.input, past, result], stop=call.stop, deadline_seconds=10, attempts=1
    )
    assert [m["role"] for m in call.server.bodies()[0]["messages"]] == ["system", "user", "assistant", "tool"]
