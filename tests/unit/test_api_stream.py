"""How an answer of /v1 is written: its chunks, the queue of its events, its stream or whole body, its usage."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder
from starlette.types import Message

from api.completion_stream import (
    DONE,
    ChunkWriter,
    CompletionHead,
    failure_line,
    first_event,
    stream_lines,
    whole_body,
    whole_completion,
)
from api.completions import CreateCompletion
from api.event_stream import EventQueue
from api.middleware import ApiClient
from api.problem import BY_CODE, Problem, ProblemError
from graph.service.turn_stream import usage_of
from graph.store.call import CallCost
from graph.value.client import ClientUsage, CompletionEnd
from graph.value.event import (
    ActionRequired,
    AnswerRestarted,
    CallRetried,
    ClientCall,
    Event,
    Folded,
    FoldWaiting,
    InputRead,
    ThoughtDelta,
    TokenDelta,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)
from tests.fake.scripted_completions import ScriptedCompletions

HEAD = CompletionHead("chatcmpl-1", 1_800_000_000, "turnfold/small")
END = CompletionEnd("stop", None, {})
ANY_TEXT = st.text(st.characters())
CALLS = st.builds(ClientCall, st.text(min_size=1, max_size=9), st.text(min_size=1, max_size=9), ANY_TEXT)


def chunks(lines: bytes) -> list[Any]:
    """Read as a client does that takes a line for what `str.splitlines` takes for one."""
    read = [line for line in lines.decode().splitlines() if line]
    assert all(line.startswith("data: ") for line in read)
    assert lines.count(b"\n\n") == len(read)
    return [line if line == "data: [DONE]" else json.loads(line.removeprefix("data: ")) for line in read]


def openai_events(lines: bytes) -> list[str]:
    def pieces() -> Iterator[bytes]:
        yield from (lines[at : at + 7] for at in range(0, len(lines), 7))

    return [event.data for event in SSEDecoder().iter_bytes(pieces())]


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_is_one_line_of_a_stream(text: str, model: str) -> None:
    line = ChunkWriter(HEAD._replace(model=model)).text(text)
    (chunk,) = chunks(line)
    said = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "�")
    assert chunk["choices"] == [{"index": 0, "delta": {"content": said}, "finish_reason": None}]
    assert (chunk["id"], chunk["created"], chunk["object"]) == ("chatcmpl-1", 1_800_000_000, "chat.completion.chunk")
    assert openai_events(line) == [line.decode().removeprefix("data: ").strip()]


@given(st.lists(CALLS, max_size=4))
def test_each_call_has_a_chunk_and_an_index_of_its_own_and_is_whole(calls: list[ClientCall]) -> None:
    told = [chunk["choices"][0]["delta"]["tool_calls"] for chunk in chunks(ChunkWriter(HEAD).calls(calls))]
    assert [len(each) for each in told] == [1] * len(calls)
    told = [call for (call,) in told]
    assert [call["index"] for call in told] == list(range(len(calls)))
    assert all(set(call) == {"index", "id", "type", "function"} for call in told)
    assert all(isinstance(call["function"]["arguments"], str) for call in told)


def test_a_stream_begins_with_who_speaks_and_ends_with_reason_usage_and_done() -> None:
    end = CompletionEnd("length", ClientUsage(10, 2, 3), {"session": "s1"})
    writer = ChunkWriter(HEAD)
    (first,), (last, usage, done) = chunks(writer.start()), chunks(writer.end(end, with_usage=True))
    assert (first["choices"][0]["delta"], first["model"]) == ({"role": "assistant", "content": ""}, "turnfold/small")
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "length"}]
    assert last["turnfold"] == {"session": "s1"}
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    assert done == "data: [DONE]"


def test_usage_is_told_only_if_it_is_asked_for_and_known() -> None:
    for end, with_usage in ((CompletionEnd("stop", ClientUsage(1, 1, None), {}), False), (END, True)):
        lines = ChunkWriter(HEAD).end(end, with_usage=with_usage)
        assert b"usage" not in lines
        assert b'turnfold":' not in lines
        assert lines.count(b"finish_reason") == 1
        assert lines.endswith(DONE)
    (told,) = chunks(failure_line(BY_CODE["unreachable"]))  # a failure is no end
    assert set(told["error"]) == {"message", "type", "param", "code"}


@given(ANY_TEXT, st.lists(CALLS, max_size=3))
def test_a_whole_answer_has_what_the_chunks_have(text: str, calls: list[ClientCall]) -> None:
    body = whole_completion(HEAD, text, calls, CompletionEnd("stop", ClientUsage(1, 2, None), {"turn": 3}))
    json.dumps(body, ensure_ascii=False).encode()
    message = body["choices"][0]["message"]
    assert (body["object"], body["id"], body["turnfold"]) == ("chat.completion", "chatcmpl-1", {"turn": 3})
    assert message.get("tool_calls", []) == [] if not calls else len(message["tool_calls"]) == len(calls)
    assert (message["content"] is None) == (not text and bool(calls))
    assert body["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


STARTED = TurnStarted("s1", 1, 1)
TOOL = (ToolStarted("t", "recall", "{}"), ToolFinished("t", "recall", "x", is_error=False, seconds=0.1))
LOOK = (ClientCall("c1", "look", "{}"),)

MIDDLE = st.one_of(
    st.text(st.characters(), max_size=5).map(lambda text: (TokenDelta(text),)),
    st.text(st.characters(), max_size=5).map(lambda text: (ThoughtDelta(text),)),
    st.sampled_from([TOOL, (AnswerRestarted(),), (FoldWaiting((1,)),), (Folded("r", (1,), 2, 1),), (STARTED,)]),
)
LAST = st.sampled_from(
    [TurnFinished(1, "m", ""), TurnStopped(1, ""), TurnFailed(1, "provider", "x"), ActionRequired(1, "m", "", LOOK)]
)
LAST_OF_ALL = TurnFinished(1, "m", "9")
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
        return await whole_body(await filled(events), ChunkWriter(HEAD), told)

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
    thoughts = "".join(delta.get("reasoning_content", "") for delta in deltas)
    if AnswerRestarted() not in events:  # those of a failed attempt were sent
        assert thoughts.strip() == message.get("reasoning_content", "")
    streamed_calls = [call["id"] for delta in deltas for call in delta.get("tool_calls", [])]
    assert streamed_calls == [call["id"] for call in message.get("tool_calls", [])]


def test_text_that_turns_out_to_be_thoughts_stays_in_a_stream_and_leaves_a_whole_answer() -> None:
    events: list[Event] = [
        TokenDelta("Hm"),
        AnswerRestarted(is_sorted=True),
        ThoughtDelta("Hm"),
        TokenDelta("9"),
        LAST_OF_ALL,
    ]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(b"".join(streamed(events)))[1:-2]]
    assert deltas == [{"content": "Hm"}, {"reasoning_content": "Hm"}, {"content": "9"}]
    message = whole(events)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "9", "refusal": None, "reasoning_content": "Hm"}


def test_the_status_is_decided_by_what_the_model_does_first_and_nothing_is_lost() -> None:
    async def main(event: Event) -> None:
        retried = CallRetried("provider", 2, 3, 0.5)
        queue = await filled(
            [STARTED, FoldWaiting((1,)), Folded("r", (1,), 2, 1), InputRead(1, 2), retried, AnswerRestarted(), event]
        )
        await first_event(queue, seconds=20)
        assert [*await queue.get()][-1:] == [event]

    for event in (TokenDelta("Hi"), TOOL[0], TurnFinished(1, "m", "Hi"), TurnStopped(1, "")):
        asyncio.run(main(event))


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
        assert await queue.get() == [STARTED, TokenDelta("Hi")]

    asyncio.run(main())


STOPPED = TurnStopped(1, "")
FOLDED = Folded("r1", (1, 2, 3), 9, 3)
GONE = Problem(499, "gone", "Gone.")


def run(read: Callable[[EventQueue], Awaitable[None]], *, most_chars: int = 1000) -> None:
    async def main() -> None:
        await read(EventQueue(most_chars=most_chars))

    asyncio.run(main())


def put_in_thread(queue: EventQueue, *events: Event) -> None:
    thread = threading.Thread(target=lambda: deque(map(queue.put, events)))
    thread.start()
    thread.join()


def test_events_that_wait_come_together_and_in_order() -> None:
    async def read(queue: EventQueue) -> None:
        events: list[Event] = [TokenDelta("a"), TokenDelta("b"), FOLDED, TokenDelta("c"), STOPPED]
        put_in_thread(queue, *events)
        assert await queue.get() == events

    run(read)


def test_texts_that_wait_are_one_chunk() -> None:
    lines = b"".join(streamed([STARTED, TokenDelta("a"), TokenDelta("b"), FOLDED, TokenDelta("c"), STOPPED]))
    told = [chunk["choices"][0]["delta"].get("content") for chunk in chunks(lines)[:-1]]
    assert told == ["", "ab", "c", None]


def test_silence_is_no_event_and_loses_nothing() -> None:
    async def read(queue: EventQueue) -> None:
        assert not await queue.get(seconds=0.01)
        assert not await queue.get(seconds=-1)
        put_in_thread(queue, FOLDED, STOPPED)
        assert await queue.first(Folded) == STOPPED
        assert await queue.get(seconds=-1) == [FOLDED, STOPPED]

    run(read)


def test_many_threads_wake_a_reader_that_waits() -> None:
    async def read(queue: EventQueue) -> None:
        threads = [threading.Thread(target=queue.put, args=(FOLDED,)) for _ in range(50)]
        for thread in threads:
            thread.start()
        count = 0
        while count < 50:
            events = await queue.get(seconds=20)
            assert events
            count += len(events)

    run(read)


def test_a_closed_queue_says_why_and_takes_nothing_more() -> None:
    async def read(queue: EventQueue) -> None:
        put_in_thread(queue, TokenDelta("a"))
        queue.close(GONE)
        queue.close(Problem(503, "later", "Later."))
        put_in_thread(queue, STOPPED)
        for look in (queue.get, queue.first, queue.get):
            with pytest.raises(ProblemError) as closed:
                await look()
            assert closed.value.problem is GONE

    run(read)


def test_a_reader_that_is_too_far_behind_is_given_up() -> None:
    async def read(queue: EventQueue) -> None:
        put_in_thread(queue, *[TokenDelta("12345")] * 4)
        with pytest.raises(ProblemError, match="client_too_slow"):
            await queue.get()

    run(read, most_chars=15)


def test_a_reader_that_keeps_up_may_read_more_than_ever_waits() -> None:
    async def read(queue: EventQueue) -> None:
        for _ in range(20):
            put_in_thread(queue, TokenDelta("12345"), FOLDED)
            assert await queue.get() == [TokenDelta("12345"), FOLDED]

    run(read, most_chars=15)


def test_an_event_after_the_loop_has_ended_is_dropped() -> None:
    queues: list[EventQueue] = []

    async def read(queue: EventQueue) -> None:
        queues.append(queue)

    run(read)
    queues[0].put(STOPPED)


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
        endpoint = CreateCompletion(lambda _: completions, patience_seconds=20, stalled_seconds=0.01)
        state = {"client": ApiClient("editor", "kim", None)}
        await endpoint({"type": "http", "headers": [], "state": state}, receive, send)

    asyncio.run(main())
    assert sent == ["http.response.start", "http.response.body", "http.response.body"]
    assert completions.made[0].is_stopped.is_set()
    assert completions.made[0].watcher_count == 0


def cost(inputs: int | None, outputs: int | None, cached: int | None = None) -> CallCost:
    return CallCost("answer", 1, 1, inputs, outputs, cached, 1)


def test_usage_is_the_sum_of_what_was_reported_and_unknown_if_one_call_was_not() -> None:
    assert usage_of([cost(10, 2, 4), cost(20, 3)]) == ClientUsage(30, 5, 4)
    assert usage_of([cost(10, 2), cost(20, 3)]) == ClientUsage(30, 5, None)
    assert usage_of([]) is None
    assert usage_of([cost(10, 2), cost(None, 3)]) is None
    assert usage_of([cost(10, 2), cost(20, None)]) is None
