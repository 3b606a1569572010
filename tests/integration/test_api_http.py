"""The routes below /v1 over scripted completions: what real clients and bare connections get on the wire."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import httpx2
import openai
import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from api.body import BODY_BYTES
from api.connection import notified_of_end
from graph.value.client import ClientUsage
from graph.value.error import BusyError, NotFoundError, TurnRateError, UnreachableError
from graph.value.event import (
    ActionRequired,
    AnswerRestarted,
    ClientCall,
    Event,
    Folded,
    FoldWaiting,
    LeftOut,
    TokenDelta,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)
from tests.fake.scripted_completions import ScriptedCompletions, Step, ended, text_steps
from tests.fake.served_api import OWNER, TOKEN, ServedApi

START: Final = TurnStarted("session-1", 1, 1)
CALLS: Final = (ClientCall("c1", "look", '{"a":1}'), ClientCall("c2", "find", "{}"))
ASKED: Final[list[Any]] = [{"role": "user", "content": "안녕"}]
BODY: Final = {"model": "turnfold", "messages": ASKED}
STREAMED: Final = {**BODY, "stream": True}
HEADERS: Final = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def all_completions() -> ScriptedCompletions:
    return ScriptedCompletions()


@pytest.fixture(scope="module")
def served(all_completions: ScriptedCompletions) -> Iterator[ServedApi]:
    with ServedApi(all_completions, patience_seconds=0.1) as http_api:
        yield http_api


@pytest.fixture
def completions(all_completions: ScriptedCompletions) -> ScriptedCompletions:
    all_completions.forget("small")
    return all_completions


@pytest.fixture(scope="module")
def client(served: ServedApi) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.url, api_key=TOKEN, max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def langchain(served: ServedApi) -> ChatOpenAI:
    return ChatOpenAI(base_url=served.url, api_key=SecretStr(TOKEN), model="small", max_retries=0)


@pytest.fixture(scope="module")
def http(served: ServedApi) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=served.url, headers=HEADERS) as client:
        yield client


def ask(client: openai.OpenAI, **fields: Any) -> Any:  # noqa: ANN401  # the answer's type depends on the fields
    return client.chat.completions.create(model="turnfold/small", messages=ASKED, **fields)


def text_of(stream: Iterable[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_the_models_are_listed_and_each_is_found(client: openai.OpenAI, completions: ScriptedCompletions) -> None:
    ids = [model.id for model in client.models.list()]
    assert ids == ["turnfold", "turnfold:plain", "turnfold/small", "turnfold/small:plain"]
    assert [client.models.retrieve(model_id).id for model_id in ids] == ids
    assert [model.model_extra for model in client.models.list()] == [{"context_length": 8_000}] * 4
    for call in (client.models.retrieve, lambda model: client.chat.completions.create(model=model, messages=ASKED)):
        with pytest.raises(openai.NotFoundError) as missing:
            call("gpt-4o")
        assert (missing.value.code, completions.requests) == ("model_not_found", [])
    # Any model may be there while the list isn't known.
    completions.forget()
    completions.script(text_steps("Hi"))
    answer = client.chat.completions.create(model="whatever", messages=ASKED)
    assert (answer.model, completions.requests[0].model) == ("whatever", "whatever")


def test_a_whole_answer_names_session_and_turn(
    client: openai.OpenAI, completions: ScriptedCompletions, served: ServedApi
) -> None:
    completions.script(text_steps("Hel", "lo"), ended("length", ClientUsage(10, 2, 4), session="session-1"), turn=7)
    raw = client.chat.completions.with_raw_response.create(model="turnfold/small", messages=ASKED)
    answer = raw.parse()
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello", "length")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    assert (answer.usage.total_tokens, answer.usage.prompt_tokens_details.cached_tokens) == (12, 4)
    assert (answer.id, answer.created, answer.model) == ("chatcmpl-1", 1_800_000_000, "turnfold/small")
    named = [raw.headers[f"x-turnfold-{name}"] for name in ("session", "turn", "matched")]
    assert named == ["session-1", "7", "history"]
    assert raw.headers["x-request-id"]
    assert (set(served.owners), completions.requests[0].options.name) == ({OWNER}, "editor")
    completions.script(text_steps("Title"), matched="aside", session_id="", turn=0)
    headers = client.chat.completions.with_raw_response.create(model="turnfold:plain", messages=ASKED).headers
    assert headers["x-turnfold-matched"] == "aside"
    assert not {"x-turnfold-session", "x-turnfold-turn"} & set(headers)


def test_a_stream_says_what_was_said_as_it_comes(client: openai.OpenAI, completions: ScriptedCompletions) -> None:
    gate = threading.Event()
    completions.script([START, TokenDelta("안"), gate, TokenDelta("녕"), TurnFinished(1, "m", "안녕")])
    stream = ask(client, stream=True)
    text_so_far = next(chunk.choices[0].delta.content for chunk in stream if chunk.choices[0].delta.content)
    gate.set()
    rest = list(stream)
    assert (text_so_far, text_of(rest)) == ("안", "녕")
    assert rest[-1].choices[0].finish_reason == "stop"
    head = ("chatcmpl-1", 1_800_000_000, "turnfold/small")
    assert {(chunk.id, chunk.created, chunk.model) for chunk in rest} == {head}
    # One that was stopped elsewhere ends with what was said.
    completions.script([START, TokenDelta("Hel"), TurnStopped(1, "Hel")])
    chunks = list(ask(client, stream=True))
    assert (text_of(chunks), chunks[-1].choices[0].finish_reason) == ("Hel", "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_left_out_of_the_input_is_named_in_a_header(
    client: openai.OpenAI, completions: ScriptedCompletions, *, stream: bool
) -> None:
    for parts, named in ((["server_tools", "turns"], "server_tools, turns"), ([], None)):
        told = [LeftOut(tuple(parts))] if parts else []
        completions.script([START, *told, TokenDelta("Hi"), TurnFinished(1, "m", "Hi")], ended(left_out=parts))
        raw = client.chat.completions.with_raw_response.create(model="turnfold", messages=ASKED, stream=stream)
        assert raw.headers.get("x-turnfold-left-out") == named


def test_usage_comes_behind_a_stream_that_asked_for_it(client: openai.OpenAI, completions: ScriptedCompletions) -> None:
    for is_asked, tokens in ((True, [12]), (False, [])):
        completions.script(text_steps("Hi"), ended("stop", ClientUsage(10, 2, None), folds=3))
        chunks = list(ask(client, stream=True, stream_options={"include_usage": is_asked}))
        assert [chunk.usage.total_tokens for chunk in chunks if chunk.usage] == tokens
        assert [chunk.turnfold for chunk in chunks if hasattr(chunk, "turnfold")] == [{"folds": 3}]


def test_a_long_wait_before_the_first_token_breaks_no_client(
    client: openai.OpenAI, langchain: ChatOpenAI, completions: ScriptedCompletions
) -> None:
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
    assert "".join(str(chunk.content) for chunk in langchain.stream("안녕")) == "Hi"


def test_calls_are_put_together_by_clients(
    client: openai.OpenAI, langchain: ChatOpenAI, completions: ScriptedCompletions
) -> None:
    for _ in range(4):
        steps: list[Step] = [START, TokenDelta("Let me look."), ActionRequired(1, "m", "Let me look.", CALLS)]
        completions.script(steps, ended("tool_calls"))
    whole = ask(client).choices[0]
    assert (whole.finish_reason, whole.message.content) == ("tool_calls", "Let me look.")
    assert [(call.id, call.function.name, call.function.arguments) for call in whole.message.tool_calls] == [
        (call.id, call.name, call.arguments) for call in CALLS
    ]
    with client.chat.completions.stream(model="turnfold", messages=ASKED) as stream:
        final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls"
    told = [(call.id, call.function.name) for call in final.message.tool_calls or []]
    assert told == [("c1", "look"), ("c2", "find")]
    pieces: list[AIMessageChunk] = [piece for piece in langchain.stream("안녕") if isinstance(piece, AIMessageChunk)]
    joined = pieces[0]
    for piece in pieces[1:]:
        joined += piece
    for message in (joined, langchain.invoke([HumanMessage("안녕")])):
        read = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
        assert read == [("c1", "look", {"a": 1}), ("c2", "find", {})]


def test_an_answer_begun_anew_replaces_what_only_the_server_has_seen(
    client: openai.OpenAI, completions: ScriptedCompletions
) -> None:
    tool = (ToolStarted("t", "recall", "{}"), ToolFinished("t", "recall", "x", is_error=False, seconds=0.1))
    again: list[Event] = [AnswerRestarted(), TokenDelta("Right"), TurnFinished(1, "m", "Right")]
    completions.script([START, TokenDelta("I look. "), *tool, TokenDelta("Wro"), *again])
    assert ask(client).choices[0].message.content == "I look. Right"
    completions.script([START, *again])
    assert text_of(ask(client, stream=True)) == "Right"


def test_many_streams_of_the_async_client_run_side_by_side(served: ServedApi, completions: ScriptedCompletions) -> None:
    gate, count = threading.Event(), 50
    for _ in range(count):
        completions.script([START, TokenDelta("Hel"), gate, TokenDelta("lo"), TurnFinished(1, "m", "Hello")])

    async def one(client: openai.AsyncOpenAI, all_have_started: asyncio.Barrier) -> str:
        stream = await client.chat.completions.create(model="turnfold", messages=ASKED, stream=True)
        texts = []
        async for chunk in stream:
            if text := chunk.choices[0].delta.content:
                texts.append(text)
            if texts == ["Hel"] and not gate.is_set():
                await all_have_started.wait()
                gate.set()
        return "".join(texts)

    async def main() -> list[str]:
        async with openai.AsyncOpenAI(base_url=served.url, api_key=TOKEN) as client:
            barrier = asyncio.Barrier(count)
            return await asyncio.gather(*(one(client, barrier) for _ in range(count)))

    assert asyncio.run(main()) == ["Hello"] * count


def test_a_turn_that_fails_before_it_says_anything_has_a_real_status(
    client: openai.OpenAI, completions: ScriptedCompletions
) -> None:
    for streamed in (True, False):
        completions.script([START, TurnFailed(1, "context_length", "9000 > 8000")])
        with pytest.raises(openai.BadRequestError) as failed:
            ask(client, stream=streamed)
        assert failed.value.code == "context_length_exceeded"
        assert failed.value.response.headers["content-type"] == "application/json"
        assert failed.value.response.headers["x-turnfold-session"] == "session-1"


def test_a_stream_that_fails_is_no_success(
    client: openai.OpenAI, langchain: ChatOpenAI, completions: ScriptedCompletions
) -> None:
    for last in (TurnFailed(1, "cut_stream", ""), AnswerRestarted()):
        for _ in range(2):
            completions.script([START, TokenDelta("Hel"), last, TurnFinished(1, "m", "Other")])
        with pytest.raises(openai.APIError) as failed:
            text_of(ask(client, stream=True))
        assert failed.value.code == "upstream_unavailable"
        with pytest.raises(openai.APIError):
            list(langchain.stream("안녕"))
    # What is told of a response may fail too.
    for _ in range(2):
        completions.script(text_steps("Hi"), UnreachableError())
    with pytest.raises(openai.InternalServerError):
        ask(client)
    with pytest.raises(openai.APIError):
        text_of(ask(client, stream=True))


def test_a_library_sends_a_failed_request_again_and_says_so_but_asks_a_busy_session_once(
    served: ServedApi, completions: ScriptedCompletions
) -> None:
    with openai.OpenAI(base_url=served.url, api_key=TOKEN, max_retries=2) as client:
        completions.script(BusyError())
        with pytest.raises(openai.ConflictError) as busy:
            ask(client, stream=True)
        assert busy.value.code == "session_busy"
        completions.script([START, TurnFailed(1, "unreachable", "")])
        completions.script(text_steps("Hi"))
        assert text_of(ask(client, stream=True)) == "Hi"
    assert [request.is_retry for request in completions.requests] == [False, False, True]


def test_refusals_are_the_librarys_own_errors(
    served: ServedApi, client: openai.OpenAI, completions: ScriptedCompletions
) -> None:
    for error, kind, code in (
        (NotFoundError(), openai.NotFoundError, "session_not_found"),
        (TurnRateError(7), openai.RateLimitError, "rate_limit_exceeded"),
        (ZeroDivisionError("canary"), openai.InternalServerError, "internal_error"),
    ):
        completions.script(error)
        with pytest.raises(kind) as refused:
            ask(client)
        assert refused.value.code == code
        assert "canary" not in refused.value.response.text
    with openai.OpenAI(base_url=served.url, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError) as unknown:
            stranger.models.list()
        assert unknown.value.code == "invalid_api_key"


def test_an_address_may_end_with_a_slash(http: httpx2.Client, completions: ScriptedCompletions) -> None:
    for slash in ("", "/"):
        completions.script(text_steps("Hi"))
        assert http.post(f"/chat/completions{slash}", json=BODY).status_code == 200
        assert http.get(f"/models{slash}").json()["object"] == "list"
        assert http.get(f"/models/turnfold/small{slash}").json()["id"] == "turnfold/small"


@pytest.mark.usefixtures("completions")
def test_every_refusal_has_openais_shape(served: ServedApi, http: httpx2.Client) -> None:
    for method, path, status, code in (
        ("POST", "/responses", 400, "invalid_json"),
        ("POST", "/embeddings", 404, "unknown_url"),
        ("POST", "/completions/", 404, "unknown_url"),
        ("GET", "/", 404, "unknown_url"),
        ("GET", "/chat/completions/x", 404, "unknown_url"),
        ("GET", "/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/models", 405, "method_not_allowed"),
        ("POST", "/models/turnfold", 405, "method_not_allowed"),
        ("GET", "/models/missing", 404, "model_not_found"),
        ("POST", "/chat/completions", 400, "invalid_json"),
    ):
        answer = http.request(method, path)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (status, code), path
        assert set(error) == {"message", "type", "param", "code"}
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-request-id"].startswith("req_")
    assert http.get("/chat/completions").headers["allow"] == "POST"
    for path in ("/models", "/chat/completions", "/responses", "/anything"):
        answer = httpx2.get(served.url + path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


def test_a_stream_is_nothing_but_data_lines(http: httpx2.Client, completions: ScriptedCompletions) -> None:
    completions.script(text_steps("a\nb\r\nc\u2028d"))
    answer = http.post("/chat/completions", json=STREAMED, headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in answer.headers
    events = answer.text.split("\n\n")
    assert events.pop() == ""
    assert events.pop() == "data: [DONE]"
    assert all(event.startswith("data: {") and "\n" not in event and "\r" not in event for event in events)
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-1"}
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "a\nb\r\nc\u2028d"


@contextmanager
def streaming(client: httpx2.Client, **headers: str) -> Iterator[Iterator[str]]:
    """A stream whose first piece of text has come."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with client.stream("POST", "/chat/completions", json=STREAMED, headers=sent) as answer:
        lines = answer.iter_lines()
        assert any('"content":"Hel"' in line for line in lines)
        yield lines


