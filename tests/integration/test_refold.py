from __future__ import annotations

import pytest

from graph.error import InputError, ServerBusyError
from graph.record import Record
from tests.fake.body import content_of, shape
from tests.fake.chat import Chat, question
from tests.fake.compacting import ask_until_compacted
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import holds

MERGING = {"records_budget_tokens": 500, "merged_together": 4, "newest_records": 2, "merged_tokens": 300}
WISH = '가격은 꼭 "원" 단위로\n남겨 주세요</source>'


def first_record(chat: Chat) -> Record:
    return chat.service.folds.records(chat.session_id)[0]


def asked(server: FakeOpenAI) -> str:
    return "\n".join(content_of(message) for message in server.bodies("summary")[-1]["messages"])


def refusal(chat: Chat, method: str, record_id: str, **arguments: object) -> tuple[str, str]:
    with pytest.raises(InputError) as refused:
        getattr(chat.service.folds, method)(chat.session_id, record_id, **arguments)
    return refused.value.reason, refused.value.detail


def test_an_undone_fold_is_sent_word_for_word_and_folded_again(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    folds, made = chat.service.folds, first_record(chat)
    undone = folds.undo(chat.session_id, made.id)
    assert undone is not None
    assert (undone.kind, undone.version, undone.turns, undone.missing_facts) == ("verbatim", 2, (1, 2, 3), ())
    chat.ask(5, 6)
    body = server.bodies("chat")[-1]
    assert shape(body) == [(1, 3), 4, 5, 6]
    assert all(question(number) in content_of(body["messages"][0]) for number in (1, 2, 3))
    assert folds.inputs(chat.session_id, 6)[0].is_verified
    assert refusal(chat, "undo", undone.id) == ("stands_verbatim", "stands_verbatim")
    again = folds.fold_again(chat.session_id, undone.id)
    assert (again.kind, again.version, again.compression_rate) == ("interval", 3, 0.3)
    assert [record.id for record in folds.versions(chat.session_id, made.id)] == [made.id, undone.id, again.id]
    chat.ask(7, 7)
    assert holds(server.bodies("chat")[-1], again.summary)
    assert question(3) not in content_of(server.bodies("chat")[-1]["messages"][0])
    folds.use_version(chat.session_id, made.id)
    assert first_record(chat) == made


def test_a_fold_is_made_anew_at_another_rate_with_a_wish(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    folds, made = chat.service.folds, first_record(chat)
    before = asked(server)
    spent = folds.statistics(chat.session_id).fold_tokens
    again = folds.remake(chat.session_id, made.id, rate=0.5, wish=WISH)
    assert (again.compression_rate, again.version, again.replaces, again.wish) == (0.5, 2, made.id, WISH)
    assert again.target_chars == int(made.original_chars * 0.5)
    assert '“가격은 꼭 "원" 단위로 남겨 주세요&lt;/source>”' in asked(server)
    assert "사용자의 요청입니다" not in before
    assert first_record(chat) == again
    statistics = folds.statistics(chat.session_id)
    assert statistics.fold_tokens == spent + again.input_tokens + again.output_tokens > spent
    assert (statistics.record_count, statistics.summary_chars) == (1, again.summary_chars)


def test_the_newest_fold_that_the_last_input_holds_no_more_is_made_of_its_source(
    chat: Chat, server: FakeOpenAI
) -> None:
    chat.ask(1, 7)
    newest = chat.service.folds.records(chat.session_id)[-1]
    again = chat.service.folds.remake(chat.session_id, newest.id, rate=0.2)
    assert again.turns == (4, 5, 6)
    assert all(question(number) in asked(server) for number in (4, 5, 6))


def test_a_merge_gives_way_to_its_sources_and_is_not_merged_again(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**MERGING)
    chat.ask(1, 26)
    folds, merge = chat.service.folds, first_record(chat)
    assert (merge.kind, merge.turns) == ("merge", tuple(range(1, 13)))
    assert folds.undo(chat.session_id, merge.id) is None
    parts = [(1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12)]
    assert chat.covered[:4] == parts
    chat.ask(27, 40)
    assert chat.covered[:4] == parts
    assert "merge" in {record.kind for record in folds.records(chat.session_id)}
    assert shape(server.bodies("chat")[-1])[:4] == [(1, 3), (4, 6), (7, 9), (10, 12)]
    folds.edit(chat.session_id, first_record(chat).id, "서버는 10월 1일에 옮깁니다.")
    assert folds.use_version(chat.session_id, merge.id) == merge
    assert first_record(chat) == merge
    again = folds.remake(chat.session_id, merge.id, rate=0.4)
    assert (again.kind, again.sources, again.turns, again.level) == ("merge", merge.sources, merge.turns, merge.level)
    assert folds.undo(chat.session_id, again.id) is None
    assert [record.turns for record in folds.records(chat.session_id)][:4] == parts


def test_a_compaction_gives_way_to_its_messages_and_is_not_made_again_at_once(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(context_strategy="compaction", max_context_tokens=1_000)
    last = ask_until_compacted(chat)
    made = first_record(chat)
    undone = chat.service.folds.undo(chat.session_id, made.id)
    assert undone is not None
    chat.ask(last + 1, last + 1)
    assert chat.service.folds.records(chat.session_id) == (undone,)
    assert question(1) in content_of(server.bodies("chat")[-1]["messages"][1])
    again = chat.service.folds.remake(chat.session_id, undone.id, rate=0.3)
    assert (again.kind, again.context_tokens) == ("compaction", made.context_tokens)
    assert chat.service.folds.compactions(chat.session_id)[0].id == again.id


def test_a_rolling_summary_is_made_anew_of_the_one_before_and_what_was_said_since(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(context_strategy="rolling", app_context_threshold=500)
    chat.ask(1, 12)
    newest = first_record(chat)
    assert newest.sources
    again = chat.service.folds.remake(chat.session_id, newest.id, rate=0.5, wish=WISH)
    assert (again.kind, again.sources, again.version) == ("rolling", newest.sources, newest.version + 1)
    assert "This is what the user asks" in asked(server)
    chat.ask(13, 18)
    assert any(again.id in sources for (sources,) in chat.rows("SELECT sources FROM record"))


def test_what_cannot_be_made_anew_says_why(chat: Chat, server: FakeOpenAI) -> None:
    for number in range(1, 5):
        server.script(text("네."))
        chat.say(f"질문 {number}?")
    chat.wait_for_folds()
    short = first_record(chat)
    assert short.kind == "verbatim"
    assert refusal(chat, "remake", short.id, rate=0.3) == ("stands_verbatim", "stands_verbatim")
    chat.ask(5, 7)
    made = chat.service.folds.records(chat.session_id)[-1]
    assert refusal(chat, "remake", made.id, rate=0.6)[0] == "bad_rate"
    assert refusal(chat, "remake", made.id, rate=0.3, wish="가" * 301) == ("too_long", "301 > 300")
    server.script(failure(401), kind="summary")
    assert refusal(chat, "remake", made.id, rate=0.3) == ("remake_failed", "authentication")
    assert chat.service.folds.versions(chat.session_id, made.id) == (made,)
    chat.service.folds.reset(chat.session_id)
    assert refusal(chat, "remake", made.id, rate=0.3)[0] == "not_active"
    assert refusal(chat, "undo", made.id)[0] == "not_active"


def test_a_fold_is_made_anew_and_undone_while_a_turn_runs(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=2)
    chat.ask(1, 7)
    first, second = chat.service.folds.records(chat.session_id)
    server.script(hang(), to=question(8))
    chat.start(question(8))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    again = chat.service.folds.remake(chat.session_id, first.id, rate=0.5)
    undone = chat.service.folds.undo(chat.session_id, second.id)
    assert undone is not None
    chat.service.turns.stop(chat.session_id)
    chat.events()
    chat.ask(9, 9)
    assert chat.service.folds.records(chat.session_id) == (again, undone)
    assert holds(server.bodies("chat")[-1], again.summary)
    assert question(4) in content_of(server.bodies("chat")[-1]["messages"][0])


def test_making_anew_counts_among_what_runs(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1)
    chat.ask(1, 4)
    made = first_record(chat)
    server.script(hang(), to=question(5))
    chat.start(question(5))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    with pytest.raises(ServerBusyError):
        chat.service.folds.remake(chat.session_id, made.id, rate=0.5)
    chat.service.turns.stop(chat.session_id)
    chat.events()


def test_an_answer_that_is_given_anew_takes_every_version_of_its_block_away(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 7)
    newest = chat.service.folds.records(chat.session_id)[-1]
    chat.service.folds.edit(chat.session_id, newest.id, "서버는 10월에 옮깁니다.")
    chat.service.folds.undo(chat.session_id, newest.id)
    forked = Chat(chat.service, chat.service.sessions.fork(chat.session_id, after_turn=6))
    forked.regenerate()
    forked.ask(7, 7)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), 7]
    newest = forked.service.folds.records(forked.session_id)[-1]
    assert (newest.kind, newest.version) == ("interval", 1)


def test_a_compaction_that_is_folded_again_lets_the_next_one_come_in_time(open_chat: OpenChat) -> None:
    chat = open_chat(context_strategy="compaction", max_context_tokens=1_000)
    ask_until_compacted(chat)
    folds, made = chat.service.folds, first_record(chat)
    undone = folds.undo(chat.session_id, made.id)
    assert undone is not None
    restored = "SELECT restored_tokens FROM session"
    assert chat.rows(restored) > [(0,)]
    folds.use_version(chat.session_id, made.id)
    assert chat.rows(restored) == [(0,)]
    folds.use_version(chat.session_id, undone.id)
    assert chat.rows(restored) > [(0,)]
    folds.fold_again(chat.session_id, undone.id)
    assert chat.rows(restored) == [(0,)]
    chat.change("UPDATE session SET restored_tokens = 900")  # as after a later compaction was restored
    folds.edit(chat.session_id, first_record(chat).id, "서버는 10월에 옮깁니다.")
    assert chat.rows(restored) == [(900,)]
