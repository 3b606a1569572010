"""Versions of an answer: each attempt of a turn stays, and any of them can be chosen as the one that counts."""

from __future__ import annotations

import pytest

from graph.value.error import BusyError, InputError, NotFoundError
from graph.value.event import TurnFailed, TurnFinished
from tests.fake.body import shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, thinking, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.waiting_turn import FIRST as LOOK_CALL
from tests.fake.waiting_turn import LOOK, required

LONG = " 담당자는 이영희이고 예산은 300만 원이며 12월 3일에 다시 모이기로 했습니다." * 4
FIRST, SECOND = f"코끼리가 좋겠습니다.{LONG}", f"기린이 좋겠습니다.{LONG}"


def choose(chat: Chat, turn: int, attempt: int) -> None:
    chat.service.sessions.choose_attempt(chat.session_id, turn, attempt)
    chat.wait_for_folds()


def answered_twice(chat: Chat, server: FakeOpenAI, turn: int) -> None:
    """Has the turns up to this one, whose answer is made twice."""
    chat.ask(1, turn - 1)
    server.script(text(FIRST), text(SECOND), to=question(turn))
    chat.ask(turn, turn)
    chat.regenerate()
    chat.wait_for_folds()


def sent(server: FakeOpenAI) -> str:
    return str(server.bodies("chat")[-1])


def test_no_other_attempt_counts_while_the_turn_waits_for_its_program(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(tools(LOOK_CALL))
    chat.service.turns.regenerate(chat.session_id, options=LOOK)
    required(chat.events())
    with pytest.raises(NotFoundError):
        choose(chat, 1, 1)
    assert chat.turns[0].attempt == 2


@pytest.mark.both_engines
def test_an_answer_given_again_can_be_read_and_made_to_count_again(chat: Chat, server: FakeOpenAI) -> None:
    answered_twice(chat, server, 2)
    turns, session_id = chat.service.turns, chat.session_id
    assert [turn.attempts for turn in chat.turns] == [(), (1, 2)]
    assert [turns.version(session_id, 2, attempt).answer_text for attempt in (1, 2)] == [FIRST, SECOND]
    assert chat.last_turn.answer_text == SECOND
    chat.service.folds.pin(session_id, chat.last_turn.answer_message_id)
    choose(chat, 2, 1)
    assert (chat.last_turn.answer_text, chat.last_turn.attempt, chat.last_turn.attempts) == (FIRST, 1, (1, 2))
    assert chat.service.folds.pins(session_id).messages == ()
    found = [chat.service.sessions.list(search=word) for word in ("코끼리", "기린")]
    assert [[item.session_id for item in items] for items in found] == [[session_id], []]
    chat.ask(3, 3)
    assert FIRST in sent(server)
    assert SECOND not in sent(server)
    choose(chat, 2, 2)
    assert len(chat.service.folds.pins(session_id).messages) == 1
    chat.ask(4, 4)
    assert [("코끼리" in sent(server), "기린" in sent(server))] == [(False, True)]


def test_a_block_whose_answer_is_chosen_is_folded_again_and_later_records_stand_again(
    chat: Chat, server: FakeOpenAI
) -> None:
    answered_twice(chat, server, 2)
    chat.ask(3, 9)
    first, second = chat.service.folds.records(chat.session_id)
    assert (first.turns, second.turns) == ((1, 2, 3), (4, 5, 6))
    choose(chat, 2, 1)
    assert chat.covered == []
    chat.ask(10, 10)
    assert chat.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    again, *_ = records = chat.service.folds.records(chat.session_id)
    assert records[1].id == second.id
    assert again.id != first.id
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), (7, 9), 10]
    folded = [body for body in server.bodies("summary") if "코끼리" in str(body)]
    assert folded
    assert not any("기린" in str(body) for body in folded)
    assert chat.service.inputs.of_turn(chat.session_id, 10)[-1].is_verified
    history = "SELECT history_tokens FROM turn WHERE session_id = ? AND number = 10"
    live = """
        SELECT sum(message.tokens) FROM message JOIN turn USING (session_id)
        WHERE message.turn = turn.number AND session_id = ? AND turn.number < 10
        AND (message.attempt = turn.attempt OR message.role = 'human')
    """
    assert chat.rows(history, chat.session_id) == chat.rows(live, chat.session_id)


