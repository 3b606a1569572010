from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.core.text import sum_tokens
from graph.store.session_import import insert_turns
from graph.store.turn import PartialText, TurnKey, TurnStore
from graph.value.error import InternalError, NotFoundError
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = pytest.mark.both_engines


def test_begin_writes_message_turn_and_count_together(stores: StoreSet) -> None:
    lease = stores.make_session()
    assert (stores.turns.last(SESSION), stores.turns.list(SESSION, last=5)) == (None, ())
    with pytest.raises(NotFoundError):
        stores.turns.get(SESSION, 1)
    stores.clock.move(5)
    message = HumanMessage("안녕하세요", id="q1")
    turn, entry = stores.turns.begin(lease, owner=OWNER, message=message, model="big", is_casual=True, client="editor")
    assert turn.client == "editor"
    assert (turn.number, turn.attempt, turn.status, turn.model, turn.is_casual) == (1, 1, "running", "big", True)
    assert (turn.user_message_id, turn.history_tokens, turn.finished_at) == ("q1", 0, None)
    assert turn.started_at == stores.clock()
    archived = stores.archive.get(SESSION, "q1")
    assert (archived.position, archived.turn, archived.chars, archived.tokens) == (1, 1, 5, 4)
    assert archived.message == message
    assert entry == archived
    session = stores.sessions.get(SESSION, OWNER)
    assert session.turn_count == 1
    assert stores.clock.has_returned(session.updated_at)


def test_sending_twice_is_the_same_as_once_within_a_session(stores: StoreSet) -> None:
    lease = stores.make_session()
    first = stores.run_turn(lease, "one")
    stores.run_turn(lease, "two")
    message = HumanMessage("changed meanwhile", id="one-question")
    again = stores.turns.begin(lease, owner=OWNER, message=message, model="other", is_casual=True)
    assert again == (first, None)
    assert stores.sessions.get(SESSION, OWNER).turn_count == 2
    assert stores.archive.get(SESSION, "one-question").message.content == "a question"
    assert stores.begin(stores.make_session("s2"), "one-question").number == 1


def test_begin_refuses_another_owner_and_a_message_without_id(stores: StoreSet) -> None:
    lease = stores.make_session()
    with pytest.raises(NotFoundError):
        stores.turns.begin(lease, owner="mallory", message=HumanMessage("q", id="q"), model="m", is_casual=False)
    with pytest.raises(InternalError):
        stores.turns.begin(lease, owner=OWNER, message=HumanMessage("q"), model="m", is_casual=False)
    assert stores.archive.live(SESSION) == []


def test_history_counts_what_is_live_of_every_turn_before(stores: StoreSet) -> None:
    lease = stores.make_session()
    turn = stores.begin(lease, "q1", "x" * 20)
    stores.say(lease, turn, AIMessage("thrown away " * 50, id="a1"))
    stores.turns.finish(lease, 1, "finished")
    second = stores.turns.begin_attempt(lease, 1, model="m")
    stores.say(lease, second, AIMessage("y" * 60, id="a1-again"))
    stores.turns.finish(lease, 1, "finished")
    live_tokens = sum_tokens([HumanMessage("x" * 20), AIMessage("y" * 60)])
    assert stores.begin(lease, "q2", "z" * 10).history_tokens == live_tokens
    stores.turns.finish(lease, 2, "failed", error_code="provider")
    assert stores.begin(lease, "q3").history_tokens == live_tokens + sum_tokens([HumanMessage("z" * 10)])


