from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from api.problem import ProblemError
from api.request import ParsedRequest, parse_request
from tests.fake.parsed_request import CLIENT, messages

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = [
    *("messages", "model", "stream", "stream_options", "tools", "tool_choice", "metadata", "n", "logprobs", "user"),
    *("temperature", "stop", "response_format", "prompt_cache_key", "safety_identifier", "max_tokens", "modalities"),
]
PART = st.fixed_dictionaries(
    {},
    optional={"type": st.sampled_from(["text", "image_url", "file"]) | JSON, "text": JSON, "image_url": JSON},
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["system", "developer", "user", "assistant", "tool"]) | JSON,
        "content": JSON | st.lists(PART, max_size=3),
        "tool_calls": JSON | st.lists(JSON, max_size=2),
        "tool_call_id": JSON,
    },
)


@given(
    fields=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5),
    sent=JSON | st.lists(MESSAGE | JSON, max_size=4),
    value=st.text(max_size=20),
)
def test_whatever_is_sent_is_read_or_refused_with_400(fields: dict[str, Any], sent: object, value: str) -> None:
    body = json.dumps({"messages": sent, **fields}).encode()
    headers = Headers(raw=[(b"x-session-id", value.encode("utf-8", "replace"))])
    result: ParsedRequest | ProblemError
    try:
        result = parse_request(body, headers, CLIENT)
    except ProblemError as refused:
        result = refused
    if isinstance(result, ProblemError):
        assert result.problem.status == 400
        json.dumps(result.problem.body(), ensure_ascii=False).encode()
    else:
        options = result.request.options
        assert result.request.messages[-1].role in ("user", "tool")
        json.dumps([options.tools, dict(options.sampling)], allow_nan=False, ensure_ascii=False).encode()


@given(st.binary(max_size=200))
def test_whatever_bytes_are_sent_are_refused_with_400(body: bytes) -> None:
    with pytest.raises(ProblemError) as refused:
        parse_request(body, Headers({}), CLIENT)
    assert refused.value.problem.status == 400


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).filter(lambda text: text.strip()))
def test_text_of_any_script_is_read_as_it_was_sent(text: str) -> None:
    assert messages({"role": "assistant", "content": text})[0].text == text
