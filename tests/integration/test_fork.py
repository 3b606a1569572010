from __future__ import annotations

from pathlib import Path

import pytest

from graph.error import BusyError, NotFoundError, ProjectDamagedError
from graph.event import TurnStopped
from graph.view import TurnOptions
from tests.fake.body import content_of, shape, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.context_source import FRONT, ScriptedContext
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by

OWN = ("session", "turn", "message", "record", "context_reset", "context_block", "model_call", "image", "pin")


def rows_of(chat: Chat) -> list[object]:
    """All that the file holds of a session."""
    return [chat.rows(f"SELECT * FROM {table} WHERE session_id = ?", chat.session_id) for table in OWN]  # noqa: S608  # names of our own


def fork(chat: Chat, after_turn: int, **of_program: str) -> Chat:
    before = rows_of(chat)
    forked = chat.service.sessions.fork(chat.session_id, after_turn=after_turn, **of_program)
    assert rows_of(chat) == before
    return Chat(chat.service, forked)


def test_a_fork_goes_on_with_the_same_summaries_and_pays_for_none(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 9)
    made = len(server.bodies("summary"))
    forked = fork(chat, 8)
    forked.ask(9, 9)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), 7, 8, 9]
    assert len(server.bodies("summary")) == made + 1  # turns 7 to 9 of the fork
    assert forked.service.folds.statistics(forked.session_id).fold_tokens > 0
    ours, theirs = chat.service.folds.records(chat.session_id), forked.service.folds.records(forked.session_id)
    assert [record.summary for record in theirs] == [record.summary for record in ours[:2]]
    assert {record.id for record in theirs}.isdisjoint(record.id for record in ours)
    assert [record.input_tokens for record in theirs] == [0, 0]


def test_a_summary_that_is_prepared_is_taken_over_too(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    made = len(server.bodies("summary"))
    forked = fork(chat, 3)
    forked.ask(4, 4)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]
    assert len(server.bodies("summary")) == made == 1


def test_a_merge_that_reaches_further_gives_way_to_what_it_was_made_from(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(records_budget_tokens=500, merged_together=4, newest_records=2, merged_tokens=300)
    chat.ask(1, 26)
    assert chat.service.folds.records(chat.session_id)[0].turns == tuple(range(1, 13))
    forked = fork(chat, 8)
    assert forked.covered == [(1, 2, 3), (4, 5, 6)]
    forked.ask(9, 9)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), 7, 8, 9]
    inside = fork(chat, 14)
    first, *rest = inside.service.folds.records(inside.session_id)
    assert (first.kind, len(first.sources), rest) == ("merge", 4, [])
    stored = inside.rows("SELECT id FROM record WHERE session_id = ?", inside.session_id)
    assert {(source,) for source in first.sources} < set(stored)


def test_a_compaction_that_reaches_further_gives_way_to_raw_turns(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 6)
    chat.service.folds.compact(chat.session_id)
    assert chat.covered == [(1, 2, 3, 4)]
    inside = fork(chat, 5)
    assert [record.turns for record in inside.service.folds.compactions(inside.session_id)] == [(1, 2, 3, 4)]
    forked = fork(chat, 3)
    assert forked.service.folds.compactions(forked.session_id) == ()
    forked.ask(4, 4)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]


def test_the_context_of_a_fork_begins_behind_the_reset_that_was_the_last_one_there(
    chat: Chat, server: FakeOpenAI
) -> None:
    chat.ask(1, 2)
    chat.service.folds.reset(chat.session_id)
    chat.ask(3, 4)
    chat.service.folds.reset(chat.session_id)
    chat.ask(5, 5)
    for after, sent in ((1, [1, 2]), (2, [3]), (3, [(3, 3), 4]), (4, [5]), (5, [5, 6])):
        forked = fork(chat, after)
        shown = forked.service.turns.transcript(forked.session_id)
        assert shown.reset_after == tuple(turn for turn in (2, 4) if turn <= after)
        assert shown.can_undo_reset == (after in (2, 4))
        forked.ask(after + 1, after + 1)
        assert shape(server.bodies("chat")[-1]) == sent


