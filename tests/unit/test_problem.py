from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, get_args

import pytest
from starlette.exceptions import HTTPException

from api.problem import BY_CODE, ProblemError, message_too_long, problem_of, problem_of_failure, refused
from graph.value.error import (
    AttachmentError,
    AuthenticationError,
    BadResponseError,
    BusyError,
    ContextLengthError,
    DiskFullError,
    InputError,
    InputReason,
    NotFoundError,
    RateLimitError,
    RejectedError,
    ServerBusyError,
    TurnfoldError,
    TurnRateError,
    UnreachableError,
    UserBusyError,
)

_ANYWHERE: Final[tuple[InputReason, ...]] = (
    "empty", "too_long", "over_window", "not_last", "no_reset", "nothing_to_compact",
)  # fmt: skip


def codes(parent: type[TurnfoldError] = TurnfoldError) -> Iterator[str]:
    yield parent.code
    for child in parent.__subclasses__():
        yield from codes(child)


def test_every_error_has_its_answer() -> None:
    assert set(codes()) | {"interrupted"} == set(BY_CODE)


def test_every_answer_has_openais_shape() -> None:
    for code, problem in BY_CODE.items():
        response = problem.response()
        error = json.loads(bytes(response.body))["error"]
        assert set(error) == {"message", "type", "param", "code"}, code
        assert all(isinstance(error[name], str) and error[name] for name in ("message", "type", "code")), code
        assert 400 <= response.status_code < 600
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-request-id"].startswith("req_")


def test_an_error_has_its_status_and_code() -> None:
    errors: list[tuple[TurnfoldError | HTTPException | ProblemError, int, str]] = [
        (BusyError(), 409, "session_busy"),
        (ServerBusyError("≤ 16"), 429, "server_busy"),
        (UserBusyError("8/16"), 429, "user_busy"),
        (NotFoundError(), 404, "session_not_found"),
        (ContextLengthError(), 400, "context_length_exceeded"),
        (AttachmentError("kind", "a.zip"), 400, "invalid_request"),
        (InputError("over_window"), 400, "context_length_exceeded"),
        (InputError("too_long", "12 > 10"), 400, "string_above_max_length"),
        (UnreachableError("http://10.0.0.7/v1"), 503, "upstream_unavailable"),
        (AuthenticationError(), 502, "upstream_error"),
        (BadResponseError(), 502, "upstream_error"),
        (RejectedError("HTTP 400: top_p must be below 1"), 400, "invalid_request"),
        (HTTPException(404), 404, "unknown_url"),
        (HTTPException(405, headers={"Allow": "GET"}), 405, "method_not_allowed"),
        (refused("bad", "It is bad.", "messages"), 400, "bad"),
    ]
    for error, status, code in errors:
        problem = problem_of(error)
        assert (problem.status, problem.code) == (status, code)
        assert "10.0.0.7" not in problem.message


def test_a_busy_session_is_not_asked_again_by_a_library_itself() -> None:
    headers = problem_of(BusyError()).response().headers
    assert headers["x-should-retry"] == "false"
    assert 0 < int(headers["retry-after"]) <= 60


def test_a_limit_says_when_to_try_again_and_a_wrong_method_names_the_right_ones() -> None:
    limits: list[tuple[TurnfoldError, str]] = [
        (TurnRateError(17), "17"),
        (UserBusyError("8/16"), "5"),
        (RateLimitError(retry_after_seconds=120.0), "60"),
        (RateLimitError(retry_after_seconds=3.4), "4"),
    ]
    for error, seconds in limits:
        response = problem_of(error).response()
        assert (response.status_code, response.headers["retry-after"]) == (429, seconds)
    assert problem_of(HTTPException(405, headers={"Allow": "POST"})).response().headers["allow"] == "POST"


def test_what_is_wrong_with_the_servers_files_stays_in_its_log() -> None:
    assert "/var/secret" not in problem_of(DiskFullError("/var/secret")).message
    assert "/var/secret" not in problem_of_failure("unheard_of", "/var/secret").message
    assert "small-model" in problem_of_failure("model_missing", "small-model").message


