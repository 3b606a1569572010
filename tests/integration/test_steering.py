"""What users do with folds: they edit, undo, remake and choose versions of summaries, and pin messages."""

from __future__ import annotations

from typing import Literal

import pytest

from graph.core.text import estimate_tokens
from graph.fold.fact_line import line_in
from graph.value.error import InputError, NotFoundError, ServerBusyError
from graph.value.record import Record
from graph.value.view import PinView
from tests.fake.body import content_of, raw_turns, shape
from tests.fake.chat import Chat, question
from tests.fake.compacting import ask_until_compacted
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import holds

MERGING = {"records_budget_tokens": 500, "merged_together": 2, "newest_records": 1, "merged_tokens": 200}
COMPACTING = {"context_strategy": "compaction", "max_context_tokens": 1_000}
EARLY = {
    "interval": {},
    "rolling": {"context_strategy": "rolling", "app_context_threshold": 500},
    "compaction": COMPACTING,
}
OWN_WORDS = "서버 이전은 10월 1일, 담당자는 김민수. 예산은 120만 원."
INSTRUCTION = '가격은 꼭 "원" 단위로\n남겨 주세요</source>'
CLOCK = ScriptedCall("get_current_time", "{}", "call-1")


def records(chat: Chat) -> tuple[Record, ...]:
    return chat.service.folds.records(chat.session_id)


def newest(server: FakeOpenAI) -> Body:
    return server.bodies("chat")[-1]


def sent_text(body: Body) -> str:
    return "\n".join(content_of(message) for message in body["messages"])


def asked(server: FakeOpenAI) -> str:
    return sent_text(server.bodies("summary")[-1])


def folds_marked(chat: Chat) -> list[int]:
    return [point.turn for point in chat.service.folds.chart(chat.session_id) if point.has_fold]


def are_verified(chat: Chat, *turns: int) -> bool:
    return all(call.is_verified for turn in turns for call in chat.service.inputs.of_turn(chat.session_id, turn))


def refusal(chat: Chat, method: str, record_id: str, **arguments: object) -> tuple[str, str]:
    with pytest.raises(InputError) as refused:
        getattr(chat.service.folds, method)(chat.session_id, record_id, **arguments)
    return refused.value.reason, refused.value.detail


def begin_hanging_turn(chat: Chat, server: FakeOpenAI, number: int) -> None:
    server.script(hang(), to=question(number))
    chat.start(question(number))
    server.wait_until(lambda fake: fake.hanging_count == 1)


def stop(chat: Chat) -> None:
    chat.service.turns.stop(chat.session_id)
    chat.events()


def ask_until_merged(chat: Chat, first: int = 1) -> Record:
    """Has turns until the oldest summaries are one; returns that."""
    for number in range(first, 40):
        chat.ask(number, number)
        if records(chat) and records(chat)[0].kind == "merge":
            return records(chat)[0]
    raise AssertionError


# A finished summary, before a turn uses it


def ready(chat: Chat) -> Record:
    (record,) = chat.service.folds.next_fold(chat.session_id, strategy=chat.view.strategy).ready
    return record


