"""Branches: a fork takes a session's turns over; an edited question or another answer is asked in a fork."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.core.text import title_of
from graph.value.error import BusyError, InputError, NotFoundError, ProjectDamagedError, TurnRateError
from graph.value.event import TurnFinished, TurnStopped
from graph.value.view import StartedTurn, TurnOptions
from tests.fake.body import content_of, shape, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.context_source import FRONT, ScriptedContext
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by

PNG, WEB = "data:image/png;base64,iVBORw0K", "https://example.org/floor.png"
TABLES = (
    "session",
    "turn",
    "attempt",
    "message",
    "record",
    "context_reset",
    "context_block",
    "model_call",
    "image",
    "pin",
)
OTHER = "서버를 11월 20일에 옮기면 무엇이 달라지는지 설명해 주세요."


def rows_of(chat: Chat) -> list[object]:
    """All that the file holds of a session."""
    return [chat.rows(f"SELECT * FROM {table} WHERE session_id = ?", chat.session_id) for table in TABLES]  # noqa: S608  # names of our own


def fork(chat: Chat, after_turn: int, **of_program: str) -> Chat:
    before = rows_of(chat)
    forked = chat.service.turns.fork(chat.session_id, after_turn=after_turn, **of_program)
    assert rows_of(chat) == before
    return Chat(chat.service, forked)


def ended(chat: Chat, session_id: str) -> Chat:
    """The branch, once its turn has its answer."""
    branch = Chat(chat.service, session_id)
    assert isinstance(branch.events()[-1], TurnFinished)
    return branch


def test_fork_keeps_the_summaries_up_to_its_turn_and_pays_for_none(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 9)
    made = len(server.bodies("summary"))
    forked = fork(chat, 8)
    ours, theirs = chat.service.folds.records(chat.session_id), forked.service.folds.records(forked.session_id)
    assert [record.summary for record in theirs] == [record.summary for record in ours[:2]]
    assert {record.id for record in theirs}.isdisjoint(record.id for record in ours)
    assert [record.input_tokens for record in theirs] == [0, 0]
    prepared = fork(chat, 9)
    chat.service.sessions.delete(chat.session_id)
    prepared.ask(10, 10)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), (7, 9), 10]
    assert len(server.bodies("summary")) == made  # that of turns 7 to 9 had been prepared, and was taken over
    forked.ask(9, 9)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), 7, 8, 9]
    assert len(server.bodies("summary")) == made + 1
    assert forked.service.folds.statistics(forked.session_id).fold_tokens > 0


def test_merge_beyond_a_fork_gives_way_to_its_sources(open_chat: OpenChat, server: FakeOpenAI) -> None:
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


def test_compaction_beyond_a_fork_gives_way_to_raw_turns(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 6)
    chat.service.folds.compact(chat.session_id)
    assert chat.covered == [(1, 2, 3, 4)]
    inside = fork(chat, 5)
    assert [record.turns for record in inside.service.folds.compactions(inside.session_id)] == [(1, 2, 3, 4)]
    forked = fork(chat, 3)
    assert forked.service.folds.compactions(forked.session_id) == ()
    forked.ask(4, 4)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]


def test_context_of_a_fork_begins_behind_the_last_reset_there(chat: Chat, server: FakeOpenAI) -> None:
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


def test_fork_has_the_attempts_of_each_turn_title_settings_and_origin(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(text("코끼리를 고르세요."), text("기린을 고르세요."))
    chat.say("무슨 동물이 좋을까요?")
    chat.regenerate()
    chat.ask(3, 3)
    chat.service.sessions.configure(chat.session_id, compression_rate=0.45, strategy="rolling")
    forked = fork(chat, 2, group="branches", client="editor")
    assert (forked.turns[1].answer_text, forked.turns[1].attempt) == ("기린을 고르세요.", 2)
    found = [forked.service.sessions.list(search=word) for word in ("코끼리", "기린")]
    assert [{item.session_id for item in items} for items in found] == [set(), {chat.session_id, forked.session_id}]
    assert forked.rows("SELECT count(*) FROM message WHERE session_id = ?", forked.session_id) == [(5,)]
    view = forked.view
    assert (view.title, view.compression_rate, view.strategy) == (chat.view.title, 0.45, "rolling")
    columns = "client, family, forked_from, forked_after, turn_count"
    row = forked.rows(f"SELECT {columns} FROM session WHERE session_id = ?", forked.session_id)  # noqa: S608  # names of our own
    assert row == [("editor", "branches", chat.session_id, 2, 2)]
    assert (view.forked_from, view.forked_after) == (chat.session_id, 2)
    forked.regenerate()
    assert forked.turns[1].attempt == 3
    chat.service.sessions.delete(chat.session_id)
    assert (forked.view.forked_from, forked.view.forked_after) == ("", 0)


def test_empty_fork_begins_with_its_first_message(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    forked = fork(chat, 0, group="branches")
    assert forked.session_id not in {item.session_id for item in chat.service.sessions.list()}
    forked.say("Which of the two servers moves first, and who is in charge of it?")
    assert content_of(server.bodies("chat")[-1]["messages"][0]).endswith("say so.")
    assert forked.view.turn_count == 1


def test_session_is_forked_and_edited_while_its_newest_turn_runs(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    server.script(hang(), to=question(5))
    chat.start(question(5))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    forked = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=4))
    with pytest.raises(BusyError):
        chat.service.turns.fork(chat.session_id, after_turn=5)
    forked.say("다른 물음입니다. 먼저 옮길 서버는 무엇인가요?")
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]
    branch = ended(chat, chat.service.turns.edit(chat.session_id, 5, OTHER))
    assert content_of(server.bodies("chat")[-1]["messages"][-1]).endswith(OTHER)
    assert shape(server.bodies("chat")[-1])[:2] == [(1, 3), 4]
    assert [turn.user_text for turn in branch.turns] == [*map(question, range(1, 5)), OTHER]
    assert (branch.view.forked_from, branch.view.forked_after) == (chat.session_id, 4)
    chat.service.turns.stop(chat.session_id)
    assert isinstance(chat.events()[-1], TurnStopped)
    chat.ask(6, 6)


def test_fork_is_told_the_front_in_force(
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


def test_fork_has_lost_nothing_by_what_a_program_changed_before(chat: Chat) -> None:
    for number, system in enumerate(("Be brief.", "Be long."), start=1):
        chat.say(question(number), options=asked_by(system=system))
    assert chat.service.folds.statistics(chat.session_id).client_changes == 1
    forked = fork(chat, 2)
    statistics = forked.service.folds.statistics(forked.session_id)
    assert (statistics.client_changes, statistics.lost_tokens) == (0, 0)


def test_earlier_answer_is_made_again_in_a_branch_the_last_in_place(chat: Chat, server: FakeOpenAI) -> None:
    turns = chat.service.turns
    chat.ask(1, 1)
    turns.send(chat.session_id, question(2), images=[PNG, WEB])
    assert isinstance(chat.events()[-1], TurnFinished)
    chat.ask(3, 3)
    before = rows_of(chat)
    server.script(text("다른 답입니다."))
    session_id, number = turns.regenerate(chat.session_id, turn=2)
    branch = ended(chat, session_id)
    assert (number, branch.last_turn.answer_text, branch.last_turn.attempt) == (2, "다른 답입니다.", 1)
    sent = server.bodies("chat")[-1]["messages"][-1]["content"]
    assert [part["image_url"]["url"] for part in sent if "image_url" in part] == [PNG, WEB]
    assert branch.last_turn.user_text == chat.turns[1].user_text
    assert rows_of(chat) == before
    again = ended(chat, turns.edit(chat.session_id, 2, ""))
    assert again.last_turn.user_text == "[image]\n[image]"
    assert rows_of(chat) == before
    # Edited as it is shown, the question says nothing of its images.
    shown = chat.turns[1].user_text.replace("질문", "물음", 1)
    edited = ended(chat, turns.edit(chat.session_id, 2, shown))
    words, *images = server.bodies("chat")[-1]["messages"][-1]["content"]
    assert words["text"].endswith(question(2).replace("질문", "물음", 1))
    assert (len(images), edited.last_turn.user_text) == (2, shown)
    server.script(text("셋째도 다릅니다."))
    assert turns.regenerate(chat.session_id, turn=3) == StartedTurn(chat.session_id, 3)
    chat.events()
    assert (chat.last_turn.answer_text, chat.last_turn.attempt) == ("셋째도 다릅니다.", 2)


def test_turn_that_there_is_not_is_neither_forked_nor_edited_nor_answered_again(chat: Chat) -> None:
    chat.ask(1, 2)
    count = chat.rows("SELECT count(*) FROM session")
    for turn in (0, -1, 3):
        with pytest.raises(NotFoundError):
            chat.service.turns.edit(chat.session_id, turn, OTHER)
        with pytest.raises(NotFoundError):
            chat.service.turns.regenerate(chat.session_id, turn=turn)
        if turn:
            with pytest.raises(NotFoundError):
                chat.service.turns.fork(chat.session_id, after_turn=turn)
    assert chat.rows("SELECT count(*) FROM session") == count


def test_refused_edit_leaves_no_branch(open_chat: OpenChat) -> None:
    chat = open_chat(turns_per_minute=2, message_chars=1_000)
    chat.ask(1, 2)
    for refused in ("", " \n", "가" * 1_001):
        with pytest.raises(InputError):
            chat.service.turns.edit(chat.session_id, 2, refused)
    with pytest.raises(TurnRateError):
        chat.service.turns.edit(chat.session_id, 1, OTHER)
    assert chat.rows("SELECT count(*) FROM session") == [(1,)]
    assert chat.rows("SELECT count(*) FROM lease WHERE session_id <> ?", chat.session_id) == [(0,)]


def test_a_branch_has_the_title_of_its_question_until_it_is_renamed(chat: Chat) -> None:
    chat.ask(1, 2)
    chat.service.sessions.rename(chat.session_id, "서버 이전")
    first = ended(chat, chat.service.turns.edit(chat.session_id, 1, OTHER))
    assert (first.view.turn_count, first.view.forked_from) == (1, chat.session_id)
    later = ended(chat, chat.service.turns.edit(chat.session_id, 2, OTHER))
    assert first.view.title == later.view.title == title_of(OTHER)
    again = ended(chat, chat.service.turns.regenerate(chat.session_id, turn=1).session_id)
    assert again.view.title == title_of(question(1))
    assert (fork(chat, 2).view.title, chat.view.title) == ("서버 이전", "서버 이전")
    chat.service.sessions.rename(later.session_id, "내 분기")
    later.ask(3, 3)
    assert later.view.title == "내 분기"
