from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from api.chunk_writer import DONE, ChunkWriter, CompletionHead, failure_line, whole_completion
from api.refusal import BY_CODE
from graph.client import ClientUsage, CompletionEnd
from graph.event import ClientCall

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
def test_each_call_has_its_own_index_and_is_whole(calls: list[ClientCall]) -> None:
    (chunk,) = chunks(ChunkWriter(HEAD).calls(calls))
    told = chunk["choices"][0]["delta"]["tool_calls"]
    assert [call["index"] for call in told] == list(range(len(calls)))
    assert all(set(call) == {"index", "id", "type", "function"} for call in told)
    assert all(isinstance(call["function"]["arguments"], str) for call in told)


def test_the_first_line_says_who_speaks() -> None:
    (chunk,) = chunks(ChunkWriter(HEAD).start())
    assert chunk["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunk["model"] == "turnfold/small"


def test_a_stream_ends_with_reason_usage_and_done() -> None:
    end = CompletionEnd("length", ClientUsage(10, 2, 3), {"session": "s1"})
    last, usage, done = chunks(ChunkWriter(HEAD).end(end, with_usage=True))
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


@pytest.mark.parametrize(
    ("end", "with_usage"), [(CompletionEnd("stop", ClientUsage(1, 1, None), {}), False), (END, True)]
)
def test_usage_is_told_only_if_it_is_asked_for_and_known(end: CompletionEnd, *, with_usage: bool) -> None:
    lines = ChunkWriter(HEAD).end(end, with_usage=with_usage)
    assert b"usage" not in lines
    assert b'turnfold":' not in lines
    assert lines.count(b"finish_reason") == 1
    assert lines.endswith(DONE)


def test_a_failure_is_no_end() -> None:
    (told,) = chunks(failure_line(BY_CODE["unreachable"]))
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
