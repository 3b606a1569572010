from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import pytest

from api.body import BODY_BYTES
from graph.event import TokenDelta, TurnFinished, TurnStarted
from tests.fake.scripted_completions import ScriptedCompletions, said
from tests.fake.served_door import TOKEN, ServedDoor

START: Final = TurnStarted("session-1", 1, 1)
BODY: Final = {"model": "turnfold", "messages": [{"role": "user", "content": "Hi"}]}
STREAMED: Final = {**BODY, "stream": True}
HEADERS: Final = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def served(completions: ScriptedCompletions) -> Iterator[ServedDoor]:
    with ServedDoor(completions) as door:
        yield door


@pytest.fixture
def client(served: ServedDoor) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=served.url, headers=HEADERS) as client:
        yield client


def until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def streaming(client: httpx2.Client, **headers: str) -> Iterator[Iterator[str]]:
    """A stream whose first piece of text has come."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with client.stream("POST", "/chat/completions", json=STREAMED, headers=sent) as answer:
        lines = answer.iter_lines()
        assert any('"content":"Hel"' in line for line in lines)
        yield lines


def script_hello(completions: ScriptedCompletions) -> threading.Event:
    gate = threading.Event()
    completions.script([START, TokenDelta("Hel"), gate, TokenDelta("lo"), TurnFinished(1, "m", "Hello")])
    return gate


@pytest.mark.parametrize("slash", ["", "/"])
def test_an_address_may_end_with_a_slash(client: httpx2.Client, completions: ScriptedCompletions, slash: str) -> None:
    completions.script(said("Hi"))
    assert client.post(f"/chat/completions{slash}", json=BODY).status_code == 200
    assert client.get(f"/models{slash}").json()["object"] == "list"
    assert client.get(f"/models/turnfold/small{slash}").json()["id"] == "turnfold/small"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/responses", 404, "unknown_url"),
        ("POST", "/embeddings", 404, "unknown_url"),
        ("POST", "/completions/", 404, "unknown_url"),
        ("GET", "/", 404, "unknown_url"),
        ("GET", "/chat/completions/x", 404, "unknown_url"),
        ("GET", "/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/models", 405, "method_not_allowed"),
        ("POST", "/models/turnfold", 405, "method_not_allowed"),
        ("GET", "/models/missing", 404, "model_not_found"),
        ("POST", "/chat/completions", 400, "invalid_json"),
    ],
)
def test_every_refusal_has_openais_shape(client: httpx2.Client, method: str, path: str, status: int, code: str) -> None:
    answer = client.request(method, path)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert set(error) == {"message", "type", "param", "code"}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")


def test_a_wrong_method_names_the_right_one(client: httpx2.Client) -> None:
    assert client.get("/chat/completions").headers["allow"] == "POST"


def test_without_a_token_no_address_tells_anything(served: ServedDoor) -> None:
    for path in ("/models", "/chat/completions", "/anything"):
        answer = httpx2.get(served.url + path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(served: ServedDoor) -> None:
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Length: {BODY_BYTES + 1}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_stream_is_nothing_but_data_lines(client: httpx2.Client, completions: ScriptedCompletions) -> None:
    completions.script(said("a\nb\r\nc\u2028d"))
    answer = client.post("/chat/completions", json=STREAMED, headers={"Accept-Encoding": "gzip"})
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


def test_closing_a_stream_stops_the_turn(client: httpx2.Client, completions: ScriptedCompletions) -> None:
    script_hello(completions)
    with streaming(client):
        pass
    assert completions.made[0].is_stopped.wait(20)
    until(lambda: completions.made[0].watcher_count == 0)


def test_closing_a_stream_that_says_nothing_yet_stops_the_turn(
    served: ServedDoor, completions: ScriptedCompletions
) -> None:
    completions.script([START, threading.Event()])
    with post(served, STREAMED):
        until(lambda: bool(completions.made))
    assert completions.made[0].is_stopped.wait(20)


@contextmanager
def post(served: ServedDoor, body: dict[str, Any]) -> Iterator[socket.socket]:
    data = json.dumps(body).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(head.encode() + data)
        yield connection


def test_a_turn_goes_on_behind_a_closed_stream_if_that_is_asked_for(
    client: httpx2.Client, completions: ScriptedCompletions
) -> None:
    script_hello(completions)
    with streaming(client, X_Turnfold_On_Disconnect="continue"):
        pass
    until(lambda: completions.made[0].watcher_count == 0)
    assert not completions.made[0].is_stopped.is_set()


def test_a_turn_goes_on_if_nobody_waits_for_its_whole_answer_any_more(
    served: ServedDoor, completions: ScriptedCompletions
) -> None:
    completions.script([START, threading.Event()])
    with post(served, BODY):
        until(lambda: bool(completions.made) and completions.made[0].watcher_count == 1)
    until(lambda: completions.made[0].watcher_count == 0)
    assert not completions.made[0].is_stopped.is_set()


def test_a_turn_goes_on_while_another_stream_of_it_is_open(
    client: httpx2.Client, completions: ScriptedCompletions
) -> None:
    gate = script_hello(completions)
    with streaming(client):
        completions.script_again(1)
        with streaming(client, X_Stainless_Retry_Count="1") as second:
            break_off = httpx2.Client(base_url=client.base_url, headers=HEADERS)
            completions.script_again(1)
            with break_off, streaming(break_off):
                pass
            until(lambda: completions.made[0].watcher_count == 2)
            assert not completions.made[0].is_stopped.is_set()
            gate.set()
            assert any('"content":"lo"' in line for line in second)


def test_the_servers_end_is_no_success(served: ServedDoor, completions: ScriptedCompletions) -> None:
    script_hello(completions)
    completions.script([START, threading.Event()])
    with httpx2.Client(base_url=served.url, headers=HEADERS) as client, streaming(client) as lines:
        answers: list[httpx2.Response] = []
        waiting = threading.Thread(target=lambda: answers.append(client.post("/chat/completions", json=BODY)))
        waiting.start()
        until(lambda: len(completions.made) == 2 and completions.made[1].watcher_count == 1)
        served.door.close()
        rest = [line for line in lines if line]
        assert json.loads(rest[-1].removeprefix("data: "))["error"]["code"] == "server_closing"
        waiting.join(20)
        refused = client.post("/chat/completions", json=BODY)
    assert [answer.status_code for answer in (*answers, refused)] == [503, 503]
    assert not completions.made[0].is_stopped.is_set()
