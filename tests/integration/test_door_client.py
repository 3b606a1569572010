from __future__ import annotations

import asyncio
import threading
from typing import Final

import openai
import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from graph.client import ClientUsage
from graph.event import (
    ActionRequired,
    AnswerRestarted,
    ClientCall,
    Folded,
    FoldWaiting,
    TokenDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)
from tests.fake.door_client import ASKED, ask, text_of
from tests.fake.scripted_completions import ScriptedCompletions, Step, ended, said
from tests.fake.served_door import OWNER, TOKEN, ServedDoor

START: Final = TurnStarted("session-1", 1, 1)
CALLS: Final = (ClientCall("c1", "look", '{"a":1}'), ClientCall("c2", "find", "{}"))


def test_the_models_are_listed_and_each_is_found(client: openai.OpenAI) -> None:
    ids = [model.id for model in client.models.list()]
    assert ids == ["turnfold", "turnfold:plain", "turnfold/small", "turnfold/small:plain"]
    assert [client.models.retrieve(model_id).id for model_id in ids] == ids
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("turnfold/large")
    assert missing.value.code == "model_not_found"


def test_a_model_that_is_not_there_is_refused_and_nothing_is_asked(
    client: openai.OpenAI, completions: ScriptedCompletions
) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="gpt-4o", messages=ASKED)
    assert (missing.value.code, completions.requests) == ("model_not_found", [])


def test_any_model_may_be_there_while_the_list_is_not_known() -> None:
    completions = ScriptedCompletions()
    completions.script(said("Hi"))
    with ServedDoor(completions) as served, openai.OpenAI(base_url=served.url, api_key=TOKEN) as client:
        answer = client.chat.completions.create(model="whatever", messages=ASKED)
    assert (answer.model, completions.requests[0].model) == ("whatever", "whatever")


def test_a_whole_answer_names_session_and_turn(
    client: openai.OpenAI, completions: ScriptedCompletions, served_door: ServedDoor
) -> None:
    completions.script(said("Hel", "lo"), ended("length", ClientUsage(10, 2, 4), session="session-1"), turn=7)
    raw = client.chat.completions.with_raw_response.create(model="turnfold/small", messages=ASKED)
    answer = raw.parse()
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello", "length")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    assert (answer.usage.total_tokens, answer.usage.prompt_tokens_details.cached_tokens) == (12, 4)
    assert (answer.id, answer.created, answer.model) == ("chatcmpl-1", 1_800_000_000, "turnfold/small")
    assert {name: raw.headers[f"x-turnfold-{name}"] for name in ("session", "turn", "matched")} == {
        "session": "session-1",
        "turn": "7",
        "matched": "history",
    }
    assert raw.headers["x-request-id"]
    assert (set(served_door.owners), completions.requests[0].options.name) == ({OWNER}, "editor")


def test_an_aside_names_no_session(client: openai.OpenAI, completions: ScriptedCompletions) -> None:
    completions.script(said("Title"), matched="aside", session_id="", turn=0)
    headers = client.chat.completions.with_raw_response.create(model="turnfold:plain", messages=ASKED).headers
    assert headers["x-turnfold-matched"] == "aside"
    assert not {"x-turnfold-session", "x-turnfold-turn"} & set(headers)


def test_a_stream_says_what_was_said_as_it_comes(client: openai.OpenAI, completions: ScriptedCompletions) -> None:
    gate = threading.Event()
    completions.script([START, TokenDelta("안"), gate, TokenDelta("녕"), TurnFinished(1, "m", "안녕")])
    stream = ask(client, stream=True)
    said_so_far = next(chunk.choices[0].delta.content for chunk in stream if chunk.choices[0].delta.content)
    gate.set()
    rest = list(stream)
    assert (said_so_far, text_of(rest)) == ("안", "녕")
    assert rest[-1].choices[0].finish_reason == "stop"
    assert {(chunk.id, chunk.created, chunk.model) for chunk in rest} == {
        ("chatcmpl-1", 1_800_000_000, "turnfold/small")
    }


@pytest.mark.parametrize(("asked", "tokens"), [(True, 12), (False, None)])
def test_usage_comes_behind_a_stream_that_asked_for_it(
    client: openai.OpenAI, completions: ScriptedCompletions, *, asked: bool, tokens: int | None
) -> None:
    completions.script(said("Hi"), ended("stop", ClientUsage(10, 2, None), folds=3))
    chunks = list(ask(client, stream=True, stream_options={"include_usage": asked}))
    usage = [chunk.usage.total_tokens for chunk in chunks if chunk.usage]
    assert usage == ([tokens] if tokens else [])
    assert [chunk.turnfold for chunk in chunks if hasattr(chunk, "turnfold")] == [{"folds": 3}]


