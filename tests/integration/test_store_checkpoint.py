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
from langgraph.checkpoint.sqlite import SqliteSaver

from graph.store.sqlite.checkpoint import SqliteCheckpoints
from graph.value.error import DatabaseBusyError
from tests.fake.counting_graph import build, build_chat, thread

ROOT = Path(__file__).resolve().parents[2]
EIGHT_OPEN_AND_PUT = """
import sys
from pathlib import Path
from langgraph.checkpoint.base import empty_checkpoint
from graph.store.sqlite.checkpoint import SqliteCheckpoints
from tests.fake.crowd import run_crowd

def work(number):
    checkpoints = SqliteCheckpoints(Path(sys.argv[1]), busy_timeout_seconds=30)
    config = {"configurable": {"thread_id": f"s{number}", "checkpoint_ns": ""}}
    with checkpoints.saver() as saver:
        saver.put(config, empty_checkpoint(), {}, {})
    checkpoints.close()

run_crowd(8, work)
"""


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with (
        closing(SqliteCheckpoints(tmp_path / "checkpoint.db", busy_timeout_seconds=5)) as opened,
        opened.saver() as saver,
    ):
        yield saver


def test_state_with_messages_comes_back_from_private_files_that_wait_for_no_disk(
    saver: SqliteSaver, tmp_path: Path
) -> None:
    chat = build_chat(saver, "네")
    chat.invoke({"messages": [HumanMessage("안녕", id="q1")], "turn_count": 1}, thread(), durability="sync")
    values = chat.get_state(thread()).values
    assert values["messages"] == [HumanMessage("안녕", id="q1"), AIMessage("네", id="a1")]
    assert values["turn_count"] == 1
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert set(files) >= {"checkpoint.db", "checkpoint.db-wal", "checkpoint.db-shm"}
    assert set(files.values()) == {0o600}
    pragmas = [saver.conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
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


def test_file_shrinks_after_big_sessions(saver: SqliteSaver, tmp_path: Path) -> None:
    chat = build_chat(saver, "x" * 10_000)
    for number in range(60):
        asked = {"messages": [HumanMessage("q", id=f"q{number}")], "turn_count": number}
        chat.invoke(asked, thread(f"s{number % 2}"), durability="exit")
    for name in ("s0", "s1"):
        saver.delete_thread(name)
    saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (tmp_path / "checkpoint.db").stat().st_size < 100_000


def test_forged_row_runs_no_code(saver: SqliteSaver, tmp_path: Path) -> None:
    graph = build(saver)
    graph.invoke({"count": 0}, thread())
    row = saver.conn.execute("SELECT checkpoint FROM checkpoints ORDER BY rowid DESC LIMIT 1").fetchone()
    checkpoint = ormsgpack.unpackb(row[0])
    for folder in (tmp_path / "default", tmp_path / "ours"):
        checkpoint["channel_values"]["count"] = ormsgpack.Ext(
            EXT_CONSTRUCTOR_SINGLE_ARG, ormsgpack.packb(("os", "mkdir", str(folder)))
        )
        blob = ormsgpack.packb(checkpoint)
        if folder.name == "default":
            JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(("msgpack", blob))
        else:
            with saver.cursor() as cursor:
                cursor.execute("UPDATE checkpoints SET checkpoint = ?", (blob,))
            graph.get_state(thread())
    assert (tmp_path / "default").exists()
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("damage", ["text", "pages"])
def test_bad_file_is_made_anew(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "checkpoint.db"
    with closing(SqliteCheckpoints(path, busy_timeout_seconds=5)) as first, first.saver() as saver:
        for number in range(5):
            build(saver).invoke({"count": number}, thread())
    content = path.read_bytes()
    bad = b"my diary, " * 500 if damage == "text" else content[:4096] + b"\xff" * (len(content) - 4096)
    path.write_bytes(bad)
    with closing(SqliteCheckpoints(path, busy_timeout_seconds=5)) as second, second.saver() as saver:
        assert build(saver).invoke({"count": 1}, thread()) == {"count": 2}


def test_lock_held_by_another_process_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.db"
    with closing(SqliteCheckpoints(path, busy_timeout_seconds=0.2)) as checkpoints:
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(DatabaseBusyError), checkpoints.saver() as saver:
                build(saver).invoke({"count": 1}, thread())
        with checkpoints.saver() as saver:
            assert build(saver).invoke({"count": 1}, thread()) == {"count": 2}
