"""When due blocks are folded: a session's setting, over the whole service."""

from __future__ import annotations

import json

import pytest

from graph.value.error import InputError
from graph.value.view import NextFold, TurnOptions
from tests.fake.body import shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

BOTH = (1, 2, 3, 4, 5, 6)


def following(chat: Chat) -> NextFold:
    return chat.service.folds.next_fold(chat.session_id, strategy=chat.view.strategy)


@pytest.fixture
def paying(chat: Chat) -> Chat:
    """A chat of one turn that folds when it pays."""
    chat.say(question(1), options=TurnOptions(fold_when="pays"))
    return chat


def test_when_it_pays_one_call_folds_two_blocks_and_until_then_they_are_sent_raw(
    paying: Chat, server: FakeOpenAI
) -> None:
    paying.ask(2, 5)
    assert server.bodies("summary") == []
    assert shape(server.bodies("chat")[-1]) == [1, 2, 3, 4, 5]
    told = following(paying)
    assert (told.turns, told.turns_left, told.is_due) == (BOTH, 1, False)
    paying.ask(6, 7)
    assert len(server.bodies("summary")) == 1
    assert shape(server.bodies("chat")[-1]) == [(1, 6), 7]
    (record,) = paying.service.folds.records(paying.session_id)
    assert (record.turns, record.turn_length, record.kind) == (BOTH, 6, "interval")
    last = paying.turns[5]
    assert record.original_chars == told.original_chars + len(last.user_text + last.answer_text)
    paying.ask(8, 9)
    assert (following(paying).turns, following(paying).turns_left) == ((7, 8, 9, 10, 11, 12), 3)
    # A block that waits is folded at once where the session doesn't wait any more.
    assert paying.service.sessions.configure(paying.session_id, fold_when="due").fold_when == "due"
    paying.wait_for_folds()
    assert [ready.turns for ready in following(paying).ready] == [(7, 8, 9)]


def test_the_room_folds_a_block_that_waits(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(model_window_tokens=4_000, fold_when="pays")
    chat.ask(1, 3)
    assert server.bodies("summary") == []
    server.script(text("일정과 예산과 담당자를 다시 적어 둡니다. " * 140))
    chat.ask(4, 4)
    (ready,) = following(chat).ready
    assert (ready.turns, ready.kind) == ((1, 2, 3), "interval")
    chat.ask(5, 5)
    assert chat.covered == [(1, 2, 3)]


def test_branches_exports_and_imports_keep_the_time_of_folding(paying: Chat) -> None:
    sessions = paying.service.sessions
    branch = paying.service.turns.fork(paying.session_id, after_turn=1)
    lines = sessions.export(paying.session_id)
    (copy,) = sessions.import_session(lines)
    assert {sessions.get(each).fold_when for each in (branch, copy)} == {"pays"}
    for value in ("never", 6, None):
        entries = [json.loads(line) for line in lines]
        next(entry for entry in entries if entry.get("table") == "session")["row"]["fold_when"] = value
        with pytest.raises(InputError):
            sessions.import_session(map(json.dumps, entries))


def test_a_session_that_chose_nothing_follows_the_server_and_the_example_has_all_its_summaries(
    open_chat: OpenChat,
) -> None:
    with open_chat(fold_when="pays") as chat:
        chat.ask(1, 1)
        assert chat.service.sessions.configure(chat.session_id, fold_when="pays").fold_when == "pays"
        example = chat.service.sessions.open_example("ko")
        covered = [record.turns for record in chat.service.folds.records(example)]
        assert covered[0] == (1, 2, 3)
        assert chat.service.folds.next_fold(None, strategy="interval").turns == BOTH
    with open_chat(chat.session_id) as chat:
        assert chat.view.fold_when == "due"
        assert chat.service.folds.next_fold(None, strategy="interval", fold_when="pays").turns_left == 6
