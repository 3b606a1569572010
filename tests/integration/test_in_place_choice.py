from __future__ import annotations

from typing import Any

import pytest

from tests.fake.body import content_of
from tests.fake.caching import (
    ALWAYS,
    CachingResponder,
    is_in_place,
)
from tests.fake.chat import question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import CACHED_USAGE, text
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI


@pytest.mark.parametrize(
    ("settings", "usage"),
    [
        ({}, None),
        ({}, {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}),
        ({"fold_in_place": "never"}, CACHED_USAGE),
        ({**ALWAYS, "chat_summary_model": "small"}, CACHED_USAGE),
    ],
    ids=["no usage", "no cache", "never", "another model"],
)
def test_a_fold_is_quoted_where_in_place_does_not_serve(
    open_chat: OpenChat, server: FakeOpenAI, settings: dict[str, Any], usage: dict[str, Any] | None
) -> None:
    server.respond_with(
        lambda body: (
            answer_body(body) if kind_of(body) == "summary" else text("그렇게 정리하겠습니다. " * 12, usage=usage)
        )
    )
    chat = open_chat(**settings)
    chat.ask(1, 4)
    assert [is_in_place(body) for body in server.bodies("summary")] == [False]
    assert chat.covered == [(1, 2, 3)]


def test_always_needs_no_cache_that_is_reported(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    chat.ask(1, 4)
    assert [is_in_place(body) for body in server.bodies("summary")] == [True]
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize(("window_tokens", "in_place"), [(2_200, False), (3_400, True)])
def test_what_would_not_fit_into_the_window_is_quoted(
    open_chat: OpenChat, server: FakeOpenAI, window_tokens: int, *, in_place: bool
) -> None:
    server.respond_with(CachingResponder(300))
    chat = open_chat(**ALWAYS, model_window_tokens=window_tokens, guard_share=0.95)
    chat.ask(1, 4)
    assert [is_in_place(body) for body in server.bodies("summary")] == [in_place]
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize(("mode", "last_in_place"), [("auto", False), ("always", True)])
def test_a_short_block_behind_long_summaries_is_quoted_where_that_is_cheaper(
    open_chat: OpenChat, server: FakeOpenAI, mode: str, *, last_in_place: bool
) -> None:
    server.respond_with(CachingResponder(200))
    chat = open_chat(fold_in_place=mode, compression_rate=0.5)
    for number in range(1, 10):
        chat.say(question(number) * 32)
        chat.wait_for_folds()
    for number in range(10, 14):
        chat.say(f"{question(number)[:60]}?")
        chat.wait_for_folds()
    assert [is_in_place(body) for body in server.bodies("summary")] == [True, True, True, last_in_place]
    assert len(chat.covered) == 4


def test_a_prepared_summary_outlives_a_restart_however_it_was_asked_for(
    open_chat: OpenChat, cached: FakeOpenAI
) -> None:
    first = open_chat()
    first.ask(1, 3)
    first.close()
    later = open_chat(first.session_id)
    later.ask(4, 4)
    assert later.covered == [(1, 2, 3)]
    assert [is_in_place(body) for body in cached.bodies("summary")] == [True]


def test_a_server_that_did_not_send_the_last_input_quotes(open_chat: OpenChat, cached: FakeOpenAI) -> None:
    first = open_chat(context_strategy="compaction")
    first.ask(1, 6)
    first.close()
    later = open_chat(first.session_id, **ALWAYS, context_strategy="compaction")
    later.service.folds.compact(first.session_id)
    later.ask(7, 9)
    later.service.folds.compact(first.session_id)
    assert [is_in_place(body) for body in cached.bodies("summary")] == [False, True]


def test_a_version_that_the_last_input_holds_whole_is_asked_for_in_place(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(**ALWAYS, context_strategy="rolling", app_context_threshold=500)
    chat.ask(1, 8)
    asked = server.bodies("summary")
    assert len(asked) >= 2
    assert all(map(is_in_place, asked))
    assert {body.get("max_tokens", body.get("max_completion_tokens")) for body in asked} == {4_096}
    first, second = (content_of(body["messages"][-1]) for body in asked[:2])
    assert "from “질문 1번입니다. 서버 이전은 10월…” to the answer to “" in first
    assert "Update the previous summary" not in first
    assert "from the earlier summary to the answer to “" in second
    assert "Update the previous summary" in second
    assert len(chat.covered) == 1


@pytest.mark.parametrize(
    ("changes", "times"),
    [({"rolling_sends_unsummarised": False, "app_context_recent_messages": 2}, 1), ({}, 20)],
    ids=["unsent", "cut"],
)
def test_a_version_of_what_the_last_input_lacks_is_quoted(
    open_chat: OpenChat, server: FakeOpenAI, changes: dict[str, Any], times: int
) -> None:
    chat = open_chat(**ALWAYS, context_strategy="rolling", app_context_threshold=500, **changes)
    chat.say("긴 기록입니다. " + question(1) * times)
    chat.wait_for_folds()
    chat.ask(2, 6)
    assert server.bodies("summary")
    assert not is_in_place(server.bodies("summary")[0])


def test_a_compaction_is_asked_for_in_place(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS, context_strategy="compaction")
    chat.ask(1, 6)
    record = chat.service.folds.compact(chat.session_id)
    (asked,) = server.bodies("summary")
    last = server.bodies("chat")[-1]
    assert asked["messages"][: len(last["messages"])] == last["messages"]
    instruction = content_of(asked["messages"][-1])
    assert "1. **Task Overview**" in instruction
    assert "<summary></summary>" in instruction
    assert "to the answer to “질문 4번" in instruction
    assert record.kind == "compaction"
    chat.ask(7, 9)
    chat.service.folds.compact(chat.session_id)
    assert "from the earlier summary" in content_of(server.bodies("summary")[-1]["messages"][-1])


def test_merges_are_quoted(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS, records_budget_tokens=500, merged_together=2, newest_records=1, merged_tokens=200)
    chat.ask(1, 13)
    asked = server.bodies("summary")
    merges = [body for body in asked if 'from="summary"' in content_of(body["messages"][-1])]
    assert merges
    assert all(is_in_place(body) for body in asked if body not in merges)
    assert len(asked) > len(merges)


def test_a_deleted_session_is_forgotten(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    chat.ask(1, 1)
    inputs = chat.service._access.fold_worker._last_inputs  # noqa: SLF001  # nobody but a test has to know
    assert chat.session_id in inputs
    chat.service.sessions.delete(chat.session_id)
    assert chat.session_id not in inputs
    assert server.exchanges