def test_an_edit_of_a_finished_summary_holds_when_it_takes_effect(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    made = ready(chat)
    assert records(chat) == ()
    edited = chat.service.folds.edit(chat.session_id, made.id, OWN_WORDS)
    assert (edited.version, edited.replaces) == (2, made.id)
    assert chat.service.folds.versions(chat.session_id, made.id) == (made, edited)
    # It's the user's own now: another length makes no other.
    chat.service.sessions.configure(chat.session_id, compression_rate=0.5)
    chat.ask(4, 4)
    assert records(chat) == (edited,)
    assert shape(newest(server)) == [(1, 3), 4]
    assert holds(newest(server), OWN_WORDS)
    assert are_verified(chat, 4)
    assert folds_marked(chat) == [4]


def test_a_finished_summary_is_regenerated_added_to_and_undone_as_any_other(chat: Chat, server: FakeOpenAI) -> None:
    folds = chat.service.folds
    chat.ask(1, 3)
    made = ready(chat)
    remade = folds.remake(chat.session_id, made.id, rate=0.1, instruction=INSTRUCTION)
    assert (records(chat), remade.replaces) == ((remade,), made.id)
    chat.ask(4, 6)
    missing = ready(chat)
    assert folds.undo(chat.session_id, missing.id) is not None
    chat.ask(7, 7)
    assert [record.kind for record in records(chat)] == ["interval", "verbatim"]
    assert "질문 4번입니다" in sent_text(newest(server))


def test_a_finished_summary_isnt_changed_while_a_turn_runs_and_goes_with_its_turn(
    chat: Chat, server: FakeOpenAI
) -> None:
    chat.ask(1, 3)
    made = ready(chat)
    chat.regenerate()
    chat.wait_for_folds()
    assert ready(chat).id != made.id
    assert refusal(chat, "edit", made.id, text=OWN_WORDS)[0] == "not_active"
    assert refusal(chat, "edit", ready(chat).id, text="")[0] == "empty"
    begin_hanging_turn(chat, server, 4)
    edited = chat.service.folds.edit(chat.session_id, records(chat)[0].id, OWN_WORDS)
    stop(chat)
    assert records(chat) == (edited,)


# Versions


def test_an_edited_summary_is_sent_from_the_next_turn_on_and_can_be_taken_back(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    folds, (made,) = chat.service.folds, records(chat)
    edited = folds.edit(chat.session_id, made.id, f"  {OWN_WORDS}\0 ")
    assert (edited.edited, edited.version, edited.replaces, edited.kind) == (True, 2, made.id, "interval")
    assert edited.summary == f"{OWN_WORDS}\ufffd"
    assert (edited.summary_chars, edited.input_tokens) == (len(edited.summary), 0)
    assert 0 < edited.summary_tokens != made.summary_tokens
    # Its facts are compared with those of its source.
    assert "10월 1일" in edited.kept_facts
    assert any("20만" in fact for fact in edited.missing_facts)
    assert records(chat) == (edited,)
    chat.ask(5, 5)
    assert shape(newest(server)) == [(1, 3), 4, 5]
    assert holds(newest(server), OWN_WORDS)
    assert not holds(newest(server), made.summary)
    assert folds.versions(chat.session_id, made.id) == folds.versions(chat.session_id, edited.id) == (made, edited)
    assert folds.use_version(chat.session_id, made.id) == made
    chat.ask(6, 6)
    assert holds(newest(server), made.summary)
    folds.use_version(chat.session_id, edited.id)
    folds.use_version(chat.session_id, edited.id)
    assert records(chat) == (edited,)
    assert are_verified(chat, 4, 5, 6)
    assert folds_marked(chat) == [4]


WITH_FACTS = {
    "ko": (
        "사내 위키를 옮기자. 담당은 김민수 대리예요. 방은 116호, 접수 번호는 OPS-4711이에요. 메일은 더 보내지 마세요.",
        "방은 116호, 접수 번호는 OPS-4711이에요.",
        "(1턴) 사용자: ",
        "위키를 옮긴다.\n사실: 김민수\n질문: 언제 옮길까?",
    ),
    "en": (
        "Dana Reyes is in charge. We meet in room 116, and the ticket is OPS-4711. Never send more than two emails.",
        "We meet in room 116, and the ticket is OPS-4711.",
        "(turn 1) User: ",
        "The wiki moves.\nQuestion: when shall it move?\n1. now\n2. in March\nFacts: Dana Reyes",
    ),
}


@pytest.mark.parametrize("language", ["ko", "en"])
def test_a_missing_fact_is_added_to_its_summary_with_its_sentence(
    chat: Chat, server: FakeOpenAI, language: Literal["ko", "en"]
) -> None:
    message, sentence, mark, bare_text = WITH_FACTS[language]
    chat.say(message)
    chat.ask(2, 4)
    folds, (made,) = chat.service.folds, records(chat)
    bare = folds.edit(chat.session_id, made.id, bare_text)
    assert folds.lacks_firm(bare)
    places = {place.text: place for place in folds.missing_facts(chat.session_id, bare.id)}
    # What the line has isn't in the text, and not missing either.
    in_line = line_in(bare_text)
    assert tuple(places) == tuple(fact for fact in bare.missing_facts if fact not in in_line)
    place = places["OPS-4711"]
    assert (place.clause, place.turn, place.role) == (sentence, 1, "human")
    assert place.message_id == chat.turns[0].user_message_id
    # The line of facts and the question stay the last (older records: the question first); nothing is added twice.
    added = folds.add_fact(chat.session_id, bare.id, "OPS-4711")
    text, _, line = bare_text.partition("\n")
    assert added.summary == f"{text}\n{mark}{sentence}\n{line}"
    assert (added.edited, added.version) == (True, 3)
    assert "OPS-4711" in added.kept_facts
    assert folds.add_fact(chat.session_id, bare.id, "OPS-4711") == added
    # A list that was drawn before adds to the version in use.
    for fact in places:
        added = folds.add_fact(chat.session_id, bare.id, fact)
    assert (folds.lacking(added), folds.lacks_firm(added)) == ((), False)
    chat.ask(5, 5)
    assert holds(newest(server), sentence)
    folds.reset(chat.session_id)
    assert refusal(chat, "add_fact", bare.id, fact="OPS-4711") == ("not_active", "not_active")


def test_a_fact_of_a_long_sentence_or_of_a_row_is_added_with_what_stands_about_it(chat: Chat) -> None:
    weights = ", ".join(f"{number} kg" for number in range(1000, 1060))
    table = "| 이름 | 번호 |\n|---|---|\n| 접수 | OPS-4711 |"
    chat.say(f"재어 보니 {weights} 나왔어요.\n{table}\n116호가 가까워요. 자리는 16호예요.")
    chat.ask(2, 4)
    folds, (made,) = chat.service.folds, records(chat)
    bare = folds.edit(chat.session_id, made.id, "무게를 쟀다.")
    clauses = {place.text: place.clause for place in folds.missing_facts(chat.session_id, bare.id)}
    assert len({clause for fact, clause in clauses.items() if "kg" in fact}) < 10
    assert all(fact in clause and len(clause) <= 200 for fact, clause in clauses.items())
    assert clauses["16호"] == "자리는 16호예요."


def test_a_mark_of_invented_facts_goes_with_them(chat: Chat, server: FakeOpenAI) -> None:
    assert server.bodies() == []
    chat.ask(1, 4)
    (made,) = records(chat)
    chat.change(f"UPDATE record SET invented_facts = '[\"990만 원\", \"KX-7781\"]' WHERE id = '{made.id}'")  # noqa: S608  # an id of our own
    folds = chat.service.folds
    edited = folds.edit(chat.session_id, made.id, "예산은 990만 원이다.")
    assert edited.invented_facts == ("990만 원",)
    assert folds.edit(chat.session_id, edited.id, "예산은 900만 원이다.").invented_facts == ()
    undone = folds.undo(chat.session_id, made.id)
    assert undone is not None
    assert (undone.invented_facts, undone.needed_rate) == ((), 0)


def test_an_undone_fold_is_sent_word_for_word_and_folded_again(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    folds, (made,) = chat.service.folds, records(chat)
    undone = folds.undo(chat.session_id, made.id)
    assert undone is not None
    assert (undone.kind, undone.version, undone.turns, undone.missing_facts) == ("verbatim", 2, (1, 2, 3), ())
    chat.ask(5, 6)
    assert shape(newest(server)) == [(1, 3), 4, 5, 6]
    assert all(question(number) in content_of(newest(server)["messages"][0]) for number in (1, 2, 3))
    assert are_verified(chat, 6)
    assert refusal(chat, "undo", undone.id) == ("stands_verbatim", "stands_verbatim")
    again = folds.fold_again(chat.session_id, undone.id)
    assert (again.kind, again.version, again.compression_rate) == ("interval", 3, 0.3)
    assert folds.versions(chat.session_id, made.id) == (made, undone, again)
    chat.ask(7, 7)
    assert holds(newest(server), again.summary)
    assert question(3) not in content_of(newest(server)["messages"][0])
    assert folds_marked(chat) == [4, 7]


def test_a_fold_is_made_anew_at_another_rate_with_a_wish(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 7)
    folds, (made, newest_made) = chat.service.folds, records(chat)
    before, spent = asked(server), folds.statistics(chat.session_id).fold_tokens
    again = folds.remake(chat.session_id, made.id, rate=0.5, instruction=INSTRUCTION)
    assert (again.compression_rate, again.version, again.replaces, again.wish) == (0.5, 2, made.id, INSTRUCTION)
    assert again.target_chars == int(made.original_chars * 0.5)
    assert '“가격은 꼭 "원" 단위로 남겨 주세요&lt;/source>”' in asked(server)
    assert "사용자의 요청입니다" not in before
    assert records(chat)[0] == again
    statistics = folds.statistics(chat.session_id)
    assert statistics.fold_tokens == spent + again.input_tokens + again.output_tokens > spent
    assert (statistics.record_count, statistics.summary_chars) == (2, again.summary_chars + newest_made.summary_chars)
    # The newest one is made of its source, though the last input holds that no more.
    assert folds.remake(chat.session_id, newest_made.id, rate=0.2).turns == (4, 5, 6)
    assert all(question(number) in asked(server) for number in (4, 5, 6))


def test_a_short_block_is_summarised_when_the_user_asks_for_it(chat: Chat, server: FakeOpenAI) -> None:
    for number in range(1, 5):
        server.script(text("네, 적어 두었습니다. 자료는 그 전날까지 준비하면 됩니다."))
        chat.say(f"회의는 11월 {number}일 오후 3시예요. 장소는 본관인가요?")
    chat.wait_for_folds()
    folds, (short,) = chat.service.folds, records(chat)
    assert (short.kind, short.version, server.bodies("summary")) == ("verbatim", 1, [])
    assert refusal(chat, "undo", short.id) == ("stands_verbatim", "stands_verbatim")
    server.script(text("(1턴) 회의 11월 1일 (2턴) 11월 2일 (3턴) 11월 3일, 오후 3시"), kind="summary")
    made = folds.fold_again(chat.session_id, short.id)
    assert (made.kind, made.version, made.replaces, made.compression_rate) == ("interval", 2, short.id, 0.3)
    assert folds.versions(chat.session_id, short.id) == (short, made)
    chat.ask(5, 7)
    assert holds(newest(server), made.summary)
    assert [record.kind for record in records(chat)] == ["interval", "interval"]
    undone = folds.undo(chat.session_id, made.id)
    assert undone is not None
    assert folds.use_version(chat.session_id, short.id).kind == "verbatim"


def test_what_cannot_be_changed_says_why(chat: Chat, server: FakeOpenAI) -> None:
    for number in range(1, 5):
        server.script(text("네."))
        chat.say(f"질문 {number}?")
    chat.wait_for_folds()
    (short,) = records(chat)
    assert refusal(chat, "remake", short.id, rate=0.3) == ("remake_failed", "summary_inflated")
    assert records(chat) == (short,)
    chat.ask(5, 7)
    folds, made = chat.service.folds, records(chat)[-1]
    for words, reason in ((" \u200b\n", "empty"), ("가" * 5_000, "not_shorter"), ("가" * 1_000_000, "too_long")):
        assert refusal(chat, "edit", made.id, text=words)[0] == reason
    assert refusal(chat, "remake", made.id, rate=0.6)[0] == "bad_rate"
    assert refusal(chat, "remake", made.id, rate=0.3, instruction="가" * 301) == ("too_long", "301 > 300")
    server.script(failure(401), kind="summary")
    assert refusal(chat, "remake", made.id, rate=0.3) == ("remake_failed", "authentication")
    assert folds.versions(chat.session_id, made.id) == (made,)
    folds.reset(chat.session_id)
    assert refusal(chat, "remake", made.id, rate=0.3)[0] == "not_active"
    assert refusal(chat, "undo", made.id)[0] == "not_active"
    assert refusal(chat, "edit", made.id, text=OWN_WORDS)[0] == "not_active"
    with pytest.raises(NotFoundError):
        folds.edit(chat.session_id, "rec-none", OWN_WORDS)
    with pytest.raises(NotFoundError):
        folds.versions(chat.session_id, "rec-none")


def test_folds_are_changed_while_a_turn_runs(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 7)
    folds, (first, second) = chat.service.folds, records(chat)
    begin_hanging_turn(chat, server, 8)
    edited = folds.edit(chat.session_id, first.id, OWN_WORDS)
    again = folds.remake(chat.session_id, edited.id, rate=0.5)
    undone = folds.undo(chat.session_id, second.id)
    assert undone is not None
    assert holds(newest(server), first.summary)
    stop(chat)
    chat.ask(9, 9)
    assert records(chat) == (again, undone)
    assert holds(newest(server), again.summary)
    assert question(4) in content_of(newest(server)["messages"][0])


def test_making_anew_counts_among_what_runs(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1)
    chat.ask(1, 4)
    begin_hanging_turn(chat, server, 5)
    with pytest.raises(ServerBusyError):
        chat.service.folds.remake(chat.session_id, records(chat)[0].id, rate=0.5)
    stop(chat)


def test_an_answer_that_is_given_anew_takes_every_version_of_its_block_away(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 7)
    last = records(chat)[-1]
    chat.service.folds.edit(chat.session_id, last.id, "서버는 10월에 옮깁니다.")
    chat.service.folds.undo(chat.session_id, last.id)
    forked = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=6))
    forked.regenerate()
    forked.ask(7, 7)
    assert shape(newest(server)) == [(1, 3), (4, 6), 7]
    assert (records(forked)[-1].kind, records(forked)[-1].version) == ("interval", 1)


def test_a_merge_gives_way_to_its_sources_and_is_not_merged_again(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**MERGING)
    folds = chat.service.folds
    chat.ask(1, 4)
    (first,) = records(chat)
    folds.edit(chat.session_id, first.id, OWN_WORDS * 2)
    merge = ask_until_merged(chat, 5)
    assert merge.turns == (1, 2, 3, 4, 5, 6)
    # No version of what was merged is active again.
    assert refusal(chat, "edit", first.id, text=OWN_WORDS)[0] == "not_active"
    assert refusal(chat, "use_version", first.id)[0] == "not_active"
    assert len(folds.versions(chat.session_id, first.id)) == 2
    assert folds.undo(chat.session_id, merge.id) is None
    parts = [(1, 2, 3), (4, 5, 6)]
    assert chat.covered[:2] == parts
    number = len(chat.turns)
    while "merge" not in {record.kind for record in records(chat)}:
        number += 1
        assert number < 40
        chat.ask(number, number)
    assert chat.covered[:2] == parts
    assert shape(newest(server))[:2] == [(1, 3), (4, 6)]
    folds.edit(chat.session_id, records(chat)[0].id, "서버는 10월 1일에 옮깁니다.")
    assert folds.use_version(chat.session_id, merge.id) == records(chat)[0] == merge
    again = folds.remake(chat.session_id, merge.id, rate=0.4)
    assert (again.kind, again.sources, again.turns, again.level) == ("merge", merge.sources, merge.turns, merge.level)
    assert folds.undo(chat.session_id, again.id) is None
    assert chat.covered[:2] == parts


def test_a_merge_that_was_made_before_an_edit_does_not_undo_it(chat_with: OpenChat) -> None:
    chat = chat_with(**MERGING)
    waiting = "SELECT id FROM record WHERE session_id = ? AND kind = 'merge' AND adopted_at IS NULL"
    number = 0
    while not (made := chat.rows(waiting, chat.session_id)):
        number += 1
        chat.ask(number, number)
    ((merge_id,),) = made
    edited = chat.service.folds.edit(chat.session_id, records(chat)[0].id, OWN_WORDS * 2)
    access = chat.service._engine.access  # noqa: SLF001  # as a turn does that read the records before the edit
    with access.between_turns(chat.session_id) as lease:
        assert not access.stores.records.adopt(lease, merge_id)
    assert records(chat)[0] == edited
    assert edited.id in ask_until_merged(chat, number + 1).sources


def test_an_edited_merge_gives_way_to_its_sources_in_a_fork(chat_with: OpenChat) -> None:
    chat = chat_with(**MERGING)
    merge = ask_until_merged(chat)
    edited = chat.service.folds.edit(chat.session_id, merge.id, OWN_WORDS)
    assert (edited.kind, edited.sources, edited.turns) == ("merge", merge.sources, merge.turns)
    forked = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=5))
    assert forked.covered == [(1, 2, 3)]
    whole = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=8))
    (made, again) = whole.service.folds.versions(whole.session_id, records(whole)[0].id)
    assert (again.summary, again.replaces, made.summary) == (OWN_WORDS, made.id, merge.summary)


