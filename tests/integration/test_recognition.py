from __future__ import annotations

from dataclasses import replace

import pytest

from graph.client import ClientMessage, ClientOptions
from graph.error import NotFoundError
from tests.fake.door import Door, access_of, assistant, said, user
from tests.fake.open_chat import OpenChat

LONG = "한 문장이 열 자를 넘는다. " * 20


def test_chat_that_resends_everything_stays_in_one_session(door: Door) -> None:
    history, session_id = door.chat(12)
    decision = door.decide([*history, user("and then?")])
    assert (decision.kind, decision.matched, decision.session_id) == ("append", "history", session_id)
    assert (decision.imported, decision.lead, decision.stop_first) == ((), (), False)
    assert door.texts(session_id) == [message.text for message in history]


@pytest.mark.parametrize("greeting", ["Hi", "안녕"])
def test_chats_that_begin_alike_stay_two(door: Door, greeting: str) -> None:
    first, second = door.ask([user(greeting)], "Hello!"), door.ask([user(greeting)], "Hello!")
    assert (first.decision.kind, second.decision.kind) == ("new", "new")
    one = door.ask([*said(greeting, "Hello!"), user("About cats")], "Cats purr.")
    other = door.ask([*said(greeting, "Hello!"), user("About dogs")], "Dogs bark.")
    assert {one.session_id, other.session_id} == {first.session_id, second.session_id}
    cats = door.decide([*said(greeting, "Hello!", "About cats", "Cats purr."), user("more")])
    dogs = door.decide([*said(greeting, "Hello!", "About dogs", "Dogs bark."), user("more")])
    assert (cats.session_id, dogs.session_id) == (one.session_id, other.session_id)


def test_two_end_users_with_equal_histories_share_nothing(door: Door) -> None:
    history, session_id = door.chat(3)
    assert door.decide([*history, user("?")]).session_id == session_id
    for elsewhere in (replace(door, scope="somebody else"), replace(door, scope="")):
        decision = elsewhere.decide([*history, user("?")])
        assert (decision.kind, decision.session_id, decision.imported) == ("new", "", tuple(history))
        with pytest.raises(NotFoundError):
            replace(door, scope="somebody else").decide([user("?")], session=session_id)


def test_two_owners_with_equal_histories_share_nothing(opened_door: Door) -> None:
    access = opened_door.access
    mine, theirs = Door(access, "same"), Door(access, "same")
    theirs.access = replace(access, owner="bob")
    history, session_id = mine.chat(3)
    assert theirs.decide([*history, user("?")]).kind == "new"
    with pytest.raises(NotFoundError):
        theirs.decide([*history, user("?")], session=session_id)


def test_restart_between_two_requests_changes_nothing(opened_door: Door, door_chats: OpenChat) -> None:
    before = Door(opened_door.access)
    history, session_id = before.chat(2)
    after = Door(access_of(door_chats().service), before.scope)
    assert after.decide([*history, user("?")]).session_id == session_id


@pytest.mark.parametrize("messages", [6, 7, 20])
def test_shortened_history_lands_in_its_session(door: Door, messages: int) -> None:
    history, session_id = door.chat(30)
    decision = door.decide([*history, user("?")][-messages:])
    assert (decision.kind, decision.matched, decision.session_id) == ("append", "tail", session_id)
    assert (decision.lead, decision.imported) == ((), ())


def test_what_a_program_puts_in_front_is_its_own_context_in_every_turn(door: Door) -> None:
    history, session_id = door.chat(5)
    front = said("the files are: a.py, b.py", "Ok.")
    cut = [*front, *history[-4:]]
    for number in range(3):
        asked = [*cut, user(f"change {number}")]
        done = door.ask(asked, f"changed {number}")
        assert (done.decision.kind, done.session_id, done.decision.lead) == ("append", session_id, front)
        cut = [*asked, assistant(f"changed {number}")]


def test_keeping_only_the_first_and_the_newest_messages_forks_nothing(door: Door) -> None:
    history, session_id = door.chat(20)
    decision = door.decide([*history[:2], *history[-6:], user("?")])
    assert (decision.kind, decision.session_id, decision.lead) == ("append", session_id, ())


def test_one_short_answer_is_no_proof(door: Door) -> None:
    door.ask([user("documents\n\nHi")], "Hello!")
    decision = door.decide([*said("Hi", "Hello!"), user("?")])
    assert (decision.kind, decision.imported) == ("new", said("Hi", "Hello!"))


def test_two_sessions_with_as_much_of_a_shortened_history_are_no_proof(door: Door) -> None:
    for number in range(2):
        door.ask([*said(f"front {number}", "foreign"), user("same")], LONG)
    assert door.decide([*said("same", LONG), user("?")]).kind == "new"


def test_documents_around_a_question_fork_nothing(door: Door) -> None:
    history: list[ClientMessage] = []
    sessions = set()
    for number in range(6):
        question = user(f"question {number}?")
        wrapped = user(f"### Context\n{LONG}\n### Question\n{question.text}")
        sessions.add(door.ask([*history, wrapped], f"{LONG} {number}").session_id)
        history += [question, assistant(f"{LONG} {number}")]
    assert len(sessions) == 1
    assert len(door.texts(sessions.pop())) == len(history)


def test_turns_of_the_page_in_between_make_no_history_old(door: Door) -> None:
    history, session_id = door.chat(3)
    door.page_says(session_id, "from the page", "to the page")
    on = door.ask([*history, user("on")], "and on")
    assert (on.decision.kind, on.session_id, on.turn, on.decision.lead) == ("append", session_id, 5, ())
    cut = door.decide([*history[-4:], user("on"), assistant("and on"), user("?")])
    assert (cut.kind, cut.session_id, cut.lead) == ("append", session_id, ())


def test_another_program_of_the_same_owner_goes_on_with_the_session(door: Door) -> None:
    history, session_id = door.chat(2)
    other = replace(door, options=ClientOptions("script"))
    assert other.ask([*history, user("on")], "and on").session_id == session_id