def test_a_long_wait_before_the_first_token_breaks_no_client(
    client: openai.OpenAI, served_door: ServedDoor, completions: ScriptedCompletions
) -> None:
    model = ChatOpenAI(base_url=served_door.url, api_key=SecretStr(TOKEN), model="small", max_retries=0)
    gates = [threading.Event() for _ in range(3)]
    for gate in gates:
        steps: list[Step] = [START, FoldWaiting((1, 2, 3)), gate, Folded("r", (1, 2, 3), 9, 3), TokenDelta("Hi")]
        completions.script([*steps, TurnFinished(1, "m", "Hi")])
    stream = iter(ask(client, stream=True))
    assert [next(stream).choices[0].delta.content for _ in range(4)] == [""] * 4
    gates[0].set()
    assert text_of(stream) == "Hi"
    for gate in gates[1:]:
        threading.Timer(0.3, gate.set).start()
    with client.chat.completions.stream(model="turnfold", messages=ASKED) as helper:
        assert helper.get_final_completion().choices[0].message.content == "Hi"
    assert "".join(str(chunk.content) for chunk in model.stream("안녕")) == "Hi"


def test_calls_are_put_together_by_clients(
    client: openai.OpenAI, served_door: ServedDoor, completions: ScriptedCompletions
) -> None:
    for _ in range(4):
        completions.script(
            [START, TokenDelta("Let me look."), ActionRequired(1, "m", "Let me look.", CALLS)], ended("tool_calls")
        )
    whole = ask(client).choices[0]
    assert (whole.finish_reason, whole.message.content) == ("tool_calls", "Let me look.")
    assert [(call.id, call.function.name, call.function.arguments) for call in whole.message.tool_calls] == [
        (call.id, call.name, call.arguments) for call in CALLS
    ]
    with client.chat.completions.stream(model="turnfold", messages=ASKED) as stream:
        final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls"
    assert [(call.id, call.function.name) for call in final.message.tool_calls or []] == [
        ("c1", "look"),
        ("c2", "find"),
    ]
    model = ChatOpenAI(base_url=served_door.url, api_key=SecretStr(TOKEN), model="small", max_retries=0)
    pieces: list[AIMessageChunk] = [piece for piece in model.stream("안녕") if isinstance(piece, AIMessageChunk)]
    joined = pieces[0]
    for piece in pieces[1:]:
        joined += piece
    for message in (joined, model.invoke([HumanMessage("안녕")])):
        told = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
        assert told == [("c1", "look", {"a": 1}), ("c2", "find", {})]


def test_an_answer_begun_anew_replaces_what_only_the_server_has_seen(
    client: openai.OpenAI, completions: ScriptedCompletions
) -> None:
    tool = (ToolStarted("t", "recall", "{}"), ToolFinished("t", "recall", "x", is_error=False, seconds=0.1))
    steps: list[Step] = [
        START,
        TokenDelta("I look. "),
        *tool,
        TokenDelta("Wro"),
        AnswerRestarted(),
        TokenDelta("Right"),
    ]
    completions.script([*steps, TurnFinished(1, "m", "Right")])
    assert ask(client).choices[0].message.content == "I look. Right"
    completions.script([START, AnswerRestarted(), TokenDelta("Right"), TurnFinished(1, "m", "Right")])
    assert text_of(ask(client, stream=True)) == "Right"


def test_a_turn_stopped_elsewhere_ends_with_what_was_said(
    client: openai.OpenAI, completions: ScriptedCompletions
) -> None:
    completions.script([START, TokenDelta("Hel"), TurnStopped(1, "Hel")])
    chunks = list(ask(client, stream=True))
    assert (text_of(chunks), chunks[-1].choices[0].finish_reason) == ("Hel", "stop")


def test_many_streams_of_the_async_client_run_side_by_side(
    served_door: ServedDoor, completions: ScriptedCompletions
) -> None:
    gate, count = threading.Event(), 50
    for _ in range(count):
        completions.script([START, TokenDelta("Hel"), gate, TokenDelta("lo"), TurnFinished(1, "m", "Hello")])

    async def one(client: openai.AsyncOpenAI, all_have_begun: asyncio.Barrier) -> str:
        stream = await client.chat.completions.create(model="turnfold", messages=ASKED, stream=True)
        texts = []
        async for chunk in stream:
            if text := chunk.choices[0].delta.content:
                texts.append(text)
            if texts == ["Hel"] and not gate.is_set():
                await all_have_begun.wait()
                gate.set()
        return "".join(texts)

    async def main() -> list[str]:
        async with openai.AsyncOpenAI(base_url=served_door.url, api_key=TOKEN) as client:
            barrier = asyncio.Barrier(count)
            return await asyncio.gather(*(one(client, barrier) for _ in range(count)))

    assert asyncio.run(main()) == ["Hello"] * count