def test_a_compaction_is_restored_after_an_edit(chat: Chat) -> None:
    chat.ask(1, 6)
    before = records(chat)
    chat.service.folds.compact(chat.session_id)
    edited = chat.service.folds.edit(chat.session_id, records(chat)[0].id, OWN_WORDS)
    assert chat.service.folds.compactions(chat.session_id) == (edited,)
    chat.service.folds.restore(chat.session_id, edited.id)
    assert records(chat) == before


def test_a_compaction_gives_way_to_its_messages_and_the_next_one_comes_in_time(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**COMPACTING)

    def restored_tokens() -> int:
        ((tokens,),) = chat.rows("SELECT restored_tokens FROM session WHERE session_id = ?", chat.session_id)
        return int(tokens)

    last = ask_until_compacted(chat)
    folds, (made,) = chat.service.folds, records(chat)
    undone = folds.undo(chat.session_id, made.id)
    assert undone is not None
    assert restored_tokens() > 0
    chat.ask(last + 1, last + 1)  # it is not made again at once
    assert records(chat) == (undone,)
    assert question(1) in content_of(newest(server)["messages"][1])
    folds.use_version(chat.session_id, made.id)
    assert restored_tokens() == 0
    folds.use_version(chat.session_id, undone.id)
    assert restored_tokens() > 0
    again = folds.remake(chat.session_id, undone.id, rate=0.3)
    assert (again.kind, again.context_tokens) == ("compaction", made.context_tokens)
    assert folds.compactions(chat.session_id)[0].id == again.id
    assert restored_tokens() == 0
    # As after a later compaction was restored.
    chat.change(f"UPDATE session SET restored_tokens = 900 WHERE session_id = '{chat.session_id}'")  # noqa: S608  # our own
    folds.edit(chat.session_id, again.id, "서버는 10월에 옮깁니다.")
    assert restored_tokens() == 900


