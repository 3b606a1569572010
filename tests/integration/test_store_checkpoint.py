from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG, JsonPlusSerializer

from graph.store.sqlite.checkpoint import Checkpointer, open_checkpointer
from graph.value.error import DatabaseBusyError, DatabaseError, NotADatabaseError
from tests.fake.counting_graph import build, build_chat, thread

ROOT = Path(__file__).resolve().parents[2]
EIGHT_OPEN_AND_PUT = """
import sys
from pathlib import Path
from langgraph.checkpoint.base import empty_checkpoint
from graph.store.sqlite.checkpoint import open_checkpointer
from tests.fake.crowd import run_crowd

def work(number):
    checkpointer = open_checkpointer(Path(sys.argv[1]), busy_timeout_seconds=30)
    config = {"configurable": {"thread_id": f"s{number}", "checkpoint_ns": ""}}
    checkpointer.put(config, empty_checkpoint(), {}, {})
    checkpointer.close()

run_crowd(8, work)
"""
FAR_AHEAD_ID = "2f000000-0000-6000-8000-000000000000"


@pytest.fixture
def checkpointer(tmp_path: Path) -> Iterator[Checkpointer]:
    opened = open_checkpointer(tmp_path / "checkpoint.db", busy_timeout_seconds=5)
    yield opened
    opened.close()


def rows(checkpointer: Checkpointer, table: str) -> int:
    found: int = checkpointer.conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608  # a test's own name
    return found


