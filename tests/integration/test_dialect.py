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


def test_thoughts_alone_at_the_length_limit_are_asked_for_once(call: Caller) -> None:
    call.server.script(raw(chunk({"reasoning_content": "hm"}), chunk({}, finish_reason="length")))
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
]
LONG = "예산은 부서마다 다르고, 담당자는 매주 금요일에 숫자를 다시 확인하기로 했습니다. "
OTHERS = [
    (400, "max_tokens is too large: 99999. This model supports at most 4096 completion tokens"),
    (400, "Invalid 'messages[0].name': string too long. Expected a string with maximum length 64"),
    (400, "Invalid 'tools': array too long. Expected an array with maximum length 128"),
    (400, "temperature must be less than or equal to 2"),
    (400, "The image exceeds the maximum size of 5 MB; the input was rejected"),
    (429, "Rate limit reached for tokens per minute: Limit 6000. The request is too long"),
    (413, "Request Entity Too Large"),
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
