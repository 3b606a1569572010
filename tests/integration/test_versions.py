from __future__ import annotations

import pytest

from graph.error import InputError, NotFoundError
from graph.record import Record
from tests.fake.body import shape, summaries
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import holds

OWN_WORDS = "서버 이전은 10월 1일, 담당자는 김민수. 예산은 120만 원."


def first_record(chat: Chat) -> Record:
    return chat.service.folds.records(chat.session_id)[0]


def refusal(chat: Chat, record_id: str, text: str) -> str:
    with pytest.raises(InputError) as refused:
        chat.service.folds.edit(chat.session_id, record_id, text)
    return refused.value.reason


def test_an_edited_summary_is_sent_from_the_next_turn_on_and_can_be_taken_back(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    folds, made = chat.service.folds, first_record(chat)
    edited = folds.edit(chat.session_id, made.id, f"  {OWN_WORDS}\0 ")
    assert (edited.edited, edited.version, edited.replaces, edited.kind) == (True, 2, made.id, "interval")
    assert edited.summary == f"{OWN_WORDS}\ufffd"
    assert (edited.summary_chars, edited.input_tokens) == (len(edited.summary), 0)
    assert 0 < edited.summary_tokens != made.summary_tokens
    assert folds.records(chat.session_id) == (edited,)
    chat.ask(5, 5)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5]
    assert holds(server.bodies("chat")[-1], OWN_WORDS)
    assert not holds(server.bodies("chat")[-1], made.summary)
    assert folds.versions(chat.session_id, made.id) == folds.versions(chat.session_id, edited.id) == (made, edited)
    assert folds.use_version(chat.session_id, made.id) == made
    chat.ask(6, 6)
    assert holds(server.bodies("chat")[-1], made.summary)
    folds.use_version(chat.session_id, edited.id)
    folds.use_version(chat.session_id, edited.id)
    assert folds.records(chat.session_id) == (edited,)
    assert [call.is_verified for turn in (4, 5, 6) for call in folds.inputs(chat.session_id, turn)] == [True] * 3


def test_the_facts_of_an_edited_summary_are_those_of_its_source(chat: Chat) -> None:
    chat.ask(1, 4)
    edited = chat.service.folds.edit(chat.session_id, first_record(chat).id, "10월 1일에 김민수가 옮깁니다.")
    assert "10월 1일" in edited.kept_facts
    assert any("20만" in fact for fact in edited.missing_facts)


@pytest.mark.parametrize(
    ("text", "reason"), [(" \u200b\n", "empty"), ("가" * 5_000, "not_shorter"), ("가" * 1_000_000, "too_long")]
)
def test_an_edited_summary_has_words_and_fewer_than_its_source(chat: Chat, text: str, reason: str) -> None:
    chat.ask(1, 4)
    made = first_record(chat)
    assert refusal(chat, made.id, text) == reason
    assert chat.service.folds.versions(chat.session_id, made.id) == (made,)