def test_new_attempt_clears_the_end_of_the_one_before(stores: StoreSet) -> None:
    lease = stores.make_session()
    message = HumanMessage("q", id="q1")
    stores.turns.begin(lease, owner=OWNER, message=message, model="m", is_casual=False, client="editor")
    stores.turns.save_partials([PartialText(lease, 1, "half a\ud83dn\x00ans")])
    assert stores.turns.get(SESSION, 1).partial_text == "half a\ufffdn\ufffdans"
    stores.turns.request_stop(SESSION, 1)
    stores.turns.finish(lease, 1, "failed", error_code="provider", error_detail="503", partial_text="half an answer")
    failed = stores.turns.get(SESSION, 1)
    assert (failed.status, failed.error_code, failed.error_detail) == ("failed", "provider", "503")
    assert (failed.partial_text, failed.stop_requested) == ("half an answer", True)
    assert stores.clock.has_returned(failed.finished_at)
    stores.clock.move(9)
    again = stores.turns.begin_attempt(lease, 1, model="other")
    assert (again.attempt, again.status, again.model, again.started_at) == (2, "running", "other", stores.clock())
    assert (again.error_code, again.error_detail, again.partial_text, again.client) == ("", "", "", "")
    assert (again.stop_requested, again.finished_at) == (False, None)


def test_only_the_last_turn_is_attempted_again(stores: StoreSet) -> None:
    lease = stores.make_session()
    for name in ("one", "two", "three"):
        stores.run_turn(lease, name)
    assert [turn.number for turn in stores.turns.list(SESSION, last=2)] == [2, 3]
    assert stores.turns.last(SESSION) == stores.turns.get(SESSION, 3)
    for number in (0, 2, 4):
        with pytest.raises(NotFoundError):
            stores.turns.begin_attempt(lease, number, model="m")
    assert stores.turns.begin_attempt(lease, 3, model="m").attempt == 2


def test_first_end_of_a_turn_stands(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.begin(lease, "q1")
    stores.turns.finish(lease, 1, "finished")
    stores.turns.finish(lease, 1, "failed", error_code="late")
    stores.turns.save_partials([PartialText(lease, 1, "late text")])
    turn = stores.turns.get(SESSION, 1)
    assert (turn.status, turn.error_code, turn.partial_text) == ("finished", "", "")


def test_any_server_may_ask_a_running_turn_to_stop_but_no_ended_one(stores: StoreSet) -> None:
    stores.begin(stores.make_session(), "q1")
    stores.run_turn(stores.make_session("ended"), "one")
    elsewhere = TurnStore(stores.database, clock=stores.clock)
    turn_keys = [TurnKey(SESSION, 1), TurnKey(SESSION, 2), TurnKey("ended", 1)]
    assert not stores.turns.stopping(turn_keys)
    for session_id in (SESSION, "ended"):
        elsewhere.request_stop(session_id, 1)
    assert stores.turns.stopping(turn_keys) == {(SESSION, 1)}


def test_one_turn_that_lost_its_lease_keeps_no_other_from_being_saved(stores: StoreSet) -> None:
    lost, held = stores.make_session("lost"), stores.make_session("held")
    for lease in (lost, held):
        stores.begin(lease, "q1")
    of_another = replace(lost, fence=lost.fence + 1)
    stores.turns.save_partials([PartialText(of_another, 1, "old"), PartialText(held, 1, "new")])
    assert [stores.turns.get(name, 1).partial_text for name in ("lost", "held")] == ["", "new"]


def test_what_programs_asked_brought_along_and_sent_beside_their_turns_is_known(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "of the page")
    brought: list[list[AnyMessage]] = [[HumanMessage("an example", id="brought"), AIMessage("its answer", id="answer")]]
    with stores.database.write(lease) as connection:
        insert_turns(
            connection,
            brought,
            session_id=SESSION,
            owner=OWNER,
            turn_count=1,
            client="editor",
            model="",
            now=stores.clock(),
        )
    assert stores.archive.uncovered(SESSION, [(1, None)])[1] == {2}
    assert [stores.turns.seen_by_programs(SESSION, last) for last in (1, 2)] == [(0, False), (1, False)]
    stores.blocks.keep(lease, "before", "messages", owner=OWNER)
    assert stores.turns.seen_by_programs(SESSION, 2) == (1, True)
