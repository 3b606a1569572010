from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from graph.value.client import ClientMessage
from graph.value.error import ServerBusyError, UserRateError
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import close_early, failure, hang
from tests.fake.openai_server import FakeOpenAI

NOON = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
LABELS = {"end", "outcome", "kind", "direction", "place", "code", "pool", "state", "le"}


def figures(chat: Chat) -> dict[str, float]:
    """Each sample that isn't 0, by its name and its labels, in the order of their names."""
    found = {}
    for family in text_string_to_metric_families(chat.service.metrics().decode()):
        for sample in family.samples:
            if sample.value and not sample.name.endswith(("_bucket", "_created")):
                found["/".join((sample.name.removeprefix("turnfold_"), *sample.labels.values()))] = sample.value
    return found


def some(found: Mapping[str, float], pattern: str) -> dict[str, float]:
    return {name: value for name, value in found.items() if re.fullmatch(pattern, name)}


def test_a_story_is_counted_by_its_own_server_and_no_figure_names_anybody(open_chat: OpenChat) -> None:
    chat, beside = open_chat(turnfold_owner="김민수-canary"), open_chat()
    assert some(figures(chat), "(turns|folds|tokens|errors)_total.*") == {}
    chat.ask(1, 4)
    found = figures(chat)
    assert found["turns_total/finished"] == found["turn_seconds_count"] == found["first_word_seconds_count"] == 4
    assert found["folds_total/compressed"] == found["fold_seconds_count"] == 1
    (paid,) = chat.rows("SELECT sum(usage_input_tokens), sum(usage_output_tokens) FROM model_call")
    assert (found["tokens_total/in/answer"], found["tokens_total/out/answer"]) == tuple(paid)
    assert found["model_call_seconds_count/answer"] == 4
    assert found["tokens_total/in/summary"] > 0
    assert found["database_seconds_count"] > 50
    assert some(found, "errors_total.*") == {}
    assert "turns_total/finished" not in figures(beside)
    chat.service.programs.admit("program-canary")
    chat.service.summaries.make([ClientMessage("user", question(1) * 30)], client="program-canary")
    assert figures(chat)["model_call_seconds_count/summary"] == found["model_call_seconds_count/summary"] + 1
    text = chat.service.metrics().decode()
    for word in ("canary", chat.session_id, question(1)[:6]):
        assert word not in text
    families = list(text_string_to_metric_families(text))
    assert {label for family in families for sample in family.samples for label in sample.labels} <= LABELS
    shown = set(re.findall(r'turnfold_pool_connections\{pool="(\w+)",state="(\w+)"\}', text))
    assert shown == {("database", "in_use"), ("database", "idle")}


def test_each_end_of_a_turn_is_counted_and_its_error(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(close_early("반쪽"), to=question(1))
    server.script(failure(401), to=question(2))
    server.script(hang("음"), to=question(3))
    for number in (1, 2):
        chat.start(question(number))
        chat.events()
    chat.start(question(3))
    chat.stop_when(lambda live: bool(live.text))
    chat.events()
    found = figures(chat)
    assert some(found, "turns_total.*") == {"turns_total/failed": 2, "turns_total/stopped": 1}
    assert some(found, "errors_total/.*/turn") == {
        "errors_total/cut_stream/turn": 1,
        "errors_total/authentication/turn": 1,
    }
    assert found["errors_total/stopped/call"] == 1


def test_what_a_limit_refuses_is_counted(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1, user_turns_per_minute=1, clock=lambda: NOON)
    server.script(hang("음"), to=question(1))
    chat.start(question(1))
    assert figures(chat)["turns_running"] == 1
    with pytest.raises(ServerBusyError):
        Chat(chat.service).start(question(2))
    chat.stop_when(lambda live: bool(live.text))
    chat.events()
    with pytest.raises(UserRateError):
        chat.start(question(2))
    found = figures(chat)
    assert found["errors_total/server_busy/limit"] == found["errors_total/user_rate/limit"] == 1
    assert "turns_running" not in found