def test_a_merge_over_the_turn_gives_way_to_its_other_sources(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(records_budget_tokens=500, merged_together=4, newest_records=2, merged_tokens=300)
    answered_twice(chat, server, 8)
    chat.ask(9, 26)
    assert chat.covered[0] == tuple(range(1, 13))
    sources = chat.service.folds.records(chat.session_id)[0].sources
    choose(chat, 8, 1)
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]
    chat.ask(27, 27)
    records = chat.service.folds.records(chat.session_id)
    assert [record.turns for record in records] == [tuple(range(first, first + 3)) for first in range(1, 25, 3)]
    assert [record.id in sources for record in records[:4]] == [True, True, False, True]
    assert shape(server.bodies("chat")[-1])[:4] == [(1, 3), (4, 6), (7, 9), (10, 12)]


def test_records_behind_a_block_chosen_before_a_reset_wait_for_it_once_the_reset_is_undone(
    chat: Chat, server: FakeOpenAI
) -> None:
    answered_twice(chat, server, 2)
    chat.ask(3, 7)
    second = chat.service.folds.records(chat.session_id)[1]
    chat.service.folds.reset(chat.session_id)
    choose(chat, 2, 1)
    chat.service.folds.undo_reset(chat.session_id)
    assert chat.covered == []
    chat.ask(8, 8)
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]
    assert chat.service.folds.records(chat.session_id)[1].id == second.id
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), 7, 8]


def state(chat: Chat) -> tuple[str, int, tuple[int, ...]]:
    turn = chat.last_turn
    return turn.status, turn.attempt, turn.attempts


def test_the_answer_before_a_failed_attempt_is_kept_and_a_failed_one_is_none(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(failure(500))
    assert isinstance(chat.regenerate()[-1], TurnFailed)
    assert state(chat) == ("failed", 2, (1, 2))
    choose(chat, 1, 1)
    assert state(chat) == ("finished", 1, ())
    server.script(failure(500), to=question(2))
    chat.say(question(2))
    assert isinstance(chat.retry()[-1], TurnFinished)
    assert state(chat) == ("finished", 2, ())
    chat.regenerate()
    assert state(chat) == ("finished", 3, (2, 3))
    choose(chat, 2, 2)
    chat.regenerate()
    assert state(chat) == ("finished", 4, (2, 3, 4))


def test_what_an_attempt_thought_and_which_model_gave_it_come_back_with_it(chat: Chat, server: FakeOpenAI) -> None:
    server.script(thinking("reasoning", "코끼리인가", "코끼리"), to=question(1))
    chat.ask(1, 1)
    before = chat.last_turn
    chat.regenerate()
    turns = chat.service.turns
    assert chat.last_turn.thought_seconds == 0
    aside = turns.version(chat.session_id, 1, 1)
    assert aside.thought_seconds > 0
    assert (turns.thoughts(chat.session_id, 1), turns.thoughts(chat.session_id, 1, attempt=1)) == ("", "코끼리인가")
    choose(chat, 1, 1)
    assert chat.last_turn.answer_text == before.answer_text
    assert (chat.last_turn.model, chat.last_turn.thought_seconds) == (before.model, before.thought_seconds)
    assert turns.thoughts(chat.session_id, 1) == "코끼리인가"


def test_choosing_is_refused_while_a_turn_runs_and_for_what_is_no_attempt(chat: Chat, server: FakeOpenAI) -> None:
    answered_twice(chat, server, 1)
    for turn, attempt in ((1, 3), (2, 1)):
        with pytest.raises(NotFoundError):
            choose(chat, turn, attempt)
    server.script(hang(), to=question(2))
    chat.start(question(2))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    with pytest.raises(BusyError):
        choose(chat, 1, 1)
    chat.service.turns.stop(chat.session_id)
    chat.events()
    assert chat.turns[0].attempt == 2


@pytest.mark.both_engines
def test_versions_go_along_with_an_export_and_a_branch(chat: Chat, server: FakeOpenAI) -> None:
    answered_twice(chat, server, 1)
    (copied,) = chat.service.sessions.import_session(chat.service.sessions.export(chat.session_id))
    copy = Chat(chat.service, copied)
    assert copy.last_turn.attempts == (1, 2)
    choose(copy, 1, 1)
    copy.ask(2, 2)
    assert "코끼리" in sent(server)
    branch = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=1))
    chat.service.sessions.delete(chat.session_id)
    assert (branch.last_turn.answer_text, branch.last_turn.attempts) == (SECOND, (1, 2))
    choose(branch, 1, 1)
    branch.ask(2, 2)
    assert "코끼리" in sent(server)
    assert [turn.attempts for turn in branch.turns] == [(1, 2), ()]


