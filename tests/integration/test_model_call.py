from __future__ import annotations

import threading
import time

import pytest

from graph.error import TurnStoppedSignal
from graph.model.chunk import Usage
from graph.model.factory import open_models
from graph.model_error import (
    AccessDeniedError,
    AuthenticationError,
    BadResponseError,
    ContextLengthError,
    CutStreamError,
    DeadlineError,
    EmptyAnswerError,
    ModelError,
    ModelMissingError,
    ProviderError,
    QuotaError,
    RateLimitError,
    RefusedError,
    UnreachableError,
)
from tests.fake.model_caller import KEY, Caller, settings_of
from tests.fake.openai_reply import (
    CACHED_USAGE,
    Reply,
    ScriptedCall,
    chunk,
    close_early,
    failure,
    hang,
    raw,
    refusal,
    reset,
    slowed,
    text,
    tools,
)
from tests.fake.openai_server import FakeOpenAI


def test_text_arrives_piece_by_piece_and_the_usage_with_it(call: Caller) -> None:
    call.server.script(text("Hello there, ", "world", usage=CACHED_USAGE))
    answer = call()
    assert call.heard == ["Hello there, ", "world"]
    assert answer.message.content == "Hello there, world"
    assert answer.usage == Usage(input_tokens=100, output_tokens=20, cached_tokens=64)
    assert answer.message.response_metadata == {"model_name": "scripted-model", "finish_reason": "stop"}
    assert answer.message.usage_metadata is not None
    assert str(answer.message.id).startswith("ai-")


def test_the_request_streams_and_asks_for_usage(call: Caller) -> None:
    call.server.script(text("ok"))
    call()
    body = call.server.bodies()[0]
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert "temperature" not in body


def test_without_reported_usage_there_is_none(call: Caller) -> None:
    call.server.script(text("ok", usage=None))
    answer = call()
    assert answer.usage is None
    assert answer.message.usage_metadata is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (failure(401), AuthenticationError),
        (failure(403), AccessDeniedError),
        (failure(404), ModelMissingError),
        (failure(429), RateLimitError),
        (failure(429, code="insufficient_quota"), QuotaError),
        (failure(402), QuotaError),
        (failure(400, "maximum context length is 8192", code="context_length_exceeded"), ContextLengthError),
        (
            failure(400, "This model's maximum context length is 4096 tokens. However, you requested"),
            ContextLengthError,
        ),
        (failure(400, "the request exceeds the available context size (4096 tokens)"), ContextLengthError),
        (failure(400, "Trying to keep the first 9000 tokens when context the overflows"), ContextLengthError),
        (failure(500, "the input length exceeds the context length"), ContextLengthError),
        (failure(400, "filtered", code="content_filter"), RefusedError),
        (failure(400), BadResponseError),
        (failure(422), BadResponseError),
        (failure(500), ProviderError),
        (failure(503), ProviderError),
        (reset(), UnreachableError),
        (reset("half of"), CutStreamError),
        (close_early(), CutStreamError),
        (close_early("half of"), CutStreamError),
        (text("half of", finish_reason=None), CutStreamError),
        (raw(), CutStreamError),
        (tools(ScriptedCall("f", "{}", "c"), finish_reason="length"), CutStreamError),
        (raw("{not json"), BadResponseError),
        (raw("[]"), BadResponseError),
        (raw("null"), BadResponseError),
        (raw('{"choices": "x"}'), BadResponseError),
        (raw('{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":null}]}}]}'), BadResponseError),
        (raw(chunk(None)), BadResponseError),
        (text(""), EmptyAnswerError),
        (text(" \n"), EmptyAnswerError),
        (refusal("I can't help with that"), RefusedError),
        (text("", finish_reason="content_filter"), RefusedError),
        (raw('{"error": {"message": "overloaded", "code": 502}}'), ProviderError),
        (raw('{"error": {"message": "Rate limit reached", "type": "tokens"}}'), RateLimitError),
        (hang(is_silent=True), DeadlineError),
        (hang(), DeadlineError),
        (hang("half of"), DeadlineError),
        (slowed(text("a b c d e f g h"), 0.2), DeadlineError),
    ],
)
def test_each_failure_has_its_error(call: Caller, reply: Reply, expected: type[ModelError]) -> None:
    # A deadline may pass before the request is out.
    call.server.script(reply, may_stay=expected is DeadlineError)
    deadline_seconds = 0.5 if expected is DeadlineError else 10
    with pytest.raises(ModelError) as raised:
        call(deadline_seconds=deadline_seconds)
    assert type(raised.value) is expected


def test_a_closed_port_is_unreachable() -> None:
    with FakeOpenAI() as gone:
        settings = settings_of(gone)
    with open_models(settings) as models, pytest.raises(UnreachableError):
        Caller(gone, models)()


