from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.datastructures import Headers

from api.body import JSON_DEPTH
from api.problem import ProblemError
from api.request import parse_request
from graph.client import ClientMessage
from graph.event import ClientCall
from tests.fake.parsed_request import CLIENT, QUESTION, messages, parsed, problem

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}, "x": None}


def test_the_least_request_asks_the_default_model_for_a_whole_answer() -> None:
    asked = parse_request(json.dumps({"messages": [QUESTION]}).encode(), Headers({}), CLIENT)
    assert (asked.request.model, asked.model, asked.is_streamed, asked.request.hint) == ("", "turnfold", False, None)
    assert asked.request.messages == (ClientMessage("user", "안녕"),)
    assert (asked.request.options.name, asked.request.options.allowed_tools) == ("editor", frozenset({"recall"}))


@pytest.mark.parametrize(
    ("model", "name", "is_plain"),
    [
        ("turnfold", "", False),
        ("turnfold:plain", "", True),
        ("turnfold/small", "small", False),
        ("turnfold/maker/small:7b:plain", "maker/small:7b", True),
        ("small", "small", False),
    ],
)
def test_a_model_is_named_with_and_without_the_prefix(model: str, name: str, is_plain: bool) -> None:  # noqa: FBT001 - a case's value
    request = parsed(model=model).request
    assert (request.model, request.is_plain) == (name, is_plain)


@pytest.mark.parametrize(
    ("content", "text", "images"),
    [
        (None, "", ()),
        ("", "", ()),
        ("one\ntwo", "one\ntwo", ()),
        ([{"type": "text", "text": "one"}, {"type": "input_text", "text": "two"}], "one\ntwo", ()),
        ([{"type": "refusal", "refusal": "no"}], "no", ()),
        (
            [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}],
            "",
            ("data:image/png;base64,AA",),
        ),
        ([{"type": "image_url", "image_url": "https://a.test/b.png"}], "", ("https://a.test/b.png",)),
    ],
)
def test_content_is_null_text_or_parts(content: object, text: str, images: tuple[str, ...]) -> None:
    assert messages({"role": "user", "content": content}) == (ClientMessage("user", text, images=images),)


def test_system_and_developer_messages_stand_apart_wherever_they_are() -> None:
    sent = [
        {"role": "system", "content": "Be brief."},
        QUESTION,
        {"role": "developer", "content": [{"type": "text", "text": "No lists."}]},
        {"role": "system", "content": None},
    ]
    request = parsed(messages=sent).request
    assert request.options.system == "Be brief.\n\nNo lists."
    assert request.messages == (ClientMessage("user", "안녕"),)


def test_calls_and_their_answers_are_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"b":1}'}}
    answered = messages(
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
        {"role": "tool", "tool_call_id": "c1", "content": "found", "name": "look"},
    )
    assert answered == (
        ClientMessage("assistant", "", calls=(ClientCall("c1", "look", '{"b":1}'),)),
        ClientMessage("tool", "found", call_id="c1"),
    )


def test_what_goes_to_the_model_goes_as_it_was_sent_and_nothing_else_does() -> None:
    sampling: dict[str, Any] = {
        "temperature": 0.2,
        "top_p": 0.9,
        "stop": ["a", "b"],
        "presence_penalty": -1,
        "frequency_penalty": 1.5,
        "max_tokens": 7,
        "max_completion_tokens": 9,
        "response_format": {"type": "json_schema", "json_schema": {"strict": None}},
        "reasoning_effort": "low",
        "parallel_tool_calls": False,
    }
    ignored: dict[str, Any] = {
        "store": True,
        "service_tier": "x",
        "seed": 1,
        "logit_bias": {"1": 2},
        "user": "u",
        "what": [{}],
    }
    options = parsed(**sampling, **ignored, n=1, logprobs=False, top_logprobs=None, modalities=["text"]).request.options
    assert options.sampling == sampling
    assert (options.tools, options.tool_choice) == ((), None)


