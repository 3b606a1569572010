from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from graph.client import ClientMessage
from graph.error import BusyError, InputError
from graph.event import ClientCall
from tests.fake.door import Door, assistant, said, user


@pytest.mark.parametrize("turn", [1, 10, 49])
def test_edit_forks_once_and_going_back_returns_to_the_first_branch(door: Door, turn: int) -> None:
    history, session_id = door.chat(50)
    edited = [*history[: 2 * turn - 2], user("edited")]
    fork = door.ask(edited, "another answer")
    if turn == 1:
        assert fork.decision.kind == "new"
    else:
        assert (fork.decision.kind, fork.decision.after_turn) == ("fork", turn - 1)
        assert fork.decision.session_id == session_id
    on = door.ask([*edited, assistant("another answer"), user("on")], "and on")
    assert (on.decision.kind, on.session_id, on.decision.lead) == ("append", fork.session_id, ())
    back = door.decide([*history, user("back")])
    assert (back.kind, back.session_id) == ("append", session_id)


def test_edit_of_an_answer_forks_there_and_brings_the_rest(door: Door) -> None:
    history, session_id = door.chat(6)
    edited = [*history[:5], assistant("edited"), *history[6:], user("?")]
    decision = door.decide(edited)
    assert (decision.kind, decision.session_id, decision.after_turn) == ("fork", session_id, 2)
    assert decision.imported == tuple(edited[4:-1])


def test_another_models_answer_behind_the_newest_turn_is_imported(door: Door) -> None:
    history, session_id = door.chat(2)
    foreign = said("asked elsewhere", "answered elsewhere")
    decision = door.decide([*history, *foreign, user("?")])
    assert (decision.kind, decision.session_id, decision.imported) == ("append", session_id, foreign)


def test_same_question_again_is_answered_anew(door: Door) -> None:
    history, session_id = door.chat(3)
    again = door.ask(history[:-1], "another answer")
    assert (again.decision.kind, again.session_id, again.turn) == ("regenerate", session_id, 3)
    on = door.decide([*history[:-1], assistant("another answer"), user("?")])
    assert (on.kind, on.session_id) == ("append", session_id)
    replaced = door.decide([*history, user("?")])
    assert (replaced.kind, replaced.session_id, replaced.after_turn) == ("fork", session_id, 2)
    assert replaced.imported == tuple(history[-2:])


def test_old_question_again_forks(door: Door) -> None:
    history, session_id = door.chat(5)
    decision = door.decide(history[:5])
    assert (decision.kind, decision.session_id, decision.after_turn) == ("fork", session_id, 2)


def test_stopped_answer_of_which_the_program_kept_the_beginning(door: Door) -> None:
    history, session_id = door.chat(1)
    door.ask([*history, user("long?")], "one two three", status="stopped")
    done = door.ask([*history, user("long?"), assistant("one tw"), user("go on")], "four")
    assert (done.decision.kind, done.session_id, done.decision.imported) == ("append", session_id, ())
    later = door.decide([*history, *said("long?", "one tw", "go on", "four"), user("?")])
    assert (later.kind, later.session_id, later.lead) == ("append", session_id, ())


def test_running_answer_that_the_program_stopped_reading_is_stopped_first(door: Door) -> None:
    done = door.ask([user("long?")], "one two three", status=None)
    decision = door.decide([*said("long?", "one two"), user("shorter")])
    assert (decision.kind, decision.session_id, decision.stop_first) == ("append", done.session_id, True)


def test_question_that_failed_and_stands_in_the_history(door: Door) -> None:
    history, session_id = door.chat(2)
    door.ask([*history, user("fails")], "", status="failed")
    decision = door.decide([*history, user("fails"), user("something else")])
    assert (decision.kind, decision.session_id, decision.imported) == ("append", session_id, ())


def test_running_turn(door: Door) -> None:
    history, session_id = door.chat(2)
    door.ask([*history, user("runs")], "so far", status=None, model="one")
    same = door.decide([*history, user("runs")], model="one")
    assert (same.kind, same.session_id, same.after_turn) == ("fork", session_id, 2)
    other = door.decide([*history, user("something else")], model="two")
    assert (other.kind, other.session_id, other.after_turn) == ("fork", session_id, 2)
    with pytest.raises(BusyError):
        door.decide([*history, user("something else")], model="one")


def test_library_that_tries_again_gets_the_first_response(door: Door) -> None:
    history, session_id = door.chat(1)
    asked = [*history, user("once")]
    door.ask(asked, "so far", status=None)
    decision = door.decide(asked, is_retry=True)
    assert (decision.kind, decision.matched, decision.session_id) == ("retry", "retry", session_id)
    assert (decision.turn, decision.attempt) == (2, 1)


def test_library_that_tries_a_failed_turn_again_makes_no_second_one(door: Door) -> None:
    first = door.ask([user("Hi")], "", status="failed")
    again = door.ask([user("Hi")], "Hello!", is_retry=True)
    assert (again.decision.kind, again.session_id, again.turn) == ("regenerate", first.session_id, 1)


def test_idempotency_key_is_bound_to_its_request(door: Door) -> None:
    first = door.ask([user("Hi")], "Hello!", idempotency_key="k")
    again = door.decide([user("Hi")], idempotency_key="k")
    assert (again.kind, again.session_id, again.turn) == ("retry", first.session_id, 1)
    assert door.decide([user("Hi")], idempotency_key="other").kind == "new"
    assert door.decide([user("Something else")], idempotency_key="k").kind == "new"


def test_tool_answers_that_nobody_waits_for_are_refused(door: Door) -> None:
    history, _ = door.chat(1)
    with pytest.raises(InputError) as refusal:
        door.decide([*history, user("?"), ClientMessage("tool", "42", call_id="call-9")])
    assert (refusal.value.reason, refusal.value.detail) == ("unknown_call", "call-9")


def test_answers_of_its_tools_go_to_the_turn_that_waits_for_them(door: Door) -> None:
    history, session_id = door.chat(1)
    asked = [*history, user("What time is it?")]
    calls = (ClientCall("call-1", "clock", "{}"), ClientCall("call-2", "clock", '{"zone": "KST"}'))
    opened = door.ask(asked, "I look.", status="requires_action", calls=calls)
    assert (opened.session_id, opened.turn) == (session_id, 2)
    called = ClientMessage("assistant", "I look.", calls=calls)
    results = [ClientMessage("tool", "noon", call_id=call.id) for call in reversed(calls)]
    for said_before in (called, replace(called, text="")):
        decision = door.decide([*asked, said_before, *results])
        assert (decision.kind, decision.matched, decision.session_id) == ("resume", "history", session_id)
    with pytest.raises(InputError):
        door.decide([*asked, called, ClientMessage("tool", "noon", call_id="call-9")])
    instead = door.decide([*asked, called, *results, user("Never mind")])
    assert (instead.kind, instead.session_id, instead.imported) == ("append", session_id, ())


def test_first_response_is_sent_again_for_ten_minutes_and_until_another_attempt(door: Door) -> None:
    asked = [*door.chat(1)[0], user("once")]
    door.ask(asked, "first", idempotency_key="k")
    for minutes, kind in ((9, "retry"), (11, "regenerate")):
        then = door.access.clock() + timedelta(minutes=minutes)
        later = replace(door, access=replace(door.access, clock=lambda now=then: now))  # type: ignore[misc]  # always this time
        assert later.decide(asked, idempotency_key="k").kind == kind
    door.ask(asked, "second")
    assert door.decide(asked, idempotency_key="k").kind == "regenerate"