def test_no_error_shows_a_key(call: Caller) -> None:
    call.server.script(failure(401, f"Incorrect API key provided: {KEY}. Also sk-another_secret and Bearer abcdef."))
    with pytest.raises(AuthenticationError) as raised:
        call()
    for secret in (KEY, "another_secret", "abcdef"):
        assert secret not in str(raised.value)
    assert "Incorrect API key provided" in raised.value.detail
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "reply", [hang(is_silent=True), hang(), hang("half of"), failure(500, headers={"Retry-After": "30"})]
)
def test_stop_ends_the_call_at_once_and_closes_the_connection(call: Caller, reply: Reply) -> None:
    call.server.script(reply)
    pressed: list[float] = []

    def press() -> None:
        call.server.wait_until(lambda server: len(server.exchanges) == 1)
        time.sleep(0.2)
        pressed.append(time.monotonic())
        call.stop.set()

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(TurnStoppedSignal):
        call(attempts=5, deadline_seconds=60)
    ended = time.monotonic()
    presser.join()
    assert ended - pressed[0] < 20  # the deadline is 60, and the reply that asks to wait asks for 30
    call.server.wait_until(lambda server: server.open_count == 0)
    assert call.server.exchanges[0].is_closed_early is (reply.status == 200)


def test_a_stop_before_the_call_sends_nothing(call: Caller) -> None:
    call.stop.set()
    with pytest.raises(TurnStoppedSignal):
        call()
    assert call.server.bodies() == []


def test_a_passed_deadline_closes_the_connection_too(call: Caller) -> None:
    call.server.script(hang("half of"))
    with pytest.raises(DeadlineError):
        call(deadline_seconds=2, attempts=3)
    call.server.wait_until(lambda server: server.exchanges[0].is_closed_early)
    assert len(call.server.exchanges) == 1


def test_an_error_of_the_listener_ends_the_call(call: Caller) -> None:
    call.server.script(hang("half of"))

    def fail(_: str) -> None:
        msg = "the listener failed"
        raise LookupError(msg)

    with pytest.raises(LookupError):
        call.models.caller.call(
            call.models.chat("m"), call.input, stop=call.stop, deadline_seconds=10, attempts=3, on_text=fail
        )
    call.server.wait_until(lambda server: server.exchanges[0].is_closed_early)


@pytest.mark.parametrize("first", [failure(500), failure(429), reset(), text(""), close_early()])
def test_a_transient_failure_is_tried_again(call: Caller, first: Reply) -> None:
    call.server.script(first, text("fine"))
    assert call(attempts=2).message.content == "fine"
    assert len(call.server.exchanges) == 2


@pytest.mark.parametrize("first", [failure(401), failure(400), raw("{not json"), refusal("no")])
def test_a_lasting_failure_is_not(call: Caller, first: Reply) -> None:
    call.server.script(first)
    with pytest.raises(ModelError):
        call(attempts=5)
    assert len(call.server.exchanges) == 1


def test_attempts_are_bounded(call: Caller) -> None:
    call.server.script(*[failure(500, headers={"Retry-After": "0"})] * 3)
    with pytest.raises(ProviderError):
        call(attempts=3)
    assert len(call.server.exchanges) == 3


def test_retry_after_is_honoured(call: Caller) -> None:
    call.server.script(failure(429, headers={"Retry-After": "1"}), text("fine"))
    assert call(attempts=2).message.content == "fine"
    first, second = call.server.exchanges
    assert second.started_at - first.started_at >= 1


@pytest.mark.parametrize("asked", ["120", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_a_retry_after_beyond_the_deadline_fails_at_once(call: Caller, asked: str) -> None:
    call.server.script(failure(429, headers={"Retry-After": asked}))
    with pytest.raises(RateLimitError) as raised:
        call(attempts=3, deadline_seconds=60)
    assert raised.value.retry_after_seconds is not None
    assert raised.value.retry_after_seconds >= 100
    assert len(call.server.exchanges) == 1


def test_a_stream_cut_after_text_is_not_tried_again(call: Caller) -> None:
    call.server.script(close_early("half of"))
    with pytest.raises(CutStreamError):
        call(attempts=3)
    assert call.heard == ["half of"]
    assert len(call.server.exchanges) == 1


def test_text_of_a_failed_attempt_is_declared_void(call: Caller) -> None:
    lost = raw(chunk({"content": "lost"}), '{"error": {"message": "overloaded", "code": 503}}')
    call.server.script(lost, text("kept"))
    assert call(attempts=2).message.content == "kept"
    assert call.restarts == 1
    assert call.heard == ["kept"]


def test_what_must_not_restart_is_tried_again_only_before_its_first_words(call: Caller) -> None:
    lost = raw(chunk({"content": "lost"}), '{"error": {"message": "overloaded", "code": 503}}')
    call.server.script(failure(503), lost)
    with pytest.raises(ProviderError):
        call(attempts=5, may_restart=False)
    assert call.heard == ["lost"]
    assert call.restarts == 0
