from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.service import ChatService
from graph.value.error import InputError
from graph.value.event import TurnFinished
from graph.value.view import TurnOptions
from tests.fake.body import content_of, faults, raw_turns
from tests.fake.chat import Chat, names, question
from tests.fake.drawn import at_most
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, hang
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import holds

STRATEGIES = ["interval", "rolling", "compaction", "window"]
# Each folds early, and what isn't folded is always sent: so every turn must be in each input.
EARLY: dict[str, Any] = {
    "app_context_threshold": 500,
    "rolling_sends_unsummarised": True,
    "max_context_tokens": 1_000,
    "compaction_threshold": 0.4,
    "records_budget_tokens": 500,
    "merged_together": 2,
    "newest_records": 1,
    "merged_tokens": 200,
    "window_turns": 2,
}


def switch(chat: Chat, strategy: str) -> None:
    chat.service.sessions.configure(chat.session_id, strategy=strategy)
    chat.wait_for_folds()


def turns_sent(chat: Chat, body: Body) -> list[int]:
    """The turns that an input stands for, before the open one: by a record's text or by their own question."""
    sent = "\n".join(content_of(message) for message in body["messages"])
    by_record = {
        turn for r in chat.service.folds.records(chat.session_id) if holds(body, r.summary) for turn in r.turns
    }
    raw = {turn.number for turn in chat.turns[:-1] if turn.user_text in sent}
    return sorted(by_record | raw)


def all_records(chat: Chat) -> set[tuple[str, str]]:
    query = "SELECT id, summary FROM record WHERE session_id = ? AND status = 'COMPLETED'"
    rows = chat.rows(query, chat.session_id)
    return {(str(record_id), str(summary)) for record_id, summary in rows}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("interval", "rolling"),
        ("rolling", "compaction"),
        pytest.param("compaction", "interval", marks=pytest.mark.slow),
        pytest.param("compaction", "window", marks=pytest.mark.slow),
        pytest.param("window", "interval", marks=pytest.mark.slow),
    ],
)
def test_switching_keeps_every_record_and_loses_nothing(
    chat_with: OpenChat, server: FakeOpenAI, first: str, second: str
) -> None:
    chat = chat_with(**EARLY, context_strategy=first)
    chat.ask(1, 8)
    before = all_records(chat)
    switch(chat, second)
    chat.ask(9, 12)
    assert before <= all_records(chat)
    for body in server.bodies("chat")[8:]:
        assert faults(body["messages"]) == []
    wanted = [10, 11] if second == "window" else list(range(1, 12))
    assert turns_sent(chat, server.bodies("chat")[-1]) == wanted


def test_a_window_is_read_whole_though_its_turns_were_folded_but_not_behind_a_reset(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**EARLY | {"window_turns": 5})
    chat.ask(1, 7)
    switch(chat, "window")
    chat.ask(8, 8)
    said = [content_of(message) for message in server.bodies("chat")[-1]["messages"]]
    assert [words for words in said if words.startswith("질문 ")] == [question(number) for number in range(3, 9)]
    switch(chat, "interval")
    chat.ask(9, 9)
    assert turns_sent(chat, server.bodies("chat")[-1]) == list(range(1, 9))
    switch(chat, "window")
    chat.service.folds.reset(chat.session_id)
    chat.ask(10, 11)
    assert turns_sent(chat, server.bodies("chat")[-1]) == [10]


