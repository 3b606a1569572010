from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.fault.check import Ledger, check_folder, check_rows
from tests.fault.scenario import SESSION, may_be, say_all, serve
from tests.fault.size import LARGEST_SHARE, MESSAGE_BYTES, archive_share


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ledger]:
    folder, ledger = tmp_path_factory.mktemp("sound"), Ledger()
    with serve(folder) as service:
        say_all(service, ledger, range(1, 6))
    return folder, ledger


@pytest.fixture
def chatted(sound: tuple[Path, Ledger], tmp_path: Path) -> tuple[Path, Ledger]:
    """A copy of the sound chat."""
    return shutil.copytree(sound[0], tmp_path / "chatted"), sound[1]


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "turnfold.db")) as connection, connection:
        connection.execute(statement)


def test_a_sound_chat_passes(chatted: tuple[Path, Ledger]) -> None:
    assert check_folder(*chatted) == []


def test_planted_faults_are_found(sound: tuple[Path, Ledger], tmp_path: Path) -> None:
    ledger = sound[1]
    for number, (statement, found) in enumerate(
        (
            ("DELETE FROM message WHERE message_id = 'q-4'", "q-4 lost"),
            ("UPDATE message SET message_id = 'q-9' WHERE message_id = 'q-2'", "q-2 lost"),
            ("UPDATE turn SET user_message_id = 'q-1' WHERE number = 2", "one message in two turns"),
            ("DELETE FROM message WHERE turn = 4 AND role = 'ai'", "answer of turn 4 lost"),
            ("UPDATE session SET turn_count = 3", "turn numbers with a gap"),
            ("UPDATE turn SET number = 9 WHERE number = 4", "q-4 is not turn 4"),
            ("UPDATE message SET position = 90 WHERE message_id = 'q-5'", "positions with a gap"),
            ("UPDATE message SET turn = 2 WHERE message_id = 'q-5'", "turns out of order"),
        )
    ):
        folder = shutil.copytree(sound[0], tmp_path / str(number))
        change(folder, statement)
        wrong = check_rows(folder, SESSION, ledger.acknowledged[SESSION], ledger.shown[SESSION])
        assert any(found in fault for fault in wrong), wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("DELETE FROM message WHERE turn = 5 AND role = 'tool'", "calls without results"),
        (
            "UPDATE turn SET status = 'failed', error_code = 'internal' WHERE number = 5",
            "shown answer of turn 5 is failed",
        ),
        ("UPDATE record SET to_position = to_position - 4 WHERE status = 'COMPLETED'", "raw turns"),
    ],
)
def test_a_fault_that_the_next_turn_shows_is_found(chatted: tuple[Path, Ledger], statement: str, found: str) -> None:
    change(chatted[0], statement)
    wrong = check_folder(*chatted)
    assert any(found in fault for fault in wrong), wrong


def test_a_second_number_for_one_message_is_found() -> None:
    ledger = Ledger()
    ledger.acknowledge(SESSION, "q-1", 1)
    ledger.acknowledge(SESSION, "q-1", 2)
    assert ledger.wrong


def test_what_a_lock_may_do_is_judged_by_how_long_it_was_held() -> None:
    for held_seconds, may_be_taken, may_be_refused in ((0.5, True, False), (1.3, True, True), (2.5, False, True)):
        assert may_be("", held_seconds, 1.2) is may_be_taken
        assert may_be("busy", held_seconds, 1.2) is may_be_refused


@pytest.mark.slow
def test_the_archive_and_what_calls_were_sent_take_little_room(tmp_path: Path) -> None:
    with serve(tmp_path) as service:
        say_all(service, Ledger(), range(2, 81, 2))
    share, message_bytes = archive_share(tmp_path / "turnfold.db")
    assert message_bytes >= MESSAGE_BYTES
    assert share <= LARGEST_SHARE
    with closing(sqlite3.connect(tmp_path / "turnfold.db")) as connection:
        (manifest_bytes,) = connection.execute("SELECT avg(length(manifest)) FROM model_call").fetchone()
    assert manifest_bytes <= 200
