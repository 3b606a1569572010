from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.chunk_writer import DONE, ChunkWriter, CompletionHead
from api.event_queue import EventQueue
from api.problem import ProblemError
from api.stream import first_event, stream_lines, whole_body
from graph.client import CompletionEnd
from graph.event import (
    ActionRequired,
    AnswerRestarted,
    ClientCall,
    Event,
    Folded,
    FoldWaiting,
    TokenDelta,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)

HEAD = CompletionHead("chatcmpl-1", 1_800_000_000, "turnfold")
STARTED = TurnStarted("s1", 1, 1)
TOOL = (ToolStarted("t", "recall", "{}"), ToolFinished("t", "recall", "x", is_error=False, seconds=0.1))
CALLS = (ClientCall("c1", "look", "{}"),)

MIDDLE = st.one_of(
    st.text(st.characters(), max_size=5).map(lambda text: (TokenDelta(text),)),
    st.sampled_from([TOOL, (AnswerRestarted(),), (FoldWaiting((1,)),), (Folded("r", (1,), 2, 1),), (STARTED,)]),
)
LAST = st.sampled_from(
    [TurnFinished(1, "m", ""), TurnStopped(1, ""), TurnFailed(1, "provider", "x"), ActionRequired(1, "m", "", CALLS)]
)
EVENTS = st.tuples(st.lists(MIDDLE, max_size=6), LAST).map(lambda drawn: [*sum(drawn[0], ()), drawn[1]])


async def told() -> CompletionEnd:
    return CompletionEnd("stop", None, {"turn": 1})


async def filled(events: Sequence[Event]) -> EventQueue:
    queue = EventQueue()
    for event in events:
        queue.put(event)
    await asyncio.sleep(0)
    return queue


def streamed(events: Sequence[Event]) -> list[bytes]:
    async def main() -> list[bytes]:
        lines = stream_lines(await filled(events), ChunkWriter(HEAD), told, with_usage=True, keep_alive_seconds=20)
        return [line async for line in lines]

    return asyncio.run(main())


def whole(events: Sequence[Event]) -> dict[str, Any]:
    async def main() -> dict[str, Any]:
        return await whole_body(await filled(events), HEAD, told)

    return asyncio.run(main())


@given(EVENTS)
def test_a_stream_begins_with_the_role_and_ends_once_whatever_happens(events: list[Event]) -> None:
    lines = b"".join(streamed(events)).decode().split("\n\n")
    assert lines.pop() == ""
    is_done = lines[-1] == DONE.decode().strip()
    values = [json.loads(line.removeprefix("data: ")) for line in (lines[:-1] if is_done else lines)]
    choices = [value["choices"][0] for value in values if "choices" in value]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    assert [choice["finish_reason"] for choice in choices[:-1]] == [None] * (len(choices) - 1)
    assert ["error" in value for value in values].count(True) == (0 if is_done else 1)
    assert (choices[-1]["finish_reason"] == "stop") == is_done == ("error" not in values[-1])


@given(EVENTS)
def test_a_stream_that_succeeds_says_what_the_whole_answer_does(events: list[Event]) -> None:
    lines = b"".join(streamed(events))
    if not lines.endswith(DONE):
        return
    chunks = [json.loads(line.removeprefix(b"data: ")) for line in lines.removesuffix(DONE).split(b"\n\n") if line]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    message = whole(events)["choices"][0]["message"]
    assert "".join(delta.get("content", "") for delta in deltas) == (message["content"] or "")
    streamed_calls = [call["id"] for delta in deltas for call in delta.get("tool_calls", [])]
    assert streamed_calls == [call["id"] for call in message.get("tool_calls", [])]


@pytest.mark.parametrize("event", [TokenDelta("Hi"), TOOL[0], TurnFinished(1, "m", "Hi"), TurnStopped(1, "")])
def test_the_status_is_decided_by_what_the_model_does_first_and_nothing_is_lost(event: Event) -> None:
    async def main() -> None:
        queue = await filled([STARTED, FoldWaiting((1,)), Folded("r", (1,), 2, 1), AnswerRestarted(), event])
        await first_event(queue, seconds=20)
        assert await queue.get() == event

    asyncio.run(main())


def test_a_turn_that_fails_first_decides_the_status() -> None:
    async def main() -> None:
        await first_event(await filled([STARTED, TurnFailed(1, "quota", "")]), seconds=20)

    with pytest.raises(ProblemError) as failed:
        asyncio.run(main())
    assert (failed.value.problem.status, failed.value.problem.code) == (429, "insufficient_quota")


def test_the_status_waits_no_longer_than_it_may() -> None:
    async def main() -> None:
        queue = await filled([STARTED])
        await first_event(queue, seconds=0.01)
        queue.put(TokenDelta("Hi"))
        assert await queue.get() == TokenDelta("Hi")

    asyncio.run(main())