def test_the_sessions_that_part_at_a_turn_are_known_to_each_of_them(chat: Chat) -> None:
    chat.ask(1, 3)
    turns, other = chat.service.turns, question(9)

    def edited(session_id: str, turn: int) -> str:
        branch = Chat(chat.service, turns.edit(session_id, turn, other))
        branch.events()
        return branch.session_id

    def siblings(session_id: str) -> dict[int, tuple[str, ...]]:
        return dict(chat.service.sessions.siblings(session_id))

    origin = chat.session_id
    assert siblings(origin) == {}
    one = edited(origin, 2)
    two = edited(one, 2)
    three = edited(origin, 3)
    assert siblings(origin) == {2: (origin, one, two), 3: (origin, three)}
    assert siblings(one) == siblings(two) == {2: (origin, one, two)}
    assert siblings(three) == {3: (origin, three)}
    whole = turns.fork(origin, after_turn=3)
    assert siblings(whole) == {}  # neither has a turn of its own there
    chat.service.sessions.delete(origin)
    assert siblings(one) == {2: (one, two)}
    assert siblings(three) == {}


def test_a_pager_has_no_session_that_parts_elsewhere_or_lacks_the_turn(chat: Chat) -> None:
    chat.ask(1, 3)
    sessions, turns, origin = chat.service.sessions, chat.service.turns, chat.session_id
    turns.fork(origin, after_turn=1)  # nothing has been asked in it yet
    assert sessions.siblings(origin) == {}
    one = Chat(chat.service, turns.edit(origin, 2, question(9)))
    one.events()
    one.ask(3, 3)
    elsewhere = Chat(chat.service, turns.edit(one.session_id, 3, question(8)))
    elsewhere.events()
    at_two, at_three = (origin, one.session_id), (one.session_id, elsewhere.session_id)
    assert sessions.siblings(origin) == {2: at_two}
    assert sessions.siblings(one.session_id) == {2: at_two, 3: at_three}
    assert sessions.siblings(elsewhere.session_id) == {3: at_three}


def test_the_history_before_a_turn_is_none_of_its_own_answers(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("짧은 답"), text(FIRST), to=question(2))
    chat.ask(1, 2)
    chat.regenerate()
    chat.ask(3, 3)

    def before() -> list[int]:
        query = "SELECT history_tokens FROM turn WHERE session_id = ? ORDER BY number"
        return [tokens for (tokens,) in chat.rows(query, chat.session_id)]

    long = before()
    choose(chat, 2, 1)
    short = before()
    assert (short[:2], short[2] < long[2]) == (long[:2], True)
    choose(chat, 2, 2)
    assert before() == long


