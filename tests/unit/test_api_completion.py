from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import anyio
from starlette.types import Message

from api.completion import CreateCompletion
from api.token_guard import ApiClient
from graph.event import TokenDelta, TurnStarted
from tests.fake.scripted_completions import ScriptedCompletions

BODY = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "stream": True}).encode()


def test_a_client_that_takes_nothing_any_more_has_left() -> None:
    completions = ScriptedCompletions()
    completions.script([TurnStarted("s", 1, 1), TokenDelta("Hel"), threading.Event()])
    sent: list[Any] = []

    async def receive() -> Message:
        if not completions.requests:
            return {"type": "http.request", "body": BODY}
        return await asyncio.Future()

    async def send(message: Message) -> None:
        sent.append(message["type"])
        if len(sent) == 3:
            await asyncio.Future()

    async def main() -> None:
        endpoint = CreateCompletion(
            lambda _: completions, threads=anyio.CapacityLimiter(1), patience_seconds=20, stalled_seconds=0.01
        )
        state = {"client": ApiClient("editor", "kim", None)}
        await endpoint({"type": "http", "headers": [], "state": state}, receive, send)

    asyncio.run(main())
    assert sent == ["http.response.start", "http.response.body", "http.response.body"]
    assert completions.made[0].is_stopped.is_set()
    assert completions.made[0].watcher_count == 0