def test_a_choice_is_the_sessions_own_and_one_of_what_held_anyway_follows_the_server(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    with open_chat(chat_model="first-model") as chat:
        chat.say(question(1), options=TurnOptions(model="first-model", strategy="interval"))
        other = Chat(chat.service)
        other.say(question(1), options=TurnOptions(model="own-model", strategy="compaction"))
        assert (chat.view.strategy, other.view.strategy) == ("interval", "compaction")
        with pytest.raises(InputError, match="interval, rolling, compaction, window"):
            chat.service.sessions.configure(chat.session_id, strategy="elastic")
    with open_chat(chat.session_id, chat_model="second-model", context_strategy="rolling") as later:
        assert (later.view.model, later.view.strategy) == ("second-model", "rolling")
        later.say(question(2))
        assert server.bodies("chat")[-1]["model"] == "second-model"
        own = Chat(later.service, other.session_id)
        own.say(question(2))
        assert server.bodies("chat")[-1]["model"] == "own-model"
        assert own.view.strategy == "compaction"


def test_window_means_the_same_however_a_session_came_to_it(open_chat: OpenChat, server: FakeOpenAI) -> None:
    untouched = open_chat(app_context_enabled=False)
    service = untouched.service
    chosen, detoured = Chat(service), Chat(service)
    untouched.ask(1, 3)
    chosen.say(question(1), options=TurnOptions(strategy="window"))
    chosen.ask(2, 3)
    detoured.ask(1, 1)
    service.sessions.configure(detoured.session_id, strategy="interval")
    detoured.ask(2, 2)
    service.sessions.configure(detoured.session_id, strategy="window")
    detoured.ask(3, 3)
    assert [raw_turns(body) for body in server.bodies("chat")] == [[1], [2], [3], [1], [2], [3], [1], [1, 2], [3]]
    assert {chat.view.strategy for chat in (untouched, chosen, detoured)} == {"window"}


def test_a_compaction_that_ends_inside_a_turn_leaves_no_gap_under_the_others(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(
        **EARLY | {"max_context_tokens": 100_000}, context_strategy="compaction", preserve_recent_messages=3
    )
    chat.ask(1, 6)
    chat.service.folds.compact(chat.session_id)
    half = chat.turns[4].answer_text
    for strategy in ("compaction", "interval", "rolling"):
        switch(chat, strategy)
        number = len(chat.turns) + 1
        chat.ask(number, number)
        body = server.bodies("chat")[-1]
        sent = "\n".join(content_of(message) for message in body["messages"])
        covered = {t for r in chat.service.folds.records(chat.session_id) if holds(body, r.summary) for t in r.turns}
        assert 5 in covered or half in sent
        assert turns_sent(chat, body)[-1] == number - 1
        assert faults(body["messages"]) == []


@pytest.mark.parametrize("fault", ["fails", "hangs"])
def test_a_compaction_that_fails_or_hangs_leaves_no_gap(chat_with: OpenChat, server: FakeOpenAI, fault: str) -> None:
    chat = chat_with(**EARLY, context_strategy="compaction", fold_wait_seconds=0.2, fold_deadline_seconds=30)
    broken: Reply = failure(500) if fault == "fails" else hang(is_silent=True)
    server.respond_with(lambda body: broken if kind_of(body) == "summary" else answer_body(body))
    waits = 0
    for number in range(1, 9):
        events = chat.say(question(number))
        assert isinstance(events[-1], TurnFinished)
        waits += "FoldWaiting" in names(events)
        assert turns_sent(chat, server.bodies("chat")[-1]) == list(range(1, number))
    assert waits == 1 or fault == "fails"


@pytest.mark.parametrize(
    "strategy", ["interval", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rolling", "compaction"))]
)
def test_a_fold_that_was_killed_leaves_no_gap_and_is_made_anew(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = open_chat(**EARLY, context_strategy=strategy, fold_wait_seconds=0.2)
    chat.ask(1, 7)
    assert chat.covered
    chat.change(
        "UPDATE record SET status = 'IN_PROGRESS', outcome = NULL, summary = '', summary_chars = 0, adopted_at = NULL,"
        " expires_at = 0"
    )
    chat.close()
    chat = open_chat(chat.session_id, **EARLY, context_strategy=strategy, fold_wait_seconds=0.2)
    chat.ask(8, 10)
    assert turns_sent(chat, server.bodies("chat")[-1]) == list(range(1, 10))
    assert chat.covered
    assert chat.rows("SELECT count(*) FROM record WHERE status = 'IN_PROGRESS'") == [(0,)]


def test_regenerating_takes_back_a_compaction_that_covers_the_last_turn(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**EARLY | {"max_context_tokens": 100_000}, context_strategy="compaction")
    chat.ask(1, 6)
    chat.service.folds.compact(chat.session_id)
    chat.regenerate()
    chat.wait_for_folds()
    chat.ask(7, 8)
    assert turns_sent(chat, server.bodies("chat")[-1]) == list(range(1, 8))
    assert faults(server.bodies("chat")[-1]["messages"]) == []


STEPS = st.lists(
    st.sampled_from(["ask", "ask", "ask", *STRATEGIES, "compact", "reset", "regenerate"]), min_size=6, max_size=14
)


@settings(max_examples=at_most(40))
@given(STEPS)
def test_whatever_is_switched_and_folded_each_turn_is_sent_once(
    endpoint: FakeOpenAI, module_services: Callable[..., ChatService], steps: list[str]
) -> None:
    with endpoint.lent(is_alone=True) as server:
        play(Chat(module_services(**EARLY)), server, steps)


def play(chat: Chat, server: FakeOpenAI, steps: list[str]) -> None:
    strategy, started = "interval", 0
    chat.ask(1, 1)
    for step in steps:
        if step in STRATEGIES:
            strategy = step
            switch(chat, step)
        elif step == "compact":
            with suppress(InputError):  # there may be too few messages
                chat.service.folds.compact(chat.session_id)
        elif step == "reset":
            chat.service.folds.reset(chat.session_id)
            started = len(chat.turns)
        elif step == "regenerate":
            chat.regenerate()
            chat.wait_for_folds()
            started = min(started, len(chat.turns) - 1)
        else:
            number = len(chat.turns) + 1
            chat.ask(number, number)
            body = server.bodies("chat")[-1]
            first = max(started + 1, number - 2 if strategy == "window" else 1)
            assert turns_sent(chat, body) == list(range(first, number))
            assert faults(body["messages"]) == []
