from __future__ import annotations

import json
import signal
import subprocess
import sys

import httpx2
import pytest

from api.server_end import told_of_end
from tests.fake.served_door import TOKEN

BODY = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_open_streams_and_then_the_server(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.fake.ending_door"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1/chat/completions"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx2.stream("POST", url, json=BODY, headers=headers, timeout=30) as answer:
            lines = (line for line in answer.iter_lines() if line)
            assert any('"content":"Hel"' in line for line in lines)
            server.send_signal(number)
            last = list(lines)[-1]
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "server_closing"
        assert server.stdout.read() == "ended\n"
        assert server.wait(30) == -number


def test_the_handlers_before_are_called_and_come_back() -> None:
    told: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda *_: told.append("server"))
    try:
        handler = signal.getsignal(signal.SIGTERM)
        with told_of_end(lambda: told.append("door")):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert told == ["door", "server"]