def test_state_with_messages_comes_back_from_private_files_that_wait_for_no_disk(
    checkpointer: Checkpointer, tmp_path: Path
) -> None:
    chat = build_chat(checkpointer, "네")
    chat.invoke({"messages": [HumanMessage("안녕", id="q1")], "turn_count": 1}, thread(), durability="sync")
    values = chat.get_state(thread()).values
    assert values["messages"] == [HumanMessage("안녕", id="q1"), AIMessage("네", id="a1")]
    assert values["turn_count"] == 1
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert set(files) >= {"checkpoint.db", "checkpoint.db-wal", "checkpoint.db-shm"}
    assert set(files.values()) == {0o600}
    pragmas = [checkpointer.conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert pragmas == ["wal", 1]


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, b"my diary, " * 500], ids=["no-file", "bad-file"])
def test_eight_processes_start_at_once(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "checkpoint.db"
    if content is not None:
        path.write_bytes(content)
    command = [sys.executable, "-c", EIGHT_OPEN_AND_PUT, str(path)]
    crowd = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert crowd.returncode == 0, crowd.stderr
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (8,)


def test_error_in_the_block_rolls_back(checkpointer: Checkpointer) -> None:
    build(checkpointer).invoke({"count": 0}, thread())
    before = rows(checkpointer, "checkpoints")

    def break_off() -> None:
        with checkpointer.cursor() as cursor:
            cursor.execute("DELETE FROM checkpoints")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert rows(checkpointer, "checkpoints") == before > 0


def test_prune_keeps_the_newest_two_and_their_writes_of_that_thread_alone(checkpointer: Checkpointer) -> None:
    graph = build(checkpointer)
    for name in ("s1", "other"):
        for _ in range(3):
            graph.invoke({"count": 10}, thread(name))
    other = list(checkpointer.list(thread("other")))
    newest = list(checkpointer.list(thread()))[:2]
    checkpointer.prune_thread("s1")
    assert list(checkpointer.list(thread())) == newest
    assert list(checkpointer.list(thread("other"))) == other
    retained = {entry.config["configurable"]["checkpoint_id"] for entry in newest}
    written = checkpointer.conn.execute("SELECT DISTINCT checkpoint_id FROM writes WHERE thread_id = 's1'").fetchall()
    assert {row[0] for row in written} <= retained


def test_prune_keeps_the_new_turn_after_the_clock_was_set_back(checkpointer: Checkpointer) -> None:
    graph = build(checkpointer)
    graph.invoke({"count": 1}, thread())
    checkpointer.prune_thread("s1", keep=1)
    with checkpointer.cursor() as cursor:
        cursor.execute("UPDATE checkpoints SET checkpoint_id = ?", (FAR_AHEAD_ID,))
    graph.invoke({"count": 41}, thread())
    assert graph.get_state(thread()).values == {"count": 42}
    for keep in (2, 1):
        checkpointer.prune_thread("s1", keep=keep)
        assert graph.get_state(thread()).values == {"count": 42}
        assert rows(checkpointer, "checkpoints") == keep


def test_prune_that_fails_deletes_nothing(checkpointer: Checkpointer) -> None:
    build(checkpointer).invoke({"count": 0}, thread())
    before = rows(checkpointer, "checkpoints")
    checkpointer.conn.execute("ALTER TABLE writes RENAME TO elsewhere")
    with pytest.raises(DatabaseError):
        checkpointer.prune_thread("s1", keep=1)
    assert rows(checkpointer, "checkpoints") == before > 1


def test_file_stays_small_over_many_turns_and_shrinks_after_a_big_one(
    checkpointer: Checkpointer, tmp_path: Path
) -> None:
    chat = build_chat(checkpointer, "x" * 10_000)
    for number in range(60):
        name = f"s{number % 2}"
        chat.invoke({"messages": [HumanMessage("q", id=f"q{number}")], "turn_count": number}, thread(name))
        checkpointer.prune_thread(name)
        if number % 10 == 9:
            checkpointer.delete_thread(name)
    for name in ("s0", "s1"):
        checkpointer.delete_thread(name)
    checkpointer.close()
    assert (tmp_path / "checkpoint.db").stat().st_size < 100_000


def test_forged_row_runs_no_code(checkpointer: Checkpointer, tmp_path: Path) -> None:
    graph = build(checkpointer)
    graph.invoke({"count": 0}, thread())
    row = checkpointer.conn.execute("SELECT checkpoint FROM checkpoints ORDER BY rowid DESC LIMIT 1").fetchone()
    checkpoint = ormsgpack.unpackb(row[0])
    for folder in (tmp_path / "default", tmp_path / "ours"):
        checkpoint["channel_values"]["count"] = ormsgpack.Ext(
            EXT_CONSTRUCTOR_SINGLE_ARG, ormsgpack.packb(("os", "mkdir", str(folder)))
        )
        blob = ormsgpack.packb(checkpoint)
        if folder.name == "default":
            JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(("msgpack", blob))
        else:
            with checkpointer.cursor() as cursor:
                cursor.execute("UPDATE checkpoints SET checkpoint = ?", (blob,))
            graph.get_state(thread())
    assert (tmp_path / "default").exists()
    assert not (tmp_path / "ours").exists()


def test_checkpoint_that_cannot_be_read_is_told_apart(checkpointer: Checkpointer) -> None:
    graph = build(checkpointer)
    graph.invoke({"count": 0}, thread())
    for kind in ("msgpack", "pickle", "json"):
        with checkpointer.cursor() as cursor:
            cursor.execute("UPDATE checkpoints SET type = ?, checkpoint = ?", (kind, b"\xc1broken"))
        with pytest.raises(NotADatabaseError):
            graph.get_state(thread())


@pytest.mark.parametrize("damage", ["text", "pages"])
def test_bad_file_is_made_anew(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "checkpoint.db"
    first = open_checkpointer(path, busy_timeout_seconds=5)
    for number in range(5):
        build(first).invoke({"count": number}, thread())
    first.close()
    content = path.read_bytes()
    bad = b"my diary, " * 500 if damage == "text" else content[:4096] + b"\xff" * (len(content) - 4096)
    path.write_bytes(bad)
    second = open_checkpointer(path, busy_timeout_seconds=5)
    assert build(second).invoke({"count": 1}, thread()) == {"count": 2}
    second.close()


def test_lock_held_by_another_process_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.db"
    checkpointer = open_checkpointer(path, busy_timeout_seconds=0.2)
    graph = build(checkpointer)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseBusyError):
            graph.invoke({"count": 1}, thread())
    assert graph.invoke({"count": 1}, thread()) == {"count": 2}
    checkpointer.close()
