from __future__ import annotations

import pytest

from graph.core.fact_carry import without_line
from tests.fake.body import content_of, summaries, system_prompt
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, hang
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI

MERGE_PROMPT = "<source>에는 한 대화의 이어지는 요약들이"


@pytest.fixture
def merging(open_chat: OpenChat) -> Chat:
    early = {"records_budget_tokens": 500, "merged_together": 4, "newest_records": 2, "merged_tokens": 300}
    return open_chat(**early, fold_wait_seconds=0.1, fold_deadline_seconds=30)


def merge_prompts(server: FakeOpenAI) -> list[str]:
    """What was asked for each merge, behind its rules."""
    return [content_of(body["messages"][1]) for body in server.bodies("summary") if is_merge(body)]


def is_merge(body: Body) -> bool:
    return kind_of(body) == "summary" and content_of(body["messages"][0]).startswith(MERGE_PROMPT)


def test_old_summaries_become_one_in_the_background_and_the_sources_stay_readable(
    merging: Chat, server: FakeOpenAI
) -> None:
    events = []
    for number in range(1, 30):
        events += merging.say(question(number))
        merging.wait_for_folds()
    assert "FoldWaiting" not in names(events)
    first, *rest = merging.service.folds.records(merging.session_id)
    assert (first.kind, first.turns) == ("merge", tuple(range(1, 13)))
    assert {record.kind for record in rest} >= {"interval"}
    sources = merging.rows(
        "SELECT turns, summary, original_chars FROM record WHERE superseded_by = ? ORDER BY from_position",
        first.id,
    )
    assert [turns for turns, *_ in sources] == [f"[{k},{k + 1},{k + 2}]" for k in (1, 4, 7, 10)]
    assert first.original_chars == sum(chars for *_, chars in sources)
    assert all(without_line(summary) in merge_prompts(server)[0] for _, summary, _ in sources)
    assert summaries(server.bodies("chat")[-1])[0] == (1, 12)
    until = merging.rows("SELECT covered_until_message_id, to_position FROM record WHERE id = ?", first.id)
    assert merging.rows("SELECT message_id FROM message WHERE position = ?", until[0][1]) == [(until[0][0],)]


def break_merges(server: FakeOpenAI, broken: Reply) -> None:
    def respond(body: Body) -> Reply:
        return broken if is_merge(body) else answer_body(body)

    server.respond_with(respond)


def test_a_merge_that_fails_leaves_the_summaries_as_they_are_and_is_picked_after_three_tries(
    merging: Chat, server: FakeOpenAI
) -> None:
    break_merges(server, failure(500))
    blocks = [(k, k + 1, k + 2) for k in range(1, 30, 3)]
    number = 0
    while len(merge_prompts(server)) < 3:
        number += 1
        merging.say(question(number))
        merging.wait_for_folds()
        assert merging.covered == blocks[: len(merging.covered)]
    merging.say(question(number + 1))
    first, *_ = merging.service.folds.records(merging.session_id)
    assert (first.kind, first.outcome, first.turns) == ("merge", "picked", tuple(range(1, 13)))
    assert len(merge_prompts(server)) == 3


def test_a_merge_that_hangs_leaves_the_summaries_as_they_are(merging: Chat, server: FakeOpenAI) -> None:
    break_merges(server, hang(is_silent=True))
    for number in range(1, 24):
        merging.say(question(number))
    assert merge_prompts(server)
    assert merging.covered == [(k, k + 1, k + 2) for k in range(1, 22, 3)]
    assert all(f"질문 {number}번" in system_prompt(server.bodies("chat")[-1]) for number in (1, 4, 7))