def test_a_rolling_summary_is_made_anew_of_the_one_before_and_what_was_said_since(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**EARLY["rolling"])
    chat.ask(1, 7)
    (last,) = records(chat)
    assert last.sources
    again = chat.service.folds.remake(chat.session_id, last.id, rate=0.5, instruction=INSTRUCTION)
    assert (again.kind, again.sources, again.version) == ("rolling", last.sources, last.version + 1)
    assert "This is what the user asks" in asked(server)
    chat.ask(8, 11)
    sources = chat.rows("SELECT sources FROM record WHERE session_id = ?", chat.session_id)
    assert any(again.id in source for (source,) in sources)


# Pins


def pin(chat: Chat, turn: int) -> PinView:
    """Pins the question of a turn."""
    return chat.service.folds.pin(chat.session_id, chat.turns[turn - 1].user_message_id)


def unpin(chat: Chat, turn: int) -> PinView:
    return chat.service.folds.unpin(chat.session_id, chat.turns[turn - 1].user_message_id)


def pinned(chat: Chat) -> list[int]:
    return [message.turn for message in chat.service.folds.pins(chat.session_id).messages]


def pinned_line(turn: int) -> str:
    return f"[{turn}턴 사용자 원문] {question(turn)}"


def test_a_pinned_message_stands_under_its_record_once_it_is_folded(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    view = pin(chat, 2)
    assert [(message.turn, message.tokens) for message in view.messages] == [(2, view.used_tokens)]
    assert 0 < view.used_tokens < view.budget_tokens
    chat.ask(3, 3)
    assert "원문]" not in sent_text(newest(server))
    chat.ask(4, 7)
    system = content_of(newest(server)["messages"][0]).splitlines()
    index = system.index(pinned_line(2))
    assert system[index - 1].startswith(("[1-3턴] ", "  "))
    assert system[index + 1].startswith("[4-6턴] ")
    assert sent_text(newest(server)).count(pinned_line(2)) == 1
    assert shape(newest(server)) == [(1, 3), (4, 6), 7]
    (call,) = chat.service.inputs.of_turn(chat.session_id, 7)
    assert [block.kind for block in call.blocks][:4] == ["system", "record", "pin", "record"]
    assert (call.blocks[2].text, call.blocks[2].role, call.blocks[2].tokens) == (question(2), "user", view.used_tokens)
    assert unpin(chat, 2).messages == unpin(chat, 2).messages == ()
    chat.ask(8, 8)
    assert "원문]" not in sent_text(newest(server))
    assert are_verified(chat, 3, 4, 7, 8)


@pytest.mark.parametrize("strategy", EARLY)
def test_a_pinned_message_is_sent_once_by_every_strategy_that_sends_records(
    chat_with: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = chat_with(**EARLY[strategy])
    chat.ask(1, 2)
    pin(chat, 1)
    chat.service.folds.pin(chat.session_id, chat.turns[1].answer_message_id)
    chat.ask(3, 9)
    assert {1, 2} <= set(chat.covered[0])
    assert sent_text(newest(server)).count(pinned_line(1)) == 1
    assert sent_text(newest(server)).count("[2턴 AI 원문] ") == 1
    assert are_verified(chat, *range(1, 10))
    chat.service.sessions.configure(chat.session_id, strategy="window")
    chat.ask(10, 10)
    assert "원문]" not in sent_text(newest(server))


def test_pins_stay_under_a_merge_and_go_along_into_a_fork(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**MERGING)
    chat.ask(1, 5)
    pin(chat, 2)
    pin(chat, 5)
    assert ask_until_merged(chat, 6).turns == (1, 2, 3, 4, 5, 6)
    system = content_of(newest(server)["messages"][0]).splitlines()
    indexes = [system.index(pinned_line(turn)) for turn in (2, 5)]
    assert indexes[1] == indexes[0] + 1
    assert are_verified(chat, len(chat.turns))
    forked = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=4))
    assert pinned(forked) == [2]
    forked.ask(5, 5)
    assert sent_text(newest(server)).count(pinned_line(2)) == 1
    unpin(forked, 2)
    assert pinned(chat) == [2, 5]


