"""Draws chats and what programs make of them when they send them again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.client import ClientMessage
from tests.fake.door import Door, access_of, assistant, user
from tests.fake.open_chat import chat_opener, settings_maker

TEXT = st.text(st.characters(exclude_categories=["M", "Cs"]), max_size=30) | st.sampled_from(
    ["안녕\ud800", "a\x00b", "ا" * 300]
)
CHAT = st.lists(st.tuples(TEXT, TEXT), min_size=2, max_size=5)
drawn = settings(max_examples=12)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with chat_opener(settings_maker(tmp_path_factory.mktemp("door") / "data", "http://127.0.0.1:9/v1")) as open_chat:
        yield Door(access_of(open_chat().service))


def hold(
    opened: Door, texts: list[tuple[str, str]], *, wrap_last: bool = False
) -> tuple[Door, list[ClientMessage], str]:
    """Holds a chat of these words in a scope of its own; each turn's words begin with its number."""
    door, history, sessions = Door(opened.access), list[ClientMessage](), set[str]()
    for number, (question, answer) in enumerate(texts, 1):
        asked = user(f"q{number} {question}")
        is_wrapped = wrap_last and number == len(texts)
        sent = user(f"Use these documents.\n{asked.text}\nEnd of question.") if is_wrapped else asked
        sessions.add(door.ask([*history, sent], f"a{number} {answer}").session_id)
        history += [asked, assistant(f"a{number} {answer}")]
    assert len(sessions) == 1
    return door, history, sessions.pop()


@drawn
@given(texts=CHAT, data=st.data())
def test_history_cut_in_front(opened: Door, texts: list[tuple[str, str]], data: st.DataObject) -> None:
    door, history, session_id = hold(opened, texts)
    cut = data.draw(st.integers(0, len(history) - 4))
    decision = door.decide([*history[cut:], user("?")])
    assert (decision.kind, decision.session_id) == ("append", session_id)
    assert (decision.matched, decision.imported, decision.lead) == ("tail" if cut else "history", (), ())


@drawn
@given(texts=CHAT, data=st.data())
def test_edited_question(opened: Door, texts: list[tuple[str, str]], data: st.DataObject) -> None:
    door, history, session_id = hold(opened, texts)
    turn = data.draw(st.integers(2, len(texts)))
    edited = [*history[: 2 * turn - 2], user("edited")]
    fork = door.ask(edited, "another answer")
    assert (fork.decision.kind, fork.decision.session_id) == ("fork", session_id)
    assert (fork.decision.after_turn, fork.decision.imported) == (turn - 1, ())
    assert door.decide([*edited, assistant("another answer"), user("?")]).session_id == fork.session_id
    assert door.decide([*history, user("?")]).session_id == session_id


@drawn
@given(texts=CHAT, data=st.data())
def test_edited_answer(opened: Door, texts: list[tuple[str, str]], data: st.DataObject) -> None:
    door, history, session_id = hold(opened, texts)
    turn = data.draw(st.integers(2, len(texts)))
    edited = [*history[: 2 * turn - 1], assistant("edited"), *history[2 * turn :]]
    decision = door.decide([*edited, user("?")])
    assert (decision.kind, decision.session_id, decision.after_turn) == ("fork", session_id, turn - 1)
    assert decision.imported == tuple(edited[2 * turn - 2 :])


@drawn
@given(texts=CHAT, data=st.data())
def test_answer_that_was_received_in_part(opened: Door, texts: list[tuple[str, str]], data: st.DataObject) -> None:
    door, history, session_id = hold(opened, texts)
    whole = history[-1].text
    part = whole[: data.draw(st.integers(1, len(whole)))]
    decision = door.decide([*history[:-1], assistant(part), user("?")])
    assert (decision.kind, decision.session_id, decision.imported) == ("append", session_id, ())


@drawn
@given(texts=CHAT)
def test_question_that_documents_were_added_to(opened: Door, texts: list[tuple[str, str]]) -> None:
    door, history, session_id = hold(opened, texts, wrap_last=True)
    decision = door.decide([*history, user("?")])
    assert (decision.kind, decision.session_id, decision.imported) == ("append", session_id, ())


@drawn
@given(texts=CHAT)
def test_answer_made_anew(opened: Door, texts: list[tuple[str, str]]) -> None:
    door, history, session_id = hold(opened, texts)
    again = door.ask(history[:-1], "another answer")
    assert (again.decision.kind, again.session_id, again.turn) == ("regenerate", session_id, len(texts))
    assert door.decide([*history[:-1], assistant("another answer"), user("?")]).session_id == session_id


@drawn
@given(texts=CHAT, others=CHAT)
def test_other_chats_and_scopes_are_never_taken(
    opened: Door, texts: list[tuple[str, str]], others: list[tuple[str, str]]
) -> None:
    door, history, session_id = hold(opened, texts)
    assert Door(opened.access).decide([*history, user("?")]).kind == "new"
    other = [part for pair in others for part in (user(f"other {pair[0]}"), assistant(f"other {pair[1]}"))]
    decision = door.decide([*other, user("?")])
    assert (decision.kind, decision.session_id) == ("new", "")
    assert door.decide([*history, user("?")]).session_id == session_id
