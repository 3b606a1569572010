from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from graph.value.event import TurnFailed
from graph.value.view import TurnView
from tests.fake.body import content_of, faults, raw_turns, shape
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, hang, slowed, text, tools
from tests.fake.openai_server import FakeOpenAI

ROOT = Path(__file__).parents[2]
PARTIAL = "여기까지는 들었습니다."
LATE_SECONDS = 0.9  # after a save: a second one must have come by then
LOST_SECONDS = 0.7  # half a second, and what a machine under load may add
TRIES = 3
BEFORE = "먼저 시각을 알아보겠습니다."
SAID = "지금 서울은 "
WORDS = [f"{number}번째 말. " for number in range(400)]


@dataclass
class Victim:
    """A server in a process of its own, in the middle of its turn."""

    chat: Chat
    process: subprocess.Popen[bytes]
    shown: Path

    @property
    def pieces(self) -> list[tuple[int, str]]:
        """What it has shown: when, and the text; a line that a kill cut in half was not shown."""
        lines = self.shown.read_text(encoding="utf-8").splitlines() if self.shown.exists() else []
        return [(moment, piece) for line in lines if line.endswith("]") for moment, piece in [json.loads(line)]]

    @property
    def saved(self) -> str:
        rows = self.chat.rows(
            "SELECT partial_text FROM turn WHERE session_id = ? ORDER BY number", self.chat.session_id
        )
        return str(rows[-1][0]) if rows else ""

    def save(self, text: str) -> None:
        """Writes what its watcher would have written."""
        with closing(sqlite3.connect(self.chat.service.settings.database_path)) as connection, connection:
            connection.execute("UPDATE turn SET partial_text = ? WHERE session_id = ?", (text, self.chat.session_id))

    def kill(self) -> int:
        """Ends it by SIGKILL; returns when, as `pieces` counts time."""
        moment = time.monotonic_ns()
        self.process.kill()
        self.process.wait()
        return moment


StartVictim = Callable[[Chat, str], Victim]


@pytest.fixture
def start_victim(server: FakeOpenAI, tmp_path: Path) -> Iterator[StartVictim]:
    """Has a process of its own run the next turn of a chat."""
    started: list[Victim] = []

    def start(chat: Chat, message: str) -> Victim:
        shown = tmp_path / f"shown-{len(started)}"
        words = [str(chat.service.settings.turnfold_data_dir), server.url, chat.session_id, message, str(shown)]
        process = subprocess.Popen([sys.executable, "-m", "tests.fake.killed_server", *words], cwd=ROOT)
        started.append(Victim(chat, process, shown))
        return started[-1]

    yield start
    for victim in started:
        victim.kill()


def turn_of(victim: Victim) -> TurnView:
    """What the server that reads shows of the killed one's turn."""
    chat = victim.chat
    assert chat.service.turns.live(chat.session_id) is None
    turn = chat.last_turn
    assert (turn.status, turn.error_code, turn.is_last) == ("failed", "interrupted", True)
    return turn


def check_goes_on(victim: Victim, turn: TurnView, server: FakeOpenAI) -> None:
    """The next message settles the turn as it was shown, and a provider takes what is sent then."""
    victim.chat.ask(2, 2)
    closed = victim.chat.turns[0]
    assert closed == replace(turn, is_last=False, answer_message_id=closed.answer_message_id, seconds=closed.seconds)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


@pytest.mark.slow
def test_a_kill_loses_half_a_second_of_an_answer_and_no_more(
    chat: Chat, start_victim: StartVictim, server: FakeOpenAI
) -> None:
    lost = [lost_by_a_kill(start_victim(Chat(chat.service), question(1)), server)]
    while lost[-1] and len(lost) < TRIES:  # a machine under load may have been late
        lost.append(lost_by_a_kill(start_victim(Chat(chat.service), question(1)), server))
    assert lost[-1] == "", lost


