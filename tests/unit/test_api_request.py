"""What a request for completions may hold, and what each header and field of it means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from api.body import JSON_DEPTH, parse_object
from api.middleware import ApiClient
from api.problem import ProblemError
from api.request import ParsedRequest, parse_request
from api.responses import parse_response_request
from graph.value.client import ClientMessage, Hint
from graph.value.event import ClientCall

CLIENT: Final = ApiClient("editor", "kim", frozenset({"recall"}))
QUESTION: Final = {"role": "user", "content": "안녕"}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}, "x": None}


def parsed(headers: Mapping[str, str] | None = None, /, **fields: Any) -> ParsedRequest:  # noqa: ANN401  # any JSON
    body = {"model": "turnfold", "messages": [QUESTION], **fields}
    return parse_request(parse_object(json.dumps(body).encode()), Headers(headers or {}), CLIENT)


def problem(headers: Mapping[str, str] | None = None, /, **fields: Any) -> tuple[int, str, str | None]:  # noqa: ANN401  # any JSON
    with pytest.raises(ProblemError) as refused:
        parsed(headers, **fields)
    told = refused.value.problem
    return told.status, told.code, told.param


def messages(*sent: Mapping[str, object]) -> tuple[ClientMessage, ...]:
    return parsed(messages=[*sent, QUESTION]).request.messages[:-1]


def test_the_least_request_asks_the_default_model_for_a_whole_answer() -> None:
    asked = parse_request({"messages": [QUESTION]}, Headers({}), CLIENT)
    assert (asked.request.model, asked.model, asked.is_streamed, asked.request.hint) == ("", "turnfold", False, None)
    assert asked.request.messages == (ClientMessage("user", "안녕"),)
    assert (asked.request.options.name, asked.request.options.allowed_tools) == ("editor", frozenset({"recall"}))


def test_a_request_of_either_route_says_whether_its_token_is_one_persons() -> None:
    for is_personal in (False, True):
        client = replace(CLIENT, is_personal=is_personal)
        asked = parse_request({"messages": [QUESTION]}, Headers({}), client)
        following = parse_response_request(
            {"input": "안녕", "previous_response_id": "resp_s_1-x_3_1_1"}, Headers({}), client
        )
        assert [asked.request.is_personal, following.request.is_personal] == [is_personal] * 2


def test_a_model_is_named_with_and_without_the_prefix() -> None:
    for model, name, is_plain in (
        ("turnfold", "", False),
        ("turnfold:plain", "", True),
        ("turnfold/small", "small", False),
        ("turnfold/maker/small:7b:plain", "maker/small:7b", True),
        ("small", "small", False),
    ):
        request = parsed(model=model).request
        assert (request.model, request.is_plain) == (name, is_plain)


def test_content_is_null_text_or_parts() -> None:
    data = "data:image/png;base64,AA"
    contents: list[tuple[object, str, tuple[str, ...]]] = [
        (None, "", ()),
        ("one\ntwo", "one\ntwo", ()),
        ([{"type": "text", "text": "one"}, {"type": "input_text", "text": "two"}], "one\ntwo", ()),
        ([{"type": "refusal", "refusal": "no"}], "no", ()),
        ([{"type": "image_url", "image_url": {"url": data, "detail": "low"}}], "", (data,)),
        ([{"type": "image_url", "image_url": "https://a.test/b.png"}], "", ("https://a.test/b.png",)),
    ]
    for content, text, images in contents:
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
    of_old = messages(
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": '{"b":1}'}},
        {"role": "function", "name": "look", "content": "found"},
    )
    assert of_old == (
        ClientMessage("assistant", "", calls=(ClientCall("look", "look", '{"b":1}'),)),
        ClientMessage("tool", "found", call_id="look"),
    )


def test_a_system_message_alone_is_the_question() -> None:
    request = parsed(
        messages=[{"role": "system", "content": "가을에 대한 시"}, {"role": "developer", "content": "짧게"}]
    )
    assert (request.request.messages, request.request.options.system) == (
        (ClientMessage("user", "가을에 대한 시\n\n짧게"),),
        "",
    )


def chosen(mode: object, *names: object) -> dict[str, Any]:
    named = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": named}}


def test_of_allowed_tools_those_go_out_and_the_mode_is_the_choice() -> None:
    tools = [{**TOOL, "function": {"name": name}} for name in ("look", "find", "book")]
    for mode, names, is_demand in (("auto", ["book", "look"], False), ("required", ["find", "find"], True)):
        options = parsed(tools=tools, tool_choice=chosen(mode, *names)).request.options
        assert options.tool_choice == mode
        assert options.tool_names == {*names}
        assert options.is_demand is is_demand


@pytest.mark.parametrize(
    "choice",
    [
        chosen("canary", "look"),
        chosen(None, "look"),
        chosen(["auto"], "look"),
        chosen("auto"),
        chosen("auto", "look", "canary"),
        chosen("auto", "look", 5),
        {"type": "allowed_tools"},
        {"type": "allowed_tools", "allowed_tools": ["canary"]},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": ["look"]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "mcp"}]}},
    ],
)
def test_allowed_tools_are_some_of_the_requests(choice: dict[str, Any]) -> None:
    assert problem(tools=[TOOL], tool_choice=choice) == (400, "invalid_value", "tool_choice")


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
        "seed": 1,
        "top_k": 40,
        "min_p": 0.05,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    ignored: dict[str, Any] = {
        "store": True,
        "service_tier": "x",
        "logit_bias": {"1": 2},
        "user": "u",
        "what": [{}],
    }
    options = parsed(**sampling, **ignored, n=1, logprobs=False, top_logprobs=None, modalities=["text"]).request.options
    assert options.sampling == sampling
    assert (options.tools, options.tool_choice) == ((), None)


def test_tools_go_on_as_they_are_and_stream_options_are_taken_without_stream() -> None:
    choices: list[object] = ["none", "auto", "required", {"type": "function", "function": {"name": "look"}}]
    for choice in choices:
        options = parsed(tools=[TOOL], tool_choice=choice).request.options
        assert (options.tools, options.tool_choice) == ((TOOL,), choice)
    sent_options: list[Mapping[str, object] | None] = [None, {}, {"include_usage": None}, {"include_usage": True}]
    for sent, is_asked in zip(sent_options, (False, False, False, True), strict=True):
        asked = parsed(stream_options=sent)
        assert (asked.is_streamed, asked.with_usage) == (False, is_asked)


def content(part: Mapping[str, object], count: int = 1) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [part] * count}]}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"n": 2}, "invalid_value", "n"),
    ({"logprobs": True}, "invalid_value", "logprobs"),
    ({"audio": {}}, "invalid_value", "audio"),
    ({"modalities": ["text", "audio"]}, "invalid_value", "modalities.1"),
    ({"messages": []}, "invalid_value", "messages"),
    ({"messages": "Hi"}, "invalid_value", "messages"),
    ({"messages": [{"role": "system", "content": " "}]}, "empty_messages", "messages"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value", "messages.0.role"),
    ({"messages": [{"role": "user", "content": 5}]}, "invalid_value", "messages.0.content"),
    ({"messages": [{"role": "user", "content": " \n"}]}, "empty_message", "messages"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "missing_tool_call_id", "messages.0"),
    ({"messages": [QUESTION, {"role": "assistant", "content": "Well"}]}, "prefill_unsupported", "messages"),
    (content({"type": "file"}), "unsupported_content", "messages.0.content.0"),
    *(
        (content({"type": "image_url", "image_url": url}), "invalid_image_url", "messages.0.content.0")
        for url in (
            "file:///a",
            "http://example.org/a.png",
            "https://169.254.169.254/",
            {"url": "https://localhost/"},
            "",
        )
    ),
    (content({"type": "text"}, 1001), "invalid_value", "messages.0.content"),
    ({"messages": [QUESTION] * 10_001}, "invalid_value", "messages"),
    ({"tools": [TOOL, TOOL]}, "duplicate_tool", "tools"),
    ({"tools": [{"type": "custom"}]}, "invalid_value", "tools.0.type"),
    ({"temperature": 3}, "invalid_value", "temperature"),
    ({"max_tokens": 0}, "invalid_value", "max_tokens"),
    ({"model": "m" * 300}, "invalid_value", "model"),
    ({"user": "u" * 257}, "invalid_value", "user"),
    ({"metadata": {"turnfold_session": "x\r\ny"}}, "invalid_header", "metadata.turnfold_session"),
]


def test_what_cant_be_taken_is_refused_by_the_name_of_its_field() -> None:
    for fields, code, param in REFUSED:
        assert problem(**fields) == (400, code, param), str(fields)[:100]


def test_a_body_that_is_no_plain_json_object_is_refused() -> None:
    for body in (
        b"",
        b"[]",
        b"{",
        b'{"messages": NaN}',
        b'{"messages": [], "x": 1e999}',
        b'{"x": "\xff"}',
        b'{"x": ' + b"9" * 5000 + b"}",
        b'{"x": ' + b"[" * 100_000,
        b'{"x": ' + b"[" * JSON_DEPTH + b"]" * JSON_DEPTH + b"}",
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
    ):
        with pytest.raises(ProblemError) as refused:
            parse_request(parse_object(body), Headers({}), CLIENT)
        assert (refused.value.problem.status, refused.value.problem.code) == (400, "invalid_json"), body[:20]


def test_text_is_taken_as_it_can_be_stored() -> None:
    body = rb'{"messages": [{"role": "user", "content": "a\u0000b\ud83d\ude00c\ud83d"}]}'
    (message,) = parse_request(parse_object(body), Headers({}), CLIENT).request.messages
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


def test_the_surest_of_a_clients_own_ids_is_the_hint() -> None:
    ids: list[tuple[Mapping[str, str], dict[str, Any], Hint | None]] = [
        ({"X-OpenWebUI-Chat-Id": "c1", "X-Session-Id": "s1"}, {}, Hint("x-openwebui-chat-id", "c1")),
        ({"X-OpenWebUI-Chat-Id": "local:abc"}, {"prompt_cache_key": "k"}, Hint("prompt_cache_key", "k")),
        ({"X-OpenWebUI-Chat-Id": "local:abc"}, {}, None),
        ({"X-Conversation-Id": "{{LIBRECHAT_BODY_CONVERSATIONID}}"}, {}, None),
        ({"x-session-affinity": ""}, {"metadata": {"chat_id": "m"}}, Hint("metadata.chat_id", "m")),
        ({}, {"user": "u1", "metadata": {"other": 5}}, None),
    ]
    for headers, fields, hint in ids:
        assert parsed(headers, **fields).request.hint == hint


def test_the_end_user_is_told_apart_and_a_session_named_by_header_or_metadata() -> None:
    users: list[tuple[Mapping[str, str], dict[str, Any], str]] = [
        ({"X-OpenWebUI-User-Id": "h"}, {"user": "u"}, "h"),
        ({}, {"user": "홍길동", "safety_identifier": "s"}, "홍길동"),
        ({}, {"safety_identifier": "s"}, "s"),
        ({}, {}, ""),
    ]
    for headers, fields, user in users:
        assert parsed(headers, **fields).request.user == user
    named = {"metadata": {"turnfold_session": "b"}}
    assert parsed({"X-Turnfold-Session": "a"}, **named).request.session == "a"
    assert parsed(**named).request.session == "b"


def test_headers_say_what_a_request_is_for() -> None:
    headers = {
        "X-Turnfold-Task": "title_generation",
        "Idempotency-Key": "key-1",
        "x-stainless-retry-count": "2",
        "X-Turnfold-On-Disconnect": "Continue",
    }
    asked = parsed(headers)
    request = asked.request
    assert (request.task, request.idempotency_key, request.is_retry, asked.goes_on) == (
        "title_generation",
        "key-1",
        True,
        True,
    )
    assert parsed({"X-Turnfold-Task": "{{TASK}}"}).request.task == ""
    for count in ("0", "", "00", "x", "-1"):
        assert not parsed({"x-stainless-retry-count": count}).request.is_retry


def test_a_header_that_cant_be_sent_back_is_refused() -> None:
    names = ["X-Turnfold-Session", "X-Turnfold-Task", "X-Turnfold-On-Disconnect", "Idempotency-Key"]
    names += ["X-OpenWebUI-User-Id"]
    values = ["a" * 257, "caf\xe9", "a\tb", "a\x7f"]
    for name, value in [*zip(names, cycle(values)), *(("X-Turnfold-Session", value) for value in values)]:
        assert problem({name: value})[:2] == (400, "invalid_header"), name


def test_a_clients_own_id_may_be_any_text_as_it_is_only_a_hint() -> None:
    hints = [
        parsed(metadata={"session_id": value}).request.hint for value in ("예산-2026", "예산-2027", "x\r\ny", "a" * 300)
    ]
    assert all(hint is not None and hint.value.isascii() and len(hint.value) <= 256 for hint in hints)
    assert len({*hints}) == len(hints)
    assert parsed(metadata={"session_id": " 예산-2026 "}).request.hint == hints[0]
    assert parsed({"X-Session-Id": "caf\xe9"}).request.hint is not None
    assert parsed(prompt_cache_key=["x"], metadata={"chat_id": 5}).request.hint is None


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
        result = parse_request(parse_object(body), headers, CLIENT)
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
        parse_request(parse_object(body), Headers({}), CLIENT)
    assert refused.value.problem.status == 400


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).filter(lambda text: text.strip()))
def test_text_of_any_script_is_read_as_it_was_sent(text: str) -> None:
    assert messages({"role": "assistant", "content": text})[0].text == text


RAN, NOTE = {"role": "system", "content": "Ran: 4711"}, {"role": "developer", "content": "Be brief."}
ANSWER = {"role": "assistant", "content": "I run it."}


@pytest.mark.parametrize(
    ("behind", "system", "roles"),
    [
        ([ANSWER, RAN], "", ["user", "assistant", "user"]),
        ([ANSWER, RAN, NOTE], "", ["user", "assistant", "user", "user"]),
        ([ANSWER, RAN, ANSWER, QUESTION], "", ["user", "assistant", "user", "assistant", "user"]),
        ([ANSWER, NOTE, QUESTION], "Be brief.", ["user", "assistant", "user"]),
        ([NOTE], "Be brief.", ["user"]),
    ],
)
def test_what_the_system_alone_says_to_an_answer_is_asked(
    behind: list[dict[str, str]], system: str, roles: list[str]
) -> None:
    request = parse_request({"messages": [QUESTION, *behind]}, Headers({}), CLIENT).request
    assert (request.options.system, [message.role for message in request.messages]) == (system, roles)


@pytest.mark.parametrize(
    ("agent", "name"), [("codex_exec/0.171.0 (Debian 12; x86_64)", "codex"), ("OpenAI/Python 3.57", "prompt_cache_key")]
)
def test_a_cache_key_is_the_id_of_a_chat_for_codex_alone(agent: str, name: str) -> None:
    body = {"messages": [QUESTION], "prompt_cache_key": "k-1"}
    assert parse_request(body, Headers({"user-agent": agent}), CLIENT).request.hint == Hint(name, "k-1")
