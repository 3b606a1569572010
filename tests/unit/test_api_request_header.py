from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from graph.client import Hint
from tests.fake.parsed_request import parsed, problem


@pytest.mark.parametrize(
    ("headers", "fields", "hint"),
    [
        ({"X-OpenWebUI-Chat-Id": "c1", "X-Session-Id": "s1"}, {}, Hint("x-openwebui-chat-id", "c1")),
        ({"X-OpenWebUI-Chat-Id": "local:abc"}, {"prompt_cache_key": "k"}, Hint("prompt_cache_key", "k")),
        ({"X-OpenWebUI-Chat-Id": "local:abc"}, {}, None),
        ({"X-Conversation-Id": "{{LIBRECHAT_BODY_CONVERSATIONID}}"}, {}, None),
        ({"x-session-affinity": ""}, {"metadata": {"chat_id": "m"}}, Hint("metadata.chat_id", "m")),
        ({}, {"user": "u1", "metadata": {"other": 5}}, None),
    ],
)
def test_the_surest_of_a_clients_own_ids_is_the_hint(
    headers: Mapping[str, str], fields: dict[str, Any], hint: Hint | None
) -> None:
    assert parsed(headers, **fields).request.hint == hint


@pytest.mark.parametrize(
    ("headers", "fields", "user"),
    [
        ({"X-OpenWebUI-User-Id": "h"}, {"user": "u"}, "h"),
        ({}, {"user": "홍길동", "safety_identifier": "s"}, "홍길동"),
        ({}, {"safety_identifier": "s"}, "s"),
        ({}, {}, ""),
    ],
)
def test_the_end_user_is_told_apart(headers: Mapping[str, str], fields: dict[str, Any], user: str) -> None:
    assert parsed(headers, **fields).request.user == user


@pytest.mark.parametrize(
    ("headers", "fields", "session"),
    [
        ({"X-Turnfold-Session": "a"}, {"metadata": {"turnfold_session": "b"}}, "a"),
        ({}, {"metadata": {"turnfold_session": "b"}}, "b"),
    ],
)
def test_a_session_is_named_by_header_or_metadata(
    headers: Mapping[str, str], fields: dict[str, Any], session: str
) -> None:
    assert parsed(headers, **fields).request.session == session


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


@pytest.mark.parametrize("count", ["0", "", "00", "x", "-1"])
def test_a_first_try_is_no_retry(count: str) -> None:
    assert not parsed({"x-stainless-retry-count": count}).request.is_retry


def test_a_task_that_nothing_was_put_into_is_none() -> None:
    assert parsed({"X-Turnfold-Task": "{{TASK}}"}).request.task == ""


@pytest.mark.parametrize(
    "name",
    [
        "X-Turnfold-Session",
        "X-Turnfold-Task",
        "X-Turnfold-On-Disconnect",
        "Idempotency-Key",
        "X-OpenWebUI-Chat-Id",
        "X-OpenWebUI-User-Id",
        "X-Conversation-Id",
        "X-Session-Id",
        "x-session-affinity",
        "x-opencode-session",
    ],
)
@pytest.mark.parametrize("value", ["a" * 257, "caf\xe9", "a\tb", "a\x7f"])
def test_a_header_that_cant_be_sent_back_is_refused(name: str, value: str) -> None:
    assert problem({name: value})[:2] == (400, "invalid_header")
