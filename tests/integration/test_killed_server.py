from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from graph.view import TurnView
from tests.fake.body import faults
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import ScriptedCall, hang, slowed, text, tools
from tests.fake.openai_server import FakeOpenAI

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
LATE_SECONDS = 0.9  # after a save: a second one must have come by then
LOST_SECONDS = 0.7  # half a second, and what a machine under load may add
TRIES = 3
BEFORE = "먼저 시각을 알아보겠습니다."
PARTIAL = "지금 서울은 "
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
        rows = self.chat.rows("SELECT partial_text FROM turn WHERE session_id = ?", self.chat.session_id)
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


StartVictim = Callable[[], Victim]


@pytest.fixture
def start_victim(chat: Chat, server: FakeOpenAI, tmp_path: Path) -> Iterator[StartVictim]:
    started: list[Victim] = []

    def start() -> Victim:
        its_chat = Chat(chat.service)
        shown = tmp_path / f"shown-{len(started)}"
        words = [str(chat.service.settings.turnfold_data_dir), server.url, its_chat.session_id, question(1), str(shown)]
        process = subprocess.Popen([sys.executable, "-m", "tests.fake.killed_server", *words], cwd=ROOT)
        started.append(Victim(its_chat, process, shown))
        return started[-1]

    yield start
    for victim in started:
        victim.process.kill()
        victim.process.wait()


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
    assert closed == replace(turn, is_last=False, answer_message_id=closed.answer_message_id)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_a_kill_loses_half_a_second_of_an_answer_and_no_more(start_victim: StartVictim, server: FakeOpenAI) -> None:
    lost = [lost_by_a_kill(start_victim(), server)]
    while lost[-1] and len(lost) < TRIES:  # a machine under load may have been late
        lost.append(lost_by_a_kill(start_victim(), server))
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


def test_a_kill_behind_a_tool_call_keeps_what_was_said_before_it_and_after(
    start_victim: StartVictim, server: FakeOpenAI
) -> None:
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1"), answer=BEFORE), hang(PARTIAL))
    victim = start_victim()
    victim.chat.wait_until(lambda: victim.saved == PARTIAL)
    victim.kill()
    turn = turn_of(victim)
    assert turn.answer_text == f"{BEFORE}\n\n{PARTIAL.strip()}"
    assert [step.status for step in turn.steps] == ["done"]
    check_goes_on(victim, turn, server)


def test_a_kill_inside_a_tool_call_says_nothing_twice(start_victim: StartVictim, server: FakeOpenAI) -> None:
    arguments = json.dumps({"material": "가" * 100, "question": "?"})
    call = tools(ScriptedCall("reasoning", arguments, "call-1"), answer=BEFORE)
    server.script(slowed(call, 0.02), hang(is_silent=True))
    victim = start_victim()
    victim.chat.wait_until(lambda: victim.saved == BEFORE)
    server.wait_until(lambda fake: len(fake.bodies("chat")) == 2)
    victim.kill()
    # Killed before the next save, which says that nothing is being streamed.
    victim.save(BEFORE)
    turn = turn_of(victim)
    assert turn.answer_text == BEFORE
    assert [step.status for step in turn.steps] == ["error"]
    check_goes_on(victim, turn, server)