@contextmanager
def posted(served: ServedApi, body: dict[str, Any], length: int | None = None) -> Iterator[socket.socket]:
    """A connection on which a request was sent, its body if its length isn't made up."""
    data = json.dumps(body).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Length: {length or len(data)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(head.encode() + (b"" if length else data))
        yield connection


def script_hello(completions: ScriptedCompletions) -> threading.Event:
    gate = threading.Event()
    completions.script([START, TokenDelta("Hel"), gate, TokenDelta("lo"), TurnFinished(1, "m", "Hello")])
    return gate


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(served: ServedApi) -> None:
    with posted(served, BODY, BODY_BYTES + 1) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_closing_a_stream_stops_the_turn_unless_it_is_to_go_on(
    served: ServedApi, http: httpx2.Client, completions: ScriptedCompletions
) -> None:
    for headers, is_stopped in (({}, True), ({"X_Turnfold_On_Disconnect": "continue"}, False)):
        completions.forget("small")
        script_hello(completions)
        with streaming(http, **headers):
            pass
        until(lambda: completions.made[0].watcher_count == 0)
        assert completions.made[0].is_stopped.is_set() == is_stopped
    completions.forget("small")
    completions.script([START, threading.Event()])
    with posted(served, STREAMED):
        until(lambda: bool(completions.made))
    assert completions.made[0].is_stopped.wait(20)


def test_a_turn_goes_on_if_nobody_waits_for_its_whole_answer_any_more(
    served: ServedApi, completions: ScriptedCompletions
) -> None:
    completions.script([START, threading.Event()])
    with posted(served, BODY):
        until(lambda: bool(completions.made) and completions.made[0].watcher_count == 1)
    until(lambda: completions.made[0].watcher_count == 0)
    assert not completions.made[0].is_stopped.is_set()


def test_a_turn_goes_on_while_another_stream_of_it_is_open(
    http: httpx2.Client, completions: ScriptedCompletions
) -> None:
    gate = script_hello(completions)
    with streaming(http):
        completions.script_again(1)
        with streaming(http, X_Stainless_Retry_Count="1") as second:
            break_off = httpx2.Client(base_url=http.base_url, headers=HEADERS)
            completions.script_again(1)
            with break_off, streaming(break_off):
                pass
            until(lambda: completions.made[0].watcher_count == 2)
            assert not completions.made[0].is_stopped.is_set()
            gate.set()
            assert any('"content":"lo"' in line for line in second)


def test_the_servers_end_is_no_success(completions: ScriptedCompletions) -> None:
    script_hello(completions)
    completions.script([START, threading.Event()])
    with (
        ServedApi(completions) as served,
        httpx2.Client(base_url=served.url, headers=HEADERS) as http,
        streaming(http) as lines,
    ):
        answers: list[httpx2.Response] = []
        waiting = threading.Thread(target=lambda: answers.append(http.post("/chat/completions", json=BODY)))
        waiting.start()
        until(lambda: len(completions.made) == 2 and completions.made[1].watcher_count == 1)
        served.end_streams()
        rest = [line for line in lines if line]
        assert json.loads(rest[-1].removeprefix("data: "))["error"]["code"] == "server_closing"
        waiting.join(20)
        refused = http.post("/chat/completions", json=BODY)
    assert [answer.status_code for answer in (*answers, refused)] == [503, 503]
    assert not completions.made[0].is_stopped.is_set()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_open_streams_and_then_the_server(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.fake.ending_api"]
    with ExitStack() as stack:
        server = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(server.kill)
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1/chat/completions"
        with httpx2.stream("POST", url, json=STREAMED, headers=HEADERS, timeout=30) as answer:
            lines = (line for line in answer.iter_lines() if line)
            assert any('"content":"Hel"' in line for line in lines)
            server.send_signal(number)
            last = list(lines)[-1]
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "server_closing"
        assert server.stdout.read() == "ended\n"
        assert server.wait(30) == -number


def test_the_handlers_of_a_signal_are_called_and_come_back() -> None:
    told: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: told.append("server"))
    try:
        handler = signal.getsignal(signal.SIGTERM)
        with notified_of_end(lambda: told.append("streams")):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert told == ["streams", "server"]