@pytest.mark.parametrize("choice", ["none", "auto", "required", {"type": "function", "function": {"name": "look"}}])
def test_tools_go_on_as_they_are(choice: object) -> None:
    options = parsed(tools=[TOOL], tool_choice=choice).request.options
    assert (options.tools, options.tool_choice) == ((TOOL,), choice)


@pytest.mark.parametrize("options", [None, {}, {"include_usage": None}, {"include_usage": True}])
def test_stream_options_are_taken_without_stream(options: Mapping[str, object] | None) -> None:
    asked = parsed(stream_options=options)
    assert (asked.is_streamed, asked.with_usage) == (False, bool(options and options.get("include_usage")))


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"n": 2}, "invalid_value", "n"),
        ({"n": 0}, "invalid_value", "n"),
        ({"logprobs": True}, "invalid_value", "logprobs"),
        ({"audio": {}}, "invalid_value", "audio"),
        ({"modalities": ["text", "audio"]}, "invalid_value", "modalities.1"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": None}, "invalid_value", "messages"),
        ({"messages": "Hi"}, "invalid_value", "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "empty_messages", "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value", "messages.0.role"),
        ({"messages": [{"role": "user", "content": 5}]}, "invalid_value", "messages.0.content"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "empty_message", "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "missing_tool_call_id", "messages.0"),
        ({"messages": [QUESTION, {"role": "assistant", "content": "Well"}]}, "prefill_unsupported", "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "file"}]}]},
            "unsupported_content",
            "messages.0.content.0",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "unsupported_content",
            "messages.0.content.0",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "file:///etc/passwd"}]}]},
            "invalid_image_url",
            "messages.0.content.0",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "text"}] * 1001}]}, "invalid_value", "messages.0.content"),
        ({"messages": [QUESTION] * 10_001}, "invalid_value", "messages"),
        ({"tools": [TOOL, TOOL]}, "duplicate_tool", "tools"),
        ({"tools": [{"type": "custom"}]}, "invalid_value", "tools.0.type"),
        ({"temperature": 3}, "invalid_value", "temperature"),
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"model": "m" * 300}, "invalid_value", "model"),
        ({"user": "u" * 257}, "invalid_value", "user"),
        ({"metadata": {"session_id": "x\r\ny"}}, "invalid_header", "metadata.session_id"),
        ({"prompt_cache_key": ["x"]}, "invalid_header", "prompt_cache_key"),
    ],
    ids=str,
)
def test_what_cant_be_taken_is_refused_by_the_name_of_its_field(fields: dict[str, Any], code: str, param: str) -> None:
    assert problem(**fields) == (400, code, param)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"messages": NaN}',
        b'{"messages": [], "x": 1e999}',
        b'{"x": "\xff"}',
        b'{"x": ' + b"9" * 5000 + b"}",
        b'{"x": ' + b"[" * 100_000,
        b'{"x": ' + b"[" * JSON_DEPTH + b"]" * JSON_DEPTH + b"}",
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_is_no_plain_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(ProblemError) as refused:
        parse_request(body, Headers({}), CLIENT)
    assert (refused.value.problem.status, refused.value.problem.code) == (400, "invalid_json")


def test_text_is_taken_as_it_can_be_stored() -> None:
    body = rb'{"messages": [{"role": "user", "content": "a\u0000b\ud83d\ude00c\ud83d"}]}'
    (message,) = parse_request(body, Headers({}), CLIENT).request.messages
    assert message.text == "a�b😀c�"


def test_a_refusal_repeats_nothing_of_what_was_said() -> None:
    canary = "canary-of-a-secret"
    for fields in (
        {"messages": [{"role": canary, "content": canary}]},
        {"messages": [{"role": "user", "content": [{"type": canary, "text": canary}]}]},
        {"temperature": canary, "model": canary},
        {"tool_choice": canary},
        {"user": canary * 50},
    ):
        with pytest.raises(ProblemError) as refused:
            parsed(**fields)
        assert canary not in json.dumps(refused.value.problem.body())