@pytest.mark.both_engines
def test_branches_of_a_deleted_branch_part_from_its_origin(chat: Chat) -> None:
    chat.ask(1, 3)
    sessions, turns, origin = chat.service.sessions, chat.service.turns, chat.session_id

    def edited(session_id: str, turn: int) -> str:
        branch = Chat(chat.service, turns.edit(session_id, turn, question(9)))
        branch.events()
        return branch.session_id

    one = edited(origin, 2)
    Chat(chat.service, one).ask(3, 3)
    two, three = edited(one, 2), edited(one, 3)
    remaining = {2: (origin, two, three)}
    sessions.delete_many([one])
    assert sessions.siblings(origin) == sessions.siblings(two) == {2: (origin, two)}
    sessions.undo_delete([one])
    sessions.delete(one)
    assert sessions.siblings(origin) == sessions.siblings(two) == sessions.siblings(three) == remaining
    assert [sessions.get(branch).forked_from for branch in (two, three)] == [origin, origin]


@pytest.mark.both_engines
def test_an_edited_answer_is_a_version_that_counts_and_the_models_own_stays(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(
        tools(ScriptedCall("get_current_time", "{}", "clock"), answer="먼저 봅니다."), text(FIRST), to=question(2)
    )
    chat.ask(2, 2)
    edited = chat.service.sessions.edit_answer(chat.session_id, 2, SECOND)
    turn = chat.last_turn
    assert (edited, turn.status, turn.attempts) == (chat.session_id, "finished", (1, 2))
    assert (turn.answer_text, turn.is_edited, len(turn.steps)) == (SECOND, True, 1)
    own = chat.service.turns.version(chat.session_id, 2, 1)
    assert (own.answer_text, own.is_edited, len(own.steps)) == (f"먼저 봅니다.\n\n{FIRST}", False, 1)
    chat.ask(3, 3)
    assert ("코끼리" in sent(server), "기린" in sent(server), "turnfold" in sent(server)) == (False, True, False)
    copied = chat.service.sessions.import_session([*chat.service.sessions.export(chat.session_id)])[0]
    assert chat.service.turns.transcript(copied).turns[1].is_edited
    choose(chat, 2, 1)
    assert (chat.turns[1].is_edited, chat.turns[1].attempts) == (False, (1, 2))


def test_an_earlier_answer_is_edited_in_a_branch_that_ends_with_it(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text(FIRST), to=question(2))
    chat.ask(1, 4)
    chat.wait_for_folds()
    records = chat.service.folds.records(chat.session_id)
    branch = chat.service.sessions.edit_answer(chat.session_id, 2, SECOND)
    assert chat.service.sessions.get(branch).forked_from == chat.session_id
    turns = chat.service.turns.transcript(branch).turns
    assert [turn.answer_text for turn in turns][1:] == [SECOND]
    assert chat.turns[1].answer_text == FIRST
    assert chat.service.folds.records(chat.session_id) == records


def test_an_edit_of_the_third_answer_has_its_block_summarised_anew(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text(FIRST), to=question(3))
    chat.ask(1, 3)
    chat.wait_for_folds()
    asked = len(server.bodies("summary"))
    chat.service.sessions.edit_answer(chat.session_id, 3, SECOND)
    chat.wait_for_folds()
    chat.ask(4, 4)
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.turns == (1, 2, 3)
    assert "기린" in str(server.bodies("summary")[asked:])
    assert "코끼리" not in str(server.bodies("summary")[asked:])


@pytest.mark.parametrize(("edited", "reason"), [(" \n", "empty"), ("긴 글" * 100_000, "message_too_long")])
def test_a_text_that_is_no_answer_changes_nothing(chat: Chat, edited: str, reason: str) -> None:
    chat.ask(1, 1)
    before = chat.turns
    with pytest.raises(InputError) as refused:
        chat.service.sessions.edit_answer(chat.session_id, 1, edited)
    assert refused.value.reason == reason
    with pytest.raises(NotFoundError):
        chat.service.sessions.edit_answer(chat.session_id, 2, SECOND)
    assert chat.turns == before
