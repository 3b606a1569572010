from __future__ import annotations

import pytest

from graph.client import ClientMessage, Hint
from graph.error import NotFoundError
from graph.event import ClientCall
from tests.fake.door import Door, said, user

OPEN_WEBUI = "x-openwebui-chat-id"


def test_several_models_in_one_chat_keep_their_answers(door: Door) -> None:
    hint = Hint(OPEN_WEBUI, "chat-1")
    first = door.ask([user("Which?")], "one", hint=hint, model="one")
    second = door.ask([user("Which?")], "two", hint=hint, model="two")
    assert (second.decision.kind, second.decision.after_turn) == ("fork", 0)
    for done, answer in ((first, "one"), (second, "two")):
        decision = door.decide([*said("Which?", answer), user("?")], hint=hint)
        assert (decision.kind, decision.matched, decision.session_id) == ("append", "hint", done.session_id)


def test_named_session_needs_no_history(door: Door) -> None:
    history, session_id = door.chat(2)
    decision = door.decide([user("on")], session=session_id)
    assert (decision.kind, decision.matched, decision.session_id) == ("append", "header", session_id)
    with_history = door.decide([*history, user("on")], session=session_id)
    assert (with_history.kind, with_history.matched, with_history.lead) == ("append", "header", ())
    unknown = door.decide([*said("never", "said"), user("on")], session=session_id)
    assert (unknown.kind, unknown.session_id, unknown.lead) == ("append", session_id, said("never", "said"))
    with pytest.raises(NotFoundError):
        door.decide([user("on")], session="absent")


def test_named_session_is_the_only_one_that_counts(door: Door) -> None:
    history, _ = door.chat(2)
    other = door.ask([user("another")], "chat")
    assert door.decide([*history, user("on")], session=other.session_id).session_id == other.session_id


def test_hint_names_a_family_and_the_history_its_branch(door: Door) -> None:
    hint = Hint(OPEN_WEBUI, "chat-2")
    first = door.ask([user("Hi")], "Hello!", hint=hint)
    again = door.ask([user("Hi")], "Good day!", hint=hint)
    assert (again.decision.kind, again.session_id) == ("regenerate", first.session_id)
    edited = door.ask([user("Hi there")], "Hey!", hint=hint)
    assert (edited.decision.kind, edited.decision.family) == ("new", first.decision.family)
    other_chat = door.ask([user("Hi")], "Hello!", hint=Hint(OPEN_WEBUI, "chat-3"))
    assert other_chat.decision.kind == "new"
    assert door.decide([*said("Hi", "Good day!"), user("?")], hint=hint).session_id == first.session_id
    assert door.decide([*said("Hi there", "Hey!"), user("?")], hint=hint).session_id == edited.session_id


def test_one_pair_is_enough_with_a_hint(door: Door) -> None:
    hint = Hint(OPEN_WEBUI, "chat-4")
    history, session_id = door.chat(3, hint=hint)
    decision = door.decide([*history[-2:], user("?")], hint=hint)
    assert (decision.kind, decision.session_id) == ("append", session_id)
    assert door.decide([*history[-2:], user("?")]).kind == "new"


@pytest.mark.parametrize("hint", [Hint(OPEN_WEBUI, "local:abc"), Hint("user", "ann"), Hint("x-session-id", "")])
def test_what_is_the_same_for_all_chats_is_no_hint(door: Door, hint: Hint) -> None:
    assert door.ask([user("Hi")], "Hello!", hint=hint).decision.family == ""
    assert door.decide([user("Hi")], hint=hint).kind == "new"


def test_history_wins_over_a_hint(door: Door) -> None:
    history, session_id = door.chat(3, hint=Hint(OPEN_WEBUI, "chat-5"))
    decision = door.decide([*history, user("?")], hint=Hint(OPEN_WEBUI, "chat-6"))
    assert (decision.kind, decision.matched, decision.session_id) == ("append", "history", session_id)


def test_requests_of_a_front_end_itself_are_aside(door: Door) -> None:
    hint = Hint(OPEN_WEBUI, "chat-7")
    title = user("### Task:\nGenerate a title.\n### Chat History:\n<chat_history>\nUSER: Hi\n</chat_history>")
    assert door.decide([title], hint=hint).kind == "aside"
    door.ask([user("Hi")], "Hello!", hint=hint)
    assert door.decide([title], hint=hint).kind == "aside"
    assert door.decide([title]).kind == "new"
    assert door.decide([user("Hi")], is_plain=True).kind == "aside"
    assert door.decide([user("Hi")], task="title_generation").kind == "aside"
    assert door.decide([*said("Hi", "Hello!"), title], hint=hint).kind == "append"


def test_answers_of_its_tools_in_a_named_session(door: Door) -> None:
    history, session_id = door.chat(1)
    calls = (ClientCall("call-1", "clock", "{}"),)
    door.ask([*history, user("What time is it?")], "", status="requires_action", calls=calls)
    result = ClientMessage("tool", "noon", call_id="call-1")
    decision = door.decide([user("unknown"), ClientMessage("assistant", "", calls=calls), result], session=session_id)
    assert (decision.kind, decision.matched, decision.session_id) == ("resume", "header", session_id)


def test_models_that_answer_with_the_same_words_go_on_each_in_its_session(door: Door) -> None:
    hint = Hint(OPEN_WEBUI, "chat-8")
    begun = [door.ask([user("Which?")], "same", hint=hint, model=model) for model in ("one", "two")]
    on = [door.ask([*said("Which?", "same"), user("On")], name, hint=hint, model=name) for name in ("one", "two")]
    assert [each.decision.kind for each in on] == ["append", "append"]
    assert {each.session_id for each in on} == {each.session_id for each in begun}
