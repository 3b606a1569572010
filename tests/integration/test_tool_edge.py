from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from graph.value.event import TurnFinished
from prompt.tool import words
from tests.fake.body import content_of
from tests.fake.chat import question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI


def results(body: Body) -> list[str]:
    return [content_of(message) for message in body["messages"] if message["role"] == "tool"]


def raising(number: int, error: BaseException) -> BaseTool:
    def break_off() -> str:
        raise error

    return StructuredTool.from_function(break_off, name=f"break_off_{number}", description="Ends in its own way.")


def test_tools_that_exit_or_are_cancelled_become_results_and_the_session_goes_on(
    open_chat: OpenChat, server: FakeOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    errors = (
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        concurrent.futures.CancelledError(),
        GeneratorExit(),
    )
    broken = [raising(number, error) for number, error in enumerate(errors)]
    server.script(tools(*(ScriptedCall(tool.name, "{}", tool.name) for tool in broken)), text("안 되네요."))
    with open_chat(tools=broken) as chat, caplog.at_level(logging.WARNING):
        assert isinstance(chat.say(question(1))[-1], TurnFinished)
        assert [step.status for step in chat.last_turn.steps] == ["error"] * len(errors)
        assert isinstance(chat.say(question(2))[-1], TurnFinished)
        chat.service.sessions.delete(chat.session_id)
    for tool, error, result in zip(broken, errors, results(server.bodies("chat")[1]), strict=True):
        assert type(error).__name__ in result
        assert f"tool {tool.name} failed: {type(error).__name__}" in caplog.text


def test_many_calls_share_few_threads_and_answer_in_their_order(open_chat: OpenChat, server: FakeOpenAI) -> None:
    go = threading.Event()

    def look_up(number: int) -> str:
        go.wait(timeout=20)
        return f"결과 {number}"

    tool = StructuredTool.from_function(look_up, name="look_up", description="Looks it up.")
    calls = [ScriptedCall("look_up", f'{{"number": {number}}}', f"call-{number}") for number in range(200)]
    server.script(tools(*calls, fragment_chars=100), text("다 됐습니다."))
    with open_chat(tools=[tool]) as chat:
        before = set(threading.enumerate())
        chat.start(question(1))
        chat.wait_until_live(lambda live: len(live.steps) == 200)
        threads = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("tool")]
        go.set()
        assert isinstance(chat.events()[-1], TurnFinished)
    assert len(threads) == 16
    assert results(server.bodies("chat")[-1]) == [f"결과 {number}" for number in range(200)]


def test_calls_that_never_got_a_thread_are_told_that_it_took_too_long(open_chat: OpenChat, server: FakeOpenAI) -> None:
    release, ran = threading.Event(), list[int]()

    def wait(number: int) -> str:
        ran.append(number)
        release.wait(timeout=30)
        return "fertig"

    tool = StructuredTool.from_function(wait, name="wait", description="Waits.")
    calls = [ScriptedCall("wait", f'{{"number": {number}}}', f"call-{number}") for number in range(20)]
    server.script(tools(*calls, fragment_chars=100), text("오래 걸리네요."))
    chat = open_chat(tool_deadline_seconds=2, tools=[tool])
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert [step.status for step in chat.last_turn.steps] == ["error"] * 20
    release.set()
    assert all(result == words.TOO_LONG["ko"] for result in results(server.bodies("chat")[-1]))
    assert len(ran) == 16