def test_a_summary_is_edited_while_a_turn_runs(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    made = first_record(chat)
    server.script(hang(), to=question(5))
    chat.start(question(5))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    edited = chat.service.folds.edit(chat.session_id, made.id, OWN_WORDS)
    assert holds(server.bodies("chat")[-1], made.summary)
    chat.service.turns.stop(chat.session_id)
    chat.events()
    chat.ask(6, 7)
    assert holds(server.bodies("chat")[-1], OWN_WORDS)
    assert chat.service.folds.records(chat.session_id)[0] == edited
    assert summaries(server.bodies("chat")[-1]) == [(1, 3), (4, 6)]


def test_a_merge_that_was_made_before_an_edit_does_not_undo_it(open_chat: OpenChat) -> None:
    chat = open_chat(records_budget_tokens=500, merged_together=4, newest_records=2, merged_tokens=300)
    waiting = "SELECT id FROM record WHERE kind = 'merge' AND adopted_at IS NULL"
    for number in range(1, 30):
        chat.ask(number, number)
        if made := chat.rows(waiting):
            break
    ((merge_id,),) = made
    edited = chat.service.folds.edit(chat.session_id, first_record(chat).id, OWN_WORDS)
    access = chat.service._access  # noqa: SLF001  # as a turn does that read the records before the edit
    with access.between_turns(chat.session_id) as lease:
        assert not access.stores.records.adopt(lease, merge_id)
    assert first_record(chat) == edited
    chat.ask(number + 1, number + 3)
    assert first_record(chat).kind == "merge"
    assert edited.id in first_record(chat).sources


def test_a_version_of_what_was_merged_is_not_active_again(open_chat: OpenChat) -> None:
    chat = open_chat(records_budget_tokens=500, merged_together=4, newest_records=2, merged_tokens=300)
    chat.ask(1, 4)
    first = first_record(chat)
    chat.service.folds.edit(chat.session_id, first.id, OWN_WORDS)
    chat.ask(5, 26)
    assert first_record(chat).kind == "merge"
    assert refusal(chat, first.id, OWN_WORDS) == "not_active"
    with pytest.raises(InputError, match="not_active"):
        chat.service.folds.use_version(chat.session_id, first.id)
    assert len(chat.service.folds.versions(chat.session_id, first.id)) == 2


def test_an_edited_merge_gives_way_to_its_sources_in_a_fork(open_chat: OpenChat) -> None:
    chat = open_chat(records_budget_tokens=500, merged_together=4, newest_records=2, merged_tokens=300)
    chat.ask(1, 26)
    merge = first_record(chat)
    edited = chat.service.folds.edit(chat.session_id, merge.id, OWN_WORDS)
    assert (edited.kind, edited.sources, edited.turns) == ("merge", merge.sources, merge.turns)
    forked = Chat(chat.service, chat.service.sessions.fork(chat.session_id, after_turn=8))
    assert forked.covered == [(1, 2, 3), (4, 5, 6)]
    whole = Chat(chat.service, chat.service.sessions.fork(chat.session_id, after_turn=20))
    (made, again) = whole.service.folds.versions(whole.session_id, first_record(whole).id)
    assert (again.summary, again.replaces, made.summary) == (OWN_WORDS, made.id, merge.summary)


def test_a_compaction_is_restored_after_an_edit(chat: Chat) -> None:
    chat.ask(1, 6)
    before = chat.service.folds.records(chat.session_id)
    chat.service.folds.compact(chat.session_id)
    edited = chat.service.folds.edit(chat.session_id, first_record(chat).id, OWN_WORDS)
    assert chat.service.folds.compactions(chat.session_id) == (edited,)
    chat.service.folds.restore(chat.session_id, edited.id)
    assert chat.service.folds.records(chat.session_id) == before


def test_a_record_before_a_reset_or_of_nobody_is_not_edited(chat: Chat) -> None:
    chat.ask(1, 4)
    made = first_record(chat)
    chat.service.folds.reset(chat.session_id)
    assert refusal(chat, made.id, OWN_WORDS) == "not_active"
    with pytest.raises(NotFoundError):
        chat.service.folds.edit(chat.session_id, "rec-none", OWN_WORDS)
    with pytest.raises(NotFoundError):
        chat.service.folds.versions(chat.session_id, "rec-none")


def test_another_version_leaves_the_chart_where_its_turns_were_folded(chat: Chat) -> None:
    chat.ask(1, 5)
    folds, made = chat.service.folds, first_record(chat)
    assert [point.turn for point in folds.chart(chat.session_id) if point.has_fold] == [4]
    edited = folds.edit(chat.session_id, made.id, OWN_WORDS)
    chat.ask(6, 6)
    assert [point.turn for point in folds.chart(chat.session_id) if point.has_fold] == [4]
    assert folds.undo(chat.session_id, edited.id) is not None
    chat.ask(7, 7)
    assert [point.turn for point in folds.chart(chat.session_id) if point.has_fold] == [4, 7]
