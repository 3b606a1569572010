from __future__ import annotations

from typing import Final

import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from graph.error import BusyError, NotFoundError, TurnRateError
from graph.event import (
    AnswerRestarted,
    TokenDelta,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from graph.model_error import UnreachableError
from tests.fake.door_client import ask, text_of
from tests.fake.scripted_completions import ScriptedCompletions, said
from tests.fake.served_door import TOKEN, ServedDoor

START: Final = TurnStarted("session-1", 1, 1)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_turn_that_fails_before_it_says_anything_has_a_real_status(
    client: openai.OpenAI, completions: ScriptedCompletions, *, streamed: bool
) -> None:
    completions.script([START, TurnFailed(1, "context_length", "9000 > 8000")])
    with pytest.raises(openai.BadRequestError) as failed:
        ask(client, stream=streamed)
    assert failed.value.code == "context_length_exceeded"
    assert failed.value.response.headers["content-type"] == "application/json"
    assert failed.value.response.headers["x-turnfold-session"] == "session-1"


@pytest.mark.parametrize("last", [TurnFailed(1, "cut_stream", ""), AnswerRestarted()])
def test_a_stream_that_fails_is_no_success(
    client: openai.OpenAI, served_door: ServedDoor, completions: ScriptedCompletions, last: TurnFailed | AnswerRestarted
) -> None:
    for _ in range(2):
        completions.script([START, TokenDelta("Hel"), last, TurnFinished(1, "m", "Other")])
    with pytest.raises(openai.APIError) as failed:
        text_of(ask(client, stream=True))
    assert failed.value.code == "upstream_unavailable"
    model = ChatOpenAI(base_url=served_door.url, api_key=SecretStr(TOKEN), model="small", max_retries=0)
    with pytest.raises(openai.APIError):
        list(model.stream("안녕"))


def test_what_is_told_of_a_response_may_fail_too(client: openai.OpenAI, completions: ScriptedCompletions) -> None:
    for _ in range(2):
        completions.script(said("Hi"), UnreachableError())
    with pytest.raises(openai.InternalServerError):
        ask(client)
    with pytest.raises(openai.APIError):
        text_of(ask(client, stream=True))


def test_a_busy_session_is_asked_once(served_door: ServedDoor, completions: ScriptedCompletions) -> None:
    completions.script(BusyError())
    with openai.OpenAI(base_url=served_door.url, api_key=TOKEN) as client, pytest.raises(openai.ConflictError) as busy:
        ask(client, stream=True)
    assert busy.value.code == "session_busy"
    assert [request.is_retry for request in completions.requests] == [False]


def test_a_library_sends_a_failed_request_again_and_says_so(
    served_door: ServedDoor, completions: ScriptedCompletions
) -> None:
    completions.script(UnreachableError())
    completions.script([START, TurnFailed(1, "unreachable", "")])
    completions.script(said("Hi"))
    with openai.OpenAI(base_url=served_door.url, api_key=TOKEN, max_retries=2) as client:
        assert text_of(ask(client, stream=True)) == "Hi"
    assert [request.is_retry for request in completions.requests] == [False, True, True]


@pytest.mark.parametrize(
    ("error", "kind"), [(NotFoundError(), openai.NotFoundError), (TurnRateError(7), openai.RateLimitError)]
)
def test_refusals_are_the_librarys_own_errors(
    client: openai.OpenAI, completions: ScriptedCompletions, error: Exception, kind: type[openai.APIStatusError]
) -> None:
    completions.script(error)
    with pytest.raises(kind):
        ask(client)


def test_a_wrong_token_is_the_librarys_own_error(served_door: ServedDoor) -> None:
    with (
        openai.OpenAI(base_url=served_door.url, api_key="wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError) as refused,
    ):
        client.models.list()
    assert refused.value.code == "invalid_api_key"


def test_what_nobody_foresaw_is_answered_in_the_same_shape(
    client: openai.OpenAI, completions: ScriptedCompletions
) -> None:
    completions.script(ZeroDivisionError("canary"))
    with pytest.raises(openai.InternalServerError) as failed:
        ask(client)
    assert (failed.value.code, "canary" in failed.value.response.text) == ("internal_error", False)