def lost_by_a_kill(victim: Victim, server: FakeOpenAI) -> str:
    """Kills it as late as can be after a save; returns what is lost of the text that it had shown long enough."""
    chat = victim.chat
    server.script(text(*WORDS, pause_seconds=0.02), may_stay=True)
    chat.wait_until(lambda: victim.saved != "")
    before = victim.saved
    chat.wait_until(lambda: victim.saved != before)
    saved_at = time.monotonic_ns()
    chat.wait_until(lambda: time.monotonic_ns() - saved_at >= LATE_SECONDS * 1e9)
    killed_at = victim.kill()
    turn = turn_of(victim)
    assert "".join(WORDS).startswith(turn.answer_text)
    shown = "".join(piece for moment, piece in victim.pieces if moment <= killed_at - LOST_SECONDS * 1e9)
    return shown.strip().removeprefix(turn.answer_text) if len(shown.strip()) > len(turn.answer_text) else ""


@pytest.mark.slow
def test_a_kill_behind_a_tool_call_keeps_what_was_said_before_it_and_after(
    chat: Chat, start_victim: StartVictim, server: FakeOpenAI
) -> None:
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1"), answer=BEFORE), hang(SAID))
    victim = start_victim(chat, question(1))
    victim.chat.wait_until(lambda: victim.saved == SAID)
    victim.kill()
    turn = turn_of(victim)
    assert turn.answer_text == f"{BEFORE}\n\n{SAID.strip()}"
    assert [step.status for step in turn.steps] == ["done"]
    check_goes_on(victim, turn, server)


@pytest.mark.slow
def test_a_kill_inside_a_tool_call_says_nothing_twice(
    chat: Chat, start_victim: StartVictim, server: FakeOpenAI
) -> None:
    arguments = json.dumps({"material": "가" * 100, "question": "?"})
    call = tools(ScriptedCall("reasoning", arguments, "call-1"), answer=BEFORE)
    server.script(slowed(call, 0.02), hang(is_silent=True))
    victim = start_victim(chat, question(1))
    victim.chat.wait_until(lambda: victim.saved == BEFORE)
    server.wait_until(lambda fake: len(fake.bodies("chat")) == 2)
    victim.kill()
    # Killed before the next save, which says that nothing is being streamed.
    victim.save(BEFORE)
    turn = turn_of(victim)
    assert turn.answer_text == BEFORE
    assert [step.status for step in turn.steps] == ["error"]
    check_goes_on(victim, turn, server)


def test_a_killed_server_leaves_an_interrupted_turn_and_the_chat_goes_on(
    open_chat: OpenChat, server: FakeOpenAI, start_victim: StartVictim
) -> None:
    with open_chat() as chat:
        chat.ask(1, 3)
    server.script(hang(PARTIAL))
    victim = start_victim(chat, question(4))
    chat.wait_until(lambda: victim.saved == PARTIAL)
    victim.kill()
    with open_chat(chat.session_id) as chat:
        turn = chat.last_turn
        assert (turn.number, turn.status, turn.error_code) == (4, "failed", "interrupted")
        assert (turn.user_text, turn.answer_text) == (question(4), PARTIAL)
        assert chat.service.turns.live(chat.session_id) is None
        assert not chat.service.sessions.list()[0].is_running
        chat.ask(5, 5)
        assert turn.answer_message_id == ""  # nothing that could be pinned is stored yet
        closed = chat.turns[3]
        assert closed == replace(
            turn, is_last=False, answer_message_id=closed.answer_message_id, seconds=closed.seconds
        )
    body = server.bodies("chat")[-1]
    assert shape(body) == [(1, 3), 4, 5]
    assert content_of(body["messages"][2]) == PARTIAL
    assert faults(body["messages"]) == []


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
    with closing(sqlite3.connect(":memory:")) as retained, closing(sqlite3.connect(checkpoints)) as connection:
        connection.backup(retained)
        chat.ask(3, 3)
        retained.backup(connection)
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