@pytest.mark.parametrize("error", [InputError("over_window", "≈9000 > 8192"), ContextLengthError("≈9000 ≥ 8192")])
def test_a_request_that_is_too_long_is_refused_in_the_words_that_libraries_know(error: TurnfoldError) -> None:
    problem = problem_of(error)
    begin = "This model's maximum context length is 8192 tokens. However, this request has about 9000 tokens."
    assert (problem.code, problem.message.startswith(begin)) == ("context_length_exceeded", True)
    for unknown in (InputError("over_window"), ContextLengthError(), ContextLengthError("HTTP 400: too long")):
        assert problem_of(unknown).message.startswith("This model's maximum context length is exceeded")
    assert "(HTTP 400: too long)" in problem_of(ContextLengthError("HTTP 400: too long")).message


@pytest.mark.parametrize(
    ("lengths", "named"),
    [
        ([], "message"),
        (
            [("messages.0.content", 300_000), ("messages.1.content", 201_000), ("messages.3.content", 5)],
            "messages.1.content",
        ),
        ([("messages.0.content", 120_000), ("messages.1.content", 80_998)], "messages.1.content"),
    ],
)
def test_a_message_that_is_too_long_is_named_with_the_limit_in_the_words_that_libraries_know(
    lengths: list[tuple[str, int]], named: str
) -> None:
    error = InputError("message_too_long", "201000 > 200000")
    problem = message_too_long(error.detail, lengths) if lengths else problem_of(error)
    # LiteLLM goes by these words, unless the code is `string_above_max_length`.
    assert "string too long. Expected a string with maximum length 200000" in problem.message
    assert (problem.status, problem.code, problem.param) == (400, "context_length_exceeded", named)
    assert problem.message.startswith(f"Invalid '{named}'")
    assert all(each in problem.message for each in ("201000", "MESSAGE_CHARS"))


def test_every_reason_of_refused_input_is_a_sentence_and_told_of_the_field_that_it_stands_in() -> None:
    for reason in get_args(InputReason):
        problem = problem_of(InputError(reason))
        assert problem.status == 400
        assert "_" not in problem.message.replace("MESSAGE_CHARS", "")
    fields: dict[InputReason, str | None] = {
        "unknown_call": "messages",
        "bad_strategy": "strategy",
        "bad_rate": "compression_rate",
        **dict.fromkeys(_ANYWHERE),
    }
    assert {reason: problem_of(InputError(reason)).param for reason in fields} == fields


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/v1/embeddings", "There are no embeddings here"),
        ("/v1/embeddings/", "There are no embeddings here"),
        ("/v1/completions", "There are no text completions here: POST /v1/chat/completions"),
        ("/v1/conversations", "There are no conversations here"),
        ("/v1/conversations/conv_1/items", "There are no conversations here"),
        ("/v1/responses/compact", "Responses aren't compacted here"),
        ("/v1/responses/input_tokens", "Input tokens aren't counted here"),
        ("/v1/chat/completions/chatcmpl-1/messages", "There is nothing at this address below /v1/chat."),
        ("/v1/responses/resp_1/items", "There is nothing at this address below /v1/responses."),
        ("/v1/summarize/x", "There is nothing at this address below /v1/summarize."),
        ("/v1/messages", "There is no /v1/messages here"),
        *(
            (f"/v1/{name}", f"There is no /v1/{name} here")
            for name in ("files", "moderations", "images", "vector_stores")
        ),
        ("/v1/audio/transcriptions", "There is no /v1/audio here"),
        ("/v1", "This is the base URL"),
        ("/v1/", "This is the base URL"),
        ("/v1/a\nb", "There is nothing at this address."),
        ("/v1/<b>Secret", "There is nothing at this address."),
        ("/sessions/a/b", "There is nothing at this address."),
    ],
)
def test_an_unknown_address_says_what_is_not_there(path: str, named: str) -> None:
    problem = problem_of(HTTPException(404), path)
    assert (problem.status, problem.code, problem.message.startswith(named)) == (404, "unknown_url", True)
    assert "base URL ends in" not in problem.message
    assert "Secret" not in problem.message


@pytest.mark.parametrize(
    "path",
    [
        "/models",
        "/chat/completions",
        "/v1/v1/models",
        "/v1/chat/completions/chat/completions",
        "/v1/chat/completions/models",
        "/v1/responses/responses",
    ],
)
def test_a_wrong_base_url_is_told_where_it_ends(path: str) -> None:
    assert "base URL ends in /v1" in problem_of(HTTPException(404), path).message


def test_a_route_that_looks_like_an_id_is_not_there_either() -> None:
    wrong_method = HTTPException(405, headers={"Allow": "GET"})
    assert problem_of(wrong_method, "/v1/responses/compact").code == "unknown_url"
    assert problem_of(wrong_method, "/v1/responses/resp_1").code == "method_not_allowed"
