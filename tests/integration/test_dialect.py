"""Servers of many kinds: what they refuse, how they stream and say why not, and how they tell their windows."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from api.problem import problem_of_failure
from graph.model.factory import open_models
from graph.value.error import ContextLengthError, ModelError, ThoughtLimitError
from graph.value.event import TurnFailed, TurnFinished
from tests.fake.body import content_of
from tests.fake.chat import question
from tests.fake.model_caller import KEY, Caller, settings_of
from tests.fake.open_chat import OpenChat
from tests.fake.openai_dialect import NO_TOOLS, pages_of, refuses, takes_no_tools
from tests.fake.openai_reply import Body, Reply, bare, chunk, failure, raw, text
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by, tool


@pytest.fixture
def call(server: FakeOpenAI) -> Iterator[Caller]:
    """A caller of models that remember nothing of another test."""
    with open_models(settings_of(server)) as models:
        yield Caller(server, models)


# Tools.


@pytest.mark.parametrize("kind", NO_TOOLS)
def test_model_without_tools_is_asked_once_more_without_them_and_then_never_with_them(
    open_chat: OpenChat, server: FakeOpenAI, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.respond_with(takes_no_tools(kind))
    chat = open_chat()
    for number in (1, 2):
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
    assert isinstance(chat.say("고마워")[-1], TurnFinished)  # small talk, where tools are sent with `tool_choice`
    sent = server.bodies("chat")
    assert ["tools" in body for body in sent] == [True, False, False, False]
    assert ["recall" in sent[number]["messages"][0]["content"] for number in range(4)] == [True, False, False, False]
    assert sum("takes no tools" in record.getMessage() for record in caplog.records) == 1
    (option,) = chat.service.sessions.model_options()
    assert not option.has_tools


def test_folded_turns_are_looked_up_for_a_model_without_tools(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.respond_with(takes_no_tools("ollama"))
    chat = open_chat()
    chat.ask(1, 1)
    chat.say("호텔 예약 번호는 K7QX2M이고 조식이 나옵니다.")
    chat.ask(3, 7)
    assert chat.covered[0] == (1, 2, 3)
    chat.say("호텔 예약 번호가 뭐였죠?")
    asked = content_of(server.bodies("chat")[-1]["messages"][-1])
    assert "예약 번호는 K7QX2M이고" in asked.partition("호텔 예약 번호가 뭐였죠?")[0]
    assert '<turn number="2" date="' in asked
    step = chat.turns[-1].steps[0]
    assert (step.name, step.turns, step.status) == ("recall", (2,), "done")
    inputs = chat.service.inputs.of_turn(chat.session_id, chat.turns[-1].number)
    (call,) = (call for call in inputs if call.kind == "answer")
    assert call.is_verified
    found = sum(block.tokens for block in call.blocks if block.kind == "context")
    assert 0 < found <= chat.service.folds.gauge(chat.session_id).window_tokens / 10
    # A question that no folded turn answers, and one about a turn that is sent anyway.
    for words in ("바다거북은 몇 년을 사나요?", "바다거북은 왜 오래 사나요?"):
        chat.say(words)
        assert "<recalled>" not in content_of(server.bodies("chat")[-1]["messages"][-1])
        assert chat.turns[-1].steps == ()


def test_small_talk_first_finds_it_out_as_well(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.respond_with(takes_no_tools("vllm"))
    chat = open_chat()
    assert isinstance(chat.say("안녕")[-1], TurnFinished)
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert ["tools" in body for body in server.bodies("chat")] == [True, False, False]


def test_other_refusals_are_not_taken_for_one_of_tools(open_chat: OpenChat, server: FakeOpenAI) -> None:
    broken = failure(500, "Jinja Exception: System role not supported")
    server.respond_with(lambda _: broken)
    chat = open_chat()
    failed = chat.say(question(1))[-1]
    assert getattr(failed, "code", "") == "rejected"
    assert "System role not supported" in getattr(failed, "detail", "")
    (option,) = chat.service.sessions.model_options()
    assert option.has_tools


def test_program_whose_own_tools_are_refused_is_told_the_reason(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.respond_with(takes_no_tools("ollama"))
    chat = open_chat()
    chat.ask(1, 1)
    failed = chat.say(question(2), options=asked_by(tools=(tool("look"),)))[-1]
    assert isinstance(failed, TurnFailed)
    problem = problem_of_failure(failed.code, failed.detail)
    assert (problem.status, problem.code) == (400, "tools_not_supported")
    assert "gemma3:4b does not support tools" in problem.message
    assert isinstance(chat.say(question(3), options=asked_by())[-1], TurnFinished)


def test_request_that_only_carries_tools_goes_without_them_too(call: Caller) -> None:
    call.server.respond_with(takes_no_tools("llama.cpp"))
    model = call.models.chat("scripted-model")
    for _ in range(2):
        call.models.tool_choice.ask("scripted-model", model, [tool("look")], lambda asked: call(model=asked))
    assert ["tools" in body for body in call.server.bodies()] == [True, False, False]


# Parameters.

WORDS: dict[str, Callable[[str], Reply]] = {
    "openai": lambda name: failure(400, f"Unsupported parameter: '{name}' is not supported with this model."),
    "fastapi": lambda name: Reply(
        422,
        error={"message": {"detail": [{"loc": ["body", name, "x"], "msg": "Extra inputs are not permitted"}]}},
    ),
    "strict": lambda name: failure(400, f"Unrecognized request argument supplied: {name}"),
    "value": lambda name: failure(400, f"Unsupported value: '{name}' does not support 0.2. Only the default (1)"),
}


THINKS = {"type": "enabled", "budget_tokens": 512}
# Names in the spellings of other dialects, and values of the settings that a model doesn't take.
SPELLINGS: list[tuple[str, object, str]] = [
    ("reasoning_effort", "low", "Model grok-4-latest does not support parameter reasoningEffort."),
    ("presence_penalty", 0.5, "Argument not supported on this model: presencePenalty"),
    ("frequency_penalty", 0.5, "Frequency penalty is not enabled for this model"),
    ("temperature", 0.2, "invalid temperature: only 1 is allowed for this model"),
    ("temperature", 0.2, "`temperature` may only be set to 1 when thinking is enabled"),
    ("top_p", 0.5, 'Invalid JSON payload received. Unknown name "topP": Cannot find field.'),
    ("top_k", 5, "Property 'topK' is unsupported"),
    ("top_p", 0.5, "`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
    ("enable_thinking", True, "parameter.enable_thinking must be set to false for non-streaming calls"),
    ("chat_template_kwargs", {"enable_thinking": False}, "Extra inputs are not permitted, field: 'enable_thinking'"),
    ("repetition_penalty", 1.1, "该模型不支持 repetition_penalty 参数"),
    ("thinking", {"type": "enabled"}, "Unrecognized request argument supplied: thinking"),
    ("store", True, "UnsupportedParamsError: store is not supported"),
    ("metadata", {"a": "b"}, "The 'metadata' parameter is only allowed when 'store' is enabled."),
    ("reasoning", {"effort": "low"}, "Unsupported parameter: 'reasoning.effort' is not supported with this model."),
    ("seed", 1, "seed parameter is not supported by this provider"),
    ("thinking", THINKS, "thinking.budget_tokens: Extra inputs are not permitted"),
    ("thinking", THINKS, "thinking.budget_tokens: Input should be greater than or equal to 1024"),
    ("thinking", THINKS, "thinking.budget_tokens: Input should be less than or equal to 32000 tokens"),
    ("thinking", THINKS, "thinking.budget_tokens: Field required"),
    (
        "thinking",
        THINKS,
        "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation",
    ),
    ("thinking", THINKS, "budget_tokens: 64000 > 32000, which is the maximum allowed number of thinking tokens"),
    ("thinking", THINKS, "The value of budgetTokens exceeds the maximum of 32000 tokens"),
    ("thinking", THINKS, "The thinking budget (52428) is invalid."),
    ("thinking", THINKS, "thinking: Input tag 'enabled' found using 'type' does not match any of the expected tags"),
    ("thinking", THINKS, "Expected `thinking` or `redacted_thinking`, but found `text`."),
    ("google", {"thinking_config": {"thinking_budget": 0}}, "The model does not support setting thinking_budget to 0."),
    (
        "google",
        {"thinking_config": {"thinking_budget": 9}},
        "The thinking budget 9 is invalid. Please choose 512 to 999.",
    ),
    ("reasoning", {"max_tokens": 500}, "reasoning.max_tokens must be at least 1024"),
    ("thinking_budget", 0, "The value of the thinking_budget parameter must be between 1 and 38912 tokens"),
]


@pytest.mark.parametrize(("name", "value", "words"), SPELLINGS)
def test_option_that_a_refusal_names_is_left_out_from_then_on(
    server: FakeOpenAI, name: str, value: object, words: str
) -> None:
    options = {"scripted-model": {name: value}}
    server.respond_with(refuses(name, failure(400, words)))
    with open_models(settings_of(server).model_copy(update={"model_options": options})) as models:
        call = Caller(server, models)
        for _ in range(2):
            assert call().message.text
        assert call(
            model=models.chat("scripted-model", thinking="high")
        ).message.text  # it is the model's, not the level's
    assert [name in body for body in server.bodies()] == [True, False, False, False]


def test_an_optional_part_goes_before_the_limit_that_it_is_compared_with(server: FakeOpenAI) -> None:
    options = {"scripted-model": {"max_tokens": 500, "thinking": THINKS}}
    refusal = failure(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    server.respond_with(refuses("thinking", refusal))
    with open_models(settings_of(server).model_copy(update={"model_options": options})) as models:
        assert Caller(server, models)().message.text
    limits = ({"max_tokens", "max_completion_tokens"} & body.keys() for body in server.bodies())
    assert [("thinking" in body, bool(limit)) for body, limit in zip(server.bodies(), limits, strict=True)] == [
        (True, True),
        (False, True),
    ]


def test_option_stays_if_the_request_fails_without_it_too(server: FakeOpenAI) -> None:
    options = {"scripted-model": {"top_k": 5}}
    server.script(failure(400, "top_k is odd"), failure(401, "no key"))
    with open_models(settings_of(server).model_copy(update={"model_options": options})) as models:
        call = Caller(server, models)
        with pytest.raises(ModelError):
            call()
        assert call().message.text
    assert ["top_k" in body for body in server.bodies()] == [True, False, True]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("name", ["stream_options", "parallel_tool_calls", "temperature", "tool_choice"])
def test_parameter_that_is_refused_is_left_out_from_then_on(
    call: Caller, caplog: pytest.LogCaptureFixture, words: str, name: str
) -> None:
    call.server.respond_with(refuses(name, WORDS[words](name)))
    given: dict[str, Any] = {} if name == "stream_options" else {name: 0.2 if name == "temperature" else "auto"}
    model = call.models.chat("scripted-model").bind(extra_body=given)
    for _ in range(2):
        assert call(model=model).message.text
    assert [name in body for body in call.server.bodies()] == [True, False, False]
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert name in line
    assert KEY not in line


def test_limit_goes_out_under_the_name_that_the_server_knows(call: Caller) -> None:
    model = call.models.chat("scripted-model").bind(max_tokens=50)
    old = "Unsupported parameter: 'max_completion_tokens'. Use 'max_tokens' instead."
    call.server.respond_with(refuses("max_completion_tokens", failure(400, old)))
    for _ in range(2):
        call(model=model)
    assert [body.get("max_tokens") for body in call.server.bodies()] == [None, 50, 50]
    call.server.respond_with(refuses("max_tokens", failure(400, "Extra inputs are not permitted: max_tokens")))
    call(model=model)
    assert not {"max_tokens", "max_completion_tokens"} & set(call.server.bodies()[-1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": 9}, "temperature must be between 0 and 2"),
        ({"tool_choice": "required"}, "tool_choice is not supported"),
        ({"response_format": {"type": "json_object"}}, "response_format is not supported"),
    ],
)
def test_what_a_program_must_know_is_not_left_out(call: Caller, given: Body, message: str) -> None:
    call.server.script(failure(400, message))
    with pytest.raises(ModelError) as raised:
        call(model=call.models.chat("scripted-model").bind(extra_body=given))
    assert message in raised.value.detail
    assert len(call.server.bodies()) == 1


# Streams.

ONE, END = f"{chunk({'content': 'Hel'})}", chunk({}, finish_reason="stop")
TWO = chunk({"content": "lo"})
WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}
STREAMS = {
    "ids with pings": bare(
        f"id: 1\ndata: {ONE}\n\n", ": ping\n\n", f"id: 2\ndata: {TWO}\n\n", ":\n\n", f"data: {END}\n\n"
    ),
    "retry first": bare("retry: 3000\n\n", f"data: {ONE}\n\ndata: {TWO}\n\ndata: {END}\n\ndata: [DONE]\n\n"),
    "comments as data": raw(": keepalive", ONE, ": keepalive", TWO, END),
    "empty data": raw("", ONE, "", TWO, END),
    "no space": bare(*[f"data:{event}\n\n" for event in (ONE, TWO, END, "[DONE]")]),
    "carriage returns": bare(*[f"data: {event}\r\n\r\n" for event in (ONE, TWO, END, "[DONE]")]),
    "byte order mark": bare("\ufeff", *[f"data: {event}\n\n" for event in (ONE, TWO, END, "[DONE]")]),
    "named events": bare(
        "event: ping\ndata: {}\n\n", *[f"event: chunk\ndata: {event}\n\n" for event in (ONE, TWO, END)]
    ),
    "no end mark": raw(ONE, TWO, END, ending="close"),
    "whole JSON": bare(json.dumps(WHOLE)),
    "whole JSON in parts": bare(*json.dumps(WHOLE, indent=1).splitlines(keepends=True)),
    "whole JSON as an event": raw(json.dumps(WHOLE)),
    "choices null": raw('{"choices": null, "usage": null}', ONE, TWO, END),
    "one line an event": bare(*[f"data: {event}\n" for event in (ONE, TWO, END, "[DONE]")]),
    "lines of JSON": bare(*[f"{event}\n" for event in (ONE, TWO, END)]),
    "only returns": bare(*[f"data: {event}\r\r" for event in (ONE, TWO, END, "[DONE]")]),
    "an event in two lines": bare(*[f"data: {event[:6]}\ndata: {event[6:]}\n\n" for event in (ONE, TWO, END)]),
    "other letters": bare(*[f"Data: {event}\n\n" for event in (ONE, TWO, END)]),
    "text": raw(json.dumps({"choices": [{"index": 0, "text": "Hello", "finish_reason": "stop"}]})),
    "delta null": raw(ONE, TWO, json.dumps({"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]})),
    "no delta": raw(ONE, TWO, json.dumps({"choices": [{"index": 0, "finish_reason": "stop"}]})),
    "null as a word": raw(ONE, chunk({"content": "lo"}, finish_reason="null"), END),
    "choice null": raw('{"choices": [null]}', ONE, TWO, END),
    "call null": raw(chunk({"content": "Hello", "tool_calls": [None]}), END),
    "wrapped": raw(*[json.dumps({"code": 0, "data": json.loads(event)}) for event in (ONE, TWO, END)]),
    "a success told": raw('{"code": 0, "msg": "success"}', ONE, TWO, END, '{"base_resp": {"status_msg": "success"}}'),
    **{
        f"ping {ping}": raw(ping, ONE, ping, TWO, END)
        for ping in (
            "ping",
            "keep-alive",
            "[PING]",
            '"ping"',
            "null",
            "1",
            "[]",
            "{}",
            '{"type": "ping"}',
            "OPENROUTER PROCESSING",
        )
    },
    **{
        f"usage {usage}": raw(ONE, TWO, END, json.dumps({"choices": [], "usage": usage}))
        for usage in (
            {"prompt_tokens": 1.5, "completion_tokens": 2.0},
            {"prompt_tokens": "abc", "completion_tokens": [1]},
            {"prompt_tokens": 5, "prompt_tokens_details": "x", "completion_tokens_details": {"reasoning_tokens": "2"}},
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1.5}},
            {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
            "abc",
            [1],
            5,
        )
    },
}


@pytest.mark.parametrize("reply", STREAMS.values(), ids=STREAMS)
def test_streams_are_read_as_they_come(call: Caller, reply: Reply) -> None:
    call.server.script(reply)
    assert call().message.content == "Hello"


def call_chunk(*calls: Body) -> str:
    return chunk({"tool_calls": list(calls)})


def of(name: str, arguments: object, **more: object) -> Body:
    return {**more, "type": "function", "function": {"name": name, "arguments": arguments}}


CALLS: dict[str, tuple[Sequence[str], list[dict[str, Any]]]] = {
    "no index": ([call_chunk(of("f", '{"a": 1}', id="x"))], [{"a": 1}]),
    "no index, two": ([call_chunk(of("f", '{"a": 1}', id="x"), of("g", '{"b": 2}', id="y"))], [{"a": 1}, {"b": 2}]),
    "no index, in fragments": (
        [call_chunk(of("f", '{"a"', id="x")), call_chunk({"function": {"arguments": ": 1}"}})],
        [{"a": 1}],
    ),
    "an object": ([call_chunk(of("f", {"a": "한글"}, id="x", index=0))], [{"a": "한글"}]),
    "a whole message": (
        [json.dumps({"choices": [{"message": {"content": None, "tool_calls": [of("f", "{}"), of("g", {"b": 2})]}}]})],
        [{}, {"b": 2}],
    ),
}


@pytest.mark.parametrize(("events", "arguments"), CALLS.values(), ids=CALLS)
def test_calls_are_read_as_they_come(call: Caller, events: Sequence[str], arguments: list[dict[str, Any]]) -> None:
    call.server.script(raw(*events, chunk({}, finish_reason="tool_calls")))
    made = call().message.tool_calls
    assert [each["args"] for each in made] == arguments
    assert [each["name"] for each in made] == ["f", "g"][: len(arguments)]
    assert all(each["id"] for each in made)


FINISHED = {
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "model_context_window_exceeded": "length",
    "sensitive": "refused",
    "SAFETY": "refused",
    "content_filtered": "refused",
    "guardrail_intervened": "refused",
    "network_error": "cut_stream",
    "insufficient_system_resource": "cut_stream",
    "error": "cut_stream",
    "end_turn": "end_turn",
    "eos_token": "eos_token",
    "COMPLETE": "COMPLETE",
}


@pytest.mark.parametrize(("reason", "ending"), FINISHED.items())
def test_answer_ends_as_its_server_says_in_whatever_word(call: Caller, reason: str, ending: str) -> None:
    call.server.script(raw(ONE, TWO, chunk({}, finish_reason=reason)))
    try:
        ended = call().message.response_metadata["finish_reason"]
    except ModelError as error:
        ended = error.code
    assert ended == ending


# Reasons.

PAGE = "<!DOCTYPE html><html><head><title>Sign in &amp; go</title></head><body><h1>Hi</h1></body></html>"
REASONS: dict[str, tuple[Reply, str, str]] = {
    "choices null": (
        raw('{"choices":null,"error_type":"BadRequestError","error_message":"The image is not a picture."}'),
        "rejected",
        "The image is not a picture.",
    ),
    "an error as a whole": (
        bare('{"error":{"message":"No allowed providers are available.","code":404}}'),
        "model_missing",
        "No allowed providers are available.",
    ),
    "a page": (bare(PAGE), "bad_response", "Sign in & go"),
    "a page that refuses": (Reply(403, error=PAGE), "access_denied", "Sign in & go"),
    "a list": (
        Reply(400, error=[{"error": {"code": 400, "message": "Invalid JSON payload."}}]),
        "rejected",
        "Invalid JSON payload.",
    ),
    "a list in the stream": (
        raw('[{"error":{"code":503,"message":"Overloaded now."}}]'),
        "provider",
        "Overloaded now.",
    ),
    "a text": (Reply(400, error={"error": "No model loaded."}), "rejected", "No model loaded."),
    "a text in the stream": (
        raw('{"error":"model runner has unexpectedly stopped"}'),
        "provider",
        "model runner has unexpectedly stopped",
    ),
    "detail": (Reply(422, error={"detail": "Bad body."}), "rejected", "Bad body."),
    "a limit told with 200": (raw('{"code":1302,"msg":"您的账户已达到速率限制"}'), "rate_limit", "已达到速率限制"),
    "a balance told with 200": (
        bare('{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}'),
        "quota",
        "insufficient balance",
    ),
    "choices null with a response": (
        raw('{"choices":null,"base_resp":{"status_code":1027,"status_msg":"output new_sensitive"}}'),
        "provider",
        "output new_sensitive",
    ),
    "error_msg": (
        bare('{"error_code":336003,"error_msg":"the first message must be the user\'s"}'),
        "provider",
        "the first",
    ),
    "capitals": (
        bare('{"Response":{"Error":{"Code":"X","Message":"No such region."}}}'),
        "provider",
        "No such region.",
    ),
    "a header": (
        bare('{"header":{"code":10013,"message":"Input is not allowed."}}'),
        "provider",
        "Input is not allowed.",
    ),
    "errors": (
        Reply(400, error={"success": False, "errors": [{"code": 7, "message": "No route."}]}),
        "rejected",
        "No route.",
    ),
    "parameter": (bare('{"code":"InvalidParameter","message":"No such voice."}'), "rejected", "No such voice."),
    "words alone": (bare("upstream is away"), "bad_response", "upstream is away"),
    "an event of its own": (bare("event: error\ndata: out of memory\n\n"), "provider", "out of memory"),
    "in the middle": (raw(ONE, '{"code":1305,"msg":"busy now"}', ending="close"), "provider", "busy now"),
    "a router": (
        Reply(502, error={"error": {"message": "Provider returned error", "metadata": {"raw": '{"no":"capacity"}'}}}),
        "provider",
        'Provider returned error: {"no":"capacity"}',
    ),
}


@pytest.mark.parametrize(("reply", "code", "reason"), REASONS.values(), ids=REASONS)
def test_reason_of_a_refusal_reaches_the_user(call: Caller, reply: Reply, code: str, reason: str) -> None:
    call.server.script(reply)
    with pytest.raises(ModelError) as raised:
        call()
    assert raised.value.code == code
    assert reason in raised.value.detail
    assert "<" not in raised.value.detail


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("You exceeded your current quota. Please retry in 41.7s.", 41.7),
        ("Rate limit reached. Please try again in 250ms.", 0.25),
        ("Try again in 2 minutes", 120),
        ("too many requests", None),
    ],
)
def test_wait_that_is_asked_for_in_words_is_heard(call: Caller, words: str, seconds: float | None) -> None:
    call.server.script(Reply(429, error=[{"error": {"code": 429, "message": words}}]))
    with pytest.raises(ModelError) as raised:
        call()
    assert raised.value.retry_after_seconds == seconds


def test_wait_in_milliseconds_is_heard_first(call: Caller) -> None:
    call.server.script(
        failure(429, headers={"retry-after-ms": "250", "Retry-After": "1"}),
        failure(429, headers={"retry-after-ms": "x", "Retry-After": "1"}),
    )
    for seconds in (0.25, 1):
        with pytest.raises(ModelError) as raised:
            call()
        assert raised.value.retry_after_seconds == seconds


@pytest.mark.parametrize(
    "events",
    [
        (chunk({"reasoning_content": "hm"}), chunk({}, finish_reason="length")),
        (chunk({"reasoning_content": "hm"}), chunk({}, finish_reason="stop")),
        (chunk({"content": "<think>The port"}), chunk({}, finish_reason="stop")),
        (chunk({"content": "<think>The port</think>"}), chunk({}, finish_reason="stop")),
    ],
)
def test_thoughts_alone_are_asked_for_once(call: Caller, events: Sequence[str]) -> None:
    call.server.script(raw(*events))
    with pytest.raises(ThoughtLimitError):
        call(attempts=3)
    assert len(call.server.exchanges) == 1


# Windows.

OVERFLOWS = [
    (400, "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", 131_040),
    (400, "Your request exceeded model token limit: 8192", 8_192),
    (400, "prompt too long; exceeded max context length by 512 tokens", None),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072),
    (400, "request (831 tokens) exceeds the available context size (512 tokens), try increasing it", 512),
    (400, "This model's maximum context length is 4096 tokens. However, you requested 5,000 tokens", 4_096),
    (413, "prompt is too long: 210000 tokens > 200000 maximum", 200_000),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
    (400, "Input is too long for requested model.", None),
    (400, "`inputs` must have less than 4096 tokens. Given: 5000", 4_096),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081", 4_081),
    (500, "The number of tokens to keep from the initial prompt is greater than the context length", None),
    (400, "'max_tokens' is too large: 5000. This model's maximum context length is 4096 tokens", 4_096),
    (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", 200_000),
    (413, "Request too large for model `m`: Limit 6000, Requested 7000, please reduce your message size", 6_000),
    (413, "Request too large on tokens per minute: Limit 6000, Requested 7000 (rate_limit_exceeded)", 6_000),
    (400, "Range of input length should be [1, 30720]", 30_720),
    (400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", 129_024),
    (400, "Prompt has 256468 tokens, but the configured context size is 256000 tokens", 256_000),
    (400, "context_overflow", None),
    (400, "ContextLengthExceeded", None),
    (400, "model_context_window_exceeded", None),
    (400, "Prompt 超长", None),
    (400, "输入内容过长，请缩短", None),
    (400, "token数量超过上限。对话历史+问题的字数太多，需要精简输入", None),
    (400, "입력이 모델의 최대 길이를 초과했습니다", None),
    (413, "", None),
    (413, "Request Entity Too Large", None),
    (413, "Request exceeds the maximum size", None),
    (400, "Your input exceeds the context window of this model.", None),
    (400, "Requested token count exceeds the model's maximum context length of 131072 tokens.", 131_072),
    (400, "Input length (265330) exceeds model's maximum context length (262144).", 262_144),
    (400, "Please reduce the length of the messages or completion.", None),
    (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4_096),
    (400, "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens", 8_193),
    (400, "Trying to keep the first 6011 tokens when context the overflows. Context length of only 4096 tokens", 4_096),
    (400, "prompt token count of 9000 exceeds the limit of 8192", 8_192),
    (400, "invalid params, context window exceeds limit (2013)", None),
    (400, "Prompt contains 65673 tokens, too large for model with 32768 maximum context length", 32_768),
    (400, "Prompt exceeds max length", None),
    (400, "tokens in request more than max tokens allowed", None),
    (400, "total tokens exceeds the model's max of 4096", 4_096),
    (
        400,
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
        272_000,
    ),
    (413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", 8_000),
    (400, "The prompt (total length 40000) is too long to fit into the model (context length 32768).", 32_768),
    (400, "The estimated number of input tokens (5000) exceeded this model context window limit (4096).", 4_096),
    (400, "Input has a total length of 5000 tokens which exceeds max sequence length (4096)", 4_096),
    (400, "Prompt length 5000 is greater than max_seq_len 4096", 4_096),
    (400, "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model", 4_096),
    (400, "the max input characters is 20000", 20_000),
    (400, "internal error happened, status code ResponseType.INPUT_LENGTH_ERROR", None),
    (400, "ValidationException: Input is too long for requested model.", None),
    (400, "entrée trop longue: 5000 tokens > 4096", 4_096),
    (400, "コンテキスト長を超えています", None),
    (400, "messages 总长度超限", None),
    (400, "The request exceeds the model's context", None),
]
LONG = "예산은 부서마다 다르고, 담당자는 매주 금요일에 숫자를 다시 확인하기로 했습니다. "
OTHERS = [
    (400, "max_tokens is too large: 99999. This model supports at most 4096 completion tokens"),
    (400, "Invalid 'messages[0].name': string too long. Expected a string with maximum length 64"),
    (400, "Invalid 'tools': array too long. Expected an array with maximum length 128"),
    (400, "temperature must be less than or equal to 2"),
    (400, "The image exceeds the maximum size of 5 MB; the input was rejected"),
    (429, "Rate limit reached for tokens per minute: Limit 6000. The request is too long"),
    (413, "The image is too large"),
    (400, "Throttling error: Too many tokens, please wait before trying again."),
    (400, "Range of max_tokens should be [1, 8192]"),
    (400, "您的请求频率超过限制"),
    (400, 'Unknown name "maxCompletionTokens"'),
    (400, "batch size is invalid, it should not be larger than 10.: input.contents"),
]


@pytest.mark.parametrize(("status", "words", "window"), OVERFLOWS)
def test_input_that_is_too_long_is_known_by_a_rule_and_its_window_learned(
    call: Caller, status: int, words: str, window: int | None
) -> None:
    call.server.script(failure(status, words))
    with pytest.raises(ContextLengthError):
        call()
    assert call.models.reported_window_tokens("scripted-model") == window


def test_numbers_of_an_error_count_more_than_its_words(call: Caller) -> None:
    error = {"code": 400, "message": "exceeds the context size", "n_prompt_tokens": 831, "n_ctx": 4096}
    call.server.script(Reply(400, error={"error": error}))
    with pytest.raises(ContextLengthError):
        call()
    assert call.models.window_tokens("scripted-model") == 4_096


def test_chat_goes_on_in_a_window_that_only_an_error_told(open_chat: OpenChat, server: FakeOpenAI) -> None:
    def answer(body: Body) -> Reply:
        chars = sum(len(str(message["content"])) for message in body["messages"])
        return failure(400, "Your request exceeded model token limit: 4096") if chars > 8_000 else answer_body(body)

    server.respond_with(answer)
    chat = open_chat(model_window_tokens=None, chat_model="unheard-of")
    for number in range(1, 8):
        assert isinstance(chat.say(question(number) + " " + LONG * 60)[-1], TurnFinished)
    assert chat.service.folds.gauge(chat.session_id).window_tokens == 4_096


UNHEARD = [
    failure(400, "Der Text ist zu groß für dieses Modell"),
    failure(422, "E1301"),
    Reply(400, error=""),
    failure(413, ""),
]


@pytest.mark.parametrize("refusal", UNHEARD)
def test_request_that_is_answered_once_it_is_shorter_was_too_long(
    open_chat: OpenChat, server: FakeOpenAI, refusal: Reply
) -> None:
    refused = []

    def answer(body: Body) -> Reply:
        chars = sum(len(str(message["content"])) for message in body["messages"])
        refused.append(chars > 22_000)
        return refusal if refused[-1] else answer_body(body)

    server.respond_with(answer)
    chat = open_chat()
    for number in range(1, 9):
        assert isinstance(chat.say(question(number) + " " + LONG * 160)[-1], TurnFinished)
    assert 0 < sum(refused) <= 2
    assert chat.service.folds.gauge(chat.session_id).window_tokens < 40_000  # learned


def test_refusal_of_another_kind_is_no_reason_to_fold_again_and_again(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    for number in range(1, 4):
        chat.say(question(number) + " " + LONG * 30)
    server.respond_with(lambda _: failure(400, "This account is closed"))
    for number in (4, 5, 6):
        failed = chat.say(question(number))[-1]
        assert isinstance(failed, TurnFailed)
        assert (failed.code, "This account is closed" in failed.detail) == ("rejected", True)
    assert len(server.bodies("chat")) <= 3 + 3 + 1
    assert chat.service.folds.gauge(chat.session_id).window_tokens == 100_000


@pytest.mark.parametrize(("status", "words"), OTHERS)
def test_other_limits_are_none_of_the_input(call: Caller, status: int, words: str) -> None:
    call.server.script(failure(status, words))
    with pytest.raises(ModelError) as raised:
        call()
    assert raised.value.code != "context_length"


def measured(server: FakeOpenAI, model: str = "scripted-model") -> int | None:
    """The window of a model once the server was asked for it."""
    with open_models(settings_of(server)) as models:
        models.options()
        ends_at = time.monotonic() + 5
        while (told := models.reported_window_tokens(model)) is None and time.monotonic() < ends_at:
            time.sleep(0.02)
        return told


@pytest.mark.parametrize("kind", ["llama.cpp", "lm studio", "ollama", "ollama, not loaded"])
def test_window_in_force_is_read_from_the_pages_of_each_kind(server: FakeOpenAI, kind: str) -> None:
    server.pages = dict(pages_of(kind, 12_288))
    assert measured(server) == 12_288


@pytest.mark.parametrize(
    "entry",
    [
        {"meta": {"n_ctx": 4096, "n_ctx_train": 8192}},
        {"max_model_len": 4096},
        {"context_length": 131_072, "top_provider": {"context_length": 4096}},
    ],
)
def test_window_in_force_is_read_from_the_list_of_each_kind(server: FakeOpenAI, entry: Body) -> None:
    server.models = [{"id": "scripted-model", **entry}]
    assert measured(server) == 4_096


def test_models_that_are_listed_without_tools_are_never_offered_them(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.pages = dict(pages_of("ollama", 8_192))
    chat = open_chat(model_window_tokens=None)
    server.wait_until(lambda _: chat.service.sessions.model_options()[0].has_tools is False)
    chat.ask(1, 1)
    assert ["tools" in body for body in server.bodies("chat")] == [False]


def test_local_servers_get_the_limit_and_are_asked_for_progress_by_their_names(server: FakeOpenAI) -> None:
    server.pages = dict(pages_of("llama.cpp", 4_096))
    with open_models(settings_of(server)) as models:
        models.options()
        server.wait_until(lambda _: models.reported_window_tokens("scripted-model") == 4_096)
        call = Caller(server, models)
        server.script(text("fine"))
        call(model=models.chat("scripted-model").bind(max_tokens=50))
    (body,) = server.bodies()
    assert (body["max_tokens"], body["return_progress"]) == (50, True)


def test_silent_server_is_not_dead_as_long_as_its_slots_go_on(server: FakeOpenAI) -> None:
    read: list[int] = []

    def slots(_: object) -> object:
        read.append(len(read))
        return [{"id": 0, "is_processing": True, "n_prompt_tokens_processed": min(3, len(read))}]

    server.pages = {"/slots": slots}
    settings = settings_of(server).model_copy(update={"model_silence_seconds": 0.3})
    with open_models(settings) as models:
        call = Caller(server, models)
        server.script(Reply(ending="hang", is_silent=True))
        with pytest.raises(ModelError) as raised:
            call(deadline_seconds=None)
    assert raised.value.code == "silence"
    assert len(read) == 4  # three answers that differ, and one like the last


def test_sign_of_life_counts_more_than_slots_that_tell_nothing(server: FakeOpenAI) -> None:
    def slots(_: object) -> object:
        time.sleep(0.3)
        return []

    server.pages = {"/slots": slots}
    settings = settings_of(server).model_copy(update={"model_silence_seconds": 0.5})
    with open_models(settings) as models:
        server.script(bare(": ping\n\n", f"data: {ONE}\n\ndata: {TWO}\n\ndata: {END}\n\n", pause_seconds=0.65))
        assert Caller(server, models)(deadline_seconds=None).message.content == "Hello"