def test_a_message_is_pinned_while_a_turn_runs_for_the_turns_to_come(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    server.script(tools(CLOCK), hang(), to=question(5))
    chat.start(question(5))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    pin(chat, 1)
    stop(chat)
    assert "원문]" not in sent_text(newest(server))
    chat.ask(6, 6)
    assert sent_text(newest(server)).count(pinned_line(1)) == 1


@pytest.mark.parametrize("window_tokens", [4_000, 100_000])
def test_a_pin_that_is_too_long_is_refused_with_its_tokens_and_those_left(
    chat_with: OpenChat, window_tokens: int
) -> None:
    chat = chat_with(model_window_tokens=window_tokens)
    chat.ask(1, 1)
    share = min(4_000, int(window_tokens * chat.service.settings.guard_share) // 8)
    long = "가나다 " * (share * 2 // 5)
    chat.say(long)
    view = pin(chat, 1)
    assert view.budget_tokens == share
    left = view.budget_tokens - view.used_tokens
    needed = estimate_tokens(f"[2턴 사용자 원문] {long.strip()}")
    assert refusal(chat, "pin", chat.turns[1].user_message_id) == ("pin_budget", f"{needed} > {left}")
    assert chat.service.folds.pins(chat.session_id) == view == pin(chat, 1)


def test_a_pin_is_told_by_its_first_words(chat: Chat) -> None:
    chat.ask(1, 1)
    (entry,) = pin(chat, 1).messages
    assert entry.title.startswith("질문 1번입니다.")
    assert len(entry.title) < len(question(1))


def test_only_words_that_stand_in_the_chat_are_pinned(chat: Chat, server: FakeOpenAI) -> None:
    folds = chat.service.folds
    server.script(tools(CLOCK), text("낮입니다."))
    chat.say(question(1))
    query = "SELECT role, message_id FROM message WHERE session_id = ? ORDER BY position"
    rows = chat.rows(query, chat.session_id)
    silent = [message_id for role, message_id in rows if role == "tool"] + [rows[1][1]]
    assert [refusal(chat, "pin", message_id)[0] for message_id in silent] == ["empty"] * 2
    with pytest.raises(NotFoundError):
        folds.pin(chat.session_id, "no-such-message")
    assert pinned(chat) == []
    # An answer that is given anew is pinned no more.
    answered = chat.last_turn.answer_message_id
    assert len(folds.pin(chat.session_id, answered).messages) == 1
    chat.regenerate()
    assert pinned(chat) == []
    with pytest.raises(NotFoundError):
        folds.pin(chat.session_id, answered)


def test_what_was_pinned_before_a_reset_takes_no_room_and_is_sent_again_once_that_is_undone(
    chat: Chat, server: FakeOpenAI
) -> None:
    chat.ask(1, 4)
    pin(chat, 1)
    folds = chat.service.folds
    folds.reset(chat.session_id)
    assert pinned(chat) == []
    assert folds.pins(chat.session_id).used_tokens == 0
    assert refusal(chat, "pin", chat.turns[1].user_message_id)[0] == "before_reset"
    folds.undo_reset(chat.session_id)
    assert pinned(chat) == [1]
    chat.ask(5, 5)
    assert sent_text(newest(server)).count(pinned_line(1)) == 1
    assert raw_turns(newest(server)) == [4, 5]
    folds.reset(chat.session_id)
    chat.ask(6, 6)
    assert "원문]" not in sent_text(newest(server))


def test_a_pinned_message_that_a_rolling_input_cuts_is_sent_whole_beside_it(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(context_strategy="rolling", rolling_sends_unsummarised=False)
    chat.say(question(1) + " 자세히 적습니다." * 300 + " 끝말은 은하수입니다.")
    chat.ask(2, 2)
    assert "은하수" not in sent_text(newest(server))
    pin(chat, 1)
    chat.ask(3, 3)
    assert sent_text(newest(server)).count("[1턴 사용자 원문] ") == 1
    assert "은하수" in sent_text(newest(server))
    assert are_verified(chat, 1, 2, 3)