def test_a_fork_has_the_newest_attempt_of_each_turn_and_its_words_are_found(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(text("코끼리를 고르세요."), text("기린을 고르세요."))
    chat.say("무슨 동물이 좋을까요?")
    chat.regenerate()
    chat.ask(3, 3)
    forked = fork(chat, 2)
    assert [turn.answer_text for turn in forked.turns][1:] == ["기린을 고르세요."]
    assert forked.turns[1].attempt == 2
    found = {item.session_id for item in forked.service.sessions.list(search="기린")}
    assert found == {chat.session_id, forked.session_id}
    assert forked.rows("SELECT count(*) FROM message WHERE session_id = ?", forked.session_id) == [(4,)]
    forked.regenerate()
    assert forked.turns[1].attempt == 3


def test_a_fork_has_title_and_settings_and_tells_where_it_comes_from(chat: Chat) -> None:
    chat.ask(1, 4)
    chat.service.sessions.configure(chat.session_id, compression_rate=0.45, strategy="rolling")
    forked = fork(chat, 2, family="branches", client="editor")
    ours, theirs = chat.view, forked.view
    assert (theirs.title, theirs.compression_rate, theirs.strategy) == (ours.title, 0.45, "rolling")
    columns = "client, family, forked_from, forked_after, turn_count"
    row = forked.rows(f"SELECT {columns} FROM session WHERE session_id = ?", forked.session_id)  # noqa: S608  # names of our own
    assert row == [("editor", "branches", chat.session_id, 2, 2)]


def test_a_fork_stays_when_its_origin_is_deleted(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 5)
    forked = fork(chat, 4)
    chat.service.sessions.delete(chat.session_id)
    forked.ask(5, 5)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5]


def test_an_empty_fork_begins_with_its_first_message(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    forked = fork(chat, 0, family="branches")
    assert [item.session_id for item in chat.service.sessions.list()] == [chat.session_id]
    forked.say("Which of the two servers moves first, and who is in charge of it?")
    assert content_of(server.bodies("chat")[-1]["messages"][0]).endswith("say so.")
    assert forked.view.turn_count == 1


def test_a_session_is_forked_while_its_newest_turn_runs(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    server.script(hang(), to=question(5))
    chat.start(question(5))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    forked = Chat(chat.service, chat.service.sessions.fork(chat.session_id, after_turn=4))
    with pytest.raises(BusyError):
        chat.service.sessions.fork(chat.session_id, after_turn=5)
    forked.say("다른 물음입니다. 먼저 옮길 서버는 무엇인가요?")
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]
    chat.service.turns.stop(chat.session_id)
    assert isinstance(chat.events()[-1], TurnStopped)
    chat.ask(6, 6)


@pytest.mark.parametrize("after_turn", [-1, 3])
def test_a_turn_that_there_is_not_cannot_be_forked_from(chat: Chat, after_turn: int) -> None:
    chat.ask(1, 2)
    with pytest.raises(NotFoundError):
        chat.service.sessions.fork(chat.session_id, after_turn=after_turn)
    assert chat.rows("SELECT count(*) FROM session") == [(1,)]


def test_a_fork_in_a_project_is_told_the_front_that_is_in_force(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path
) -> None:
    chat = open_chat(context=source, project_roots=(root.parent,))
    options = TurnOptions(project_root=str(root), context={"currentFile": "file.py"})
    chat.say(question(1), options=options)
    forked = fork(chat, 1)
    kinds = "SELECT kind FROM context_block WHERE session_id = ? ORDER BY kind"
    assert forked.rows(kinds, forked.session_id) == forked.rows(kinds, chat.session_id) != []
    source.error = ProjectDamagedError("context.json", "line 1")
    forked.ask(2, 2)
    assert FRONT in system_prompt(server.bodies("chat")[-1])


def test_a_fork_has_lost_nothing_by_what_a_program_changed_before(chat: Chat) -> None:
    for number, system in enumerate(("Be brief.", "Be long."), start=1):
        chat.say(question(number), options=asked_by(system=system))
    assert chat.service.folds.statistics(chat.session_id).client_changes == 1
    forked = fork(chat, 2)
    statistics = forked.service.folds.statistics(forked.session_id)
    assert (statistics.client_changes, statistics.lost_tokens) == (0, 0)
