from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from graph.event import TurnFailed, TurnFinished
from tests.fake.body import content_of, faults, raw_turns, shape
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

ROOT = Path(__file__).parents[2]
PARTIAL = "여기까지는 들었습니다."


@pytest.fixture
def die_in_a_turn(server: FakeOpenAI) -> Callable[[Chat, str, Callable[[], bool]], None]:
    """Has a process of its own run the next turn and kills it (-9) once something is true."""

    def die(chat: Chat, message: str, is_time: Callable[[], bool]) -> None:
        words = [str(chat.service.settings.turnfold_data_dir), server.url, chat.session_id, message]
        process = subprocess.Popen([sys.executable, "-m", "tests.fake.killed_server", *words], cwd=ROOT)
        try:
            chat.wait_until(is_time)
        finally:
            process.kill()
            process.wait()

    return die


Die = Callable[[Chat, str, Callable[[], bool]], None]


def has_saved_partial(chat: Chat) -> Callable[[], bool]:
    return lambda: chat.rows("SELECT 1 FROM turn WHERE partial_text = ?", PARTIAL) == [(1,)]


def test_a_killed_server_leaves_an_interrupted_turn_and_the_chat_goes_on(
    open_chat: OpenChat, server: FakeOpenAI, die_in_a_turn: Die
) -> None:
    with open_chat() as chat:
        chat.ask(1, 3)
    server.script(hang(PARTIAL))
    die_in_a_turn(chat, question(4), has_saved_partial(chat))
    with open_chat(chat.session_id) as chat:
        turn = chat.last_turn
        assert (turn.number, turn.status, turn.error_code) == (4, "failed", "interrupted")
        assert (turn.user_text, turn.answer_text) == (question(4), PARTIAL)
        assert chat.service.turns.live(chat.session_id) is None
        assert not chat.service.sessions.list()[0].is_running
        chat.ask(5, 5)
        assert turn.answer_message_id == ""  # nothing that could be pinned is stored yet
        closed = chat.turns[3]
        assert closed == replace(turn, is_last=False, answer_message_id=closed.answer_message_id)
    body = server.bodies("chat")[-1]
    assert shape(body) == [(1, 3), 4, 5]
    assert content_of(body["messages"][2]) == PARTIAL
    assert faults(body["messages"]) == []


@pytest.mark.slow
def test_an_interrupted_turn_can_be_retried_under_its_number(
    open_chat: OpenChat, server: FakeOpenAI, die_in_a_turn: Die
) -> None:
    with open_chat() as chat:
        chat.ask(1, 1)
    server.script(hang(PARTIAL))
    die_in_a_turn(chat, question(2), has_saved_partial(chat))
    with open_chat(chat.session_id) as chat:
        ending = chat.retry()[-1]
        assert isinstance(ending, TurnFinished)
        assert ending.turn == 2
        assert [turn.status for turn in chat.turns] == ["finished", "finished"]
    assert raw_turns(server.bodies("chat")[-1]) == [1, 2]
    assert PARTIAL not in str(server.bodies("chat")[-1])


def test_an_answer_that_was_archived_counts_although_its_turn_was_never_ended(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    chat.change(f"UPDATE turn SET status = 'running' WHERE number = 2 AND session_id = '{chat.session_id}'")  # noqa: S608  # names of our own
    assert chat.last_turn.status == "finished"
    chat.ask(3, 3)
    assert [turn.status for turn in chat.turns] == ["finished"] * 3
    assert raw_turns(server.bodies("chat")[-1]) == [1, 2, 3]


def without_checkpoints(folder: Path) -> None:
    for file in folder.glob("checkpoint.db*"):
        file.unlink()


def with_garbage_for_checkpoints(folder: Path) -> None:
    without_checkpoints(folder)
    (folder / "checkpoint.db").write_bytes(b"no database at all" * 1_000)


@pytest.mark.parametrize("harm", [without_checkpoints, with_garbage_for_checkpoints])
def test_the_next_input_is_the_same_without_the_checkpoints(
    open_chat: OpenChat, server: FakeOpenAI, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    with open_chat() as chat:
        server.script(text("첫 답입니다."), tools(ScriptedCall("get_current_time", "{}", "call-1")), text("둘째 답."))
        chat.ask(1, 7)
        server.script(tools(ScriptedCall("get_current_time", "{}", "call-2")), text("여덟째 답입니다."))
        chat.ask(8, 8)
    harmed = tmp_path / "harmed"
    data_dir = chat.service.settings.turnfold_data_dir
    shutil.copytree(data_dir, harmed)
    harm(harmed)
    for folder in (data_dir, harmed):
        with open_chat(chat.session_id, turnfold_data_dir=folder) as opened:
            opened.ask(9, 9)
    whole, rebuilt = server.bodies("chat")[-2:]
    assert shape(whole)[-3:] == [7, 8, 9]
    assert rebuilt == whole


def test_a_state_that_lags_behind_the_archive_is_rebuilt(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    checkpoints = chat.service.settings.checkpoint_path
    with closing(sqlite3.connect(":memory:")) as kept, closing(sqlite3.connect(checkpoints)) as connection:
        connection.backup(kept)
        chat.ask(3, 3)
        kept.backup(connection)
    assert names(chat.say(question(4)))[-1] == "TurnFinished"
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]


def test_a_database_that_cannot_be_written_fails_the_send_and_nothing_else(chat: Chat) -> None:
    chat.ask(1, 1)
    refuse = "CREATE TRIGGER no_room BEFORE INSERT ON message WHEN NEW.role = 'ai' BEGIN SELECT RAISE(ABORT, 'x'); END"
    chat.change(refuse)
    failed = chat.say(question(2))[-1]
    assert isinstance(failed, TurnFailed)
    chat.change("DROP TRIGGER no_room")
    assert [turn.status for turn in chat.turns] == ["finished", "failed"]
    chat.ask(3, 3)
    assert [turn.number for turn in chat.turns] == [1, 2, 3]
