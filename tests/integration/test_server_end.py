from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from tests.fake.chat import question
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_app import KEY, ask_health, served

pytestmark = pytest.mark.slow


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "turnfold.db")) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end_under_an_open_page_keeps_its_turn_as_stopped(
    server: FakeOpenAI, tmp_path: Path, number: signal.Signals
) -> None:
    server.script(hang("여기까지는 들었습니다."))
    folder, log = tmp_path / "data", tmp_path / "log"
    with served("tests/fake/served_turn.py", folder, server.url, log) as (process, port):
        assert ask_health(port, process) == (200, "ok")
        server.wait_until(lambda fake: fake.hanging_count == 1)
        page = f"127.0.0.1:{port}"
        with connect(
            f"ws://{page}/_stcore/stream", origin=Origin(f"http://{page}"), subprotocols=[Subprotocol("streamlit")]
        ):
            time.sleep(0.3)  # the first words are on their way
            process.send_signal(number)
            process.wait(15)
    assert rows(folder, "SELECT status, partial_text FROM turn") == [("stopped", "여기까지는 들었습니다.")]
    assert rows(folder, "SELECT expires_at FROM lease") == [(None,)]
    written = log.read_text()
    assert "session=served turn=1" in written
    assert question(1)[:20] not in written
    assert KEY not in written


def test_health_says_when_the_database_is_gone(server: FakeOpenAI, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with served("app.py", folder, server.url, tmp_path / "log") as (process, port):
        assert ask_health(port, process) == (200, "ok")
        with closing(sqlite3.connect(folder / "turnfold.db")) as connection:
            connection.execute("ALTER TABLE session RENAME TO elsewhere")
        assert ask_health(port, process) == (503, "database")


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"my diary, " * 1_000, "not_a_database"), (None, "newer_database")],
    ids=["no-database", "newer"],
)
def test_a_file_that_cannot_be_used_ends_the_start_with_one_sentence(
    server: FakeOpenAI, tmp_path: Path, content: bytes | None, told: str
) -> None:
    folder, log = tmp_path / "data", tmp_path / "log"
    folder.mkdir()
    file = folder / "turnfold.db"
    if content is None:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
            connection.execute("INSERT INTO alembic_version VALUES ('9999')")
    else:
        file.write_bytes(content)
    before = file.read_bytes()
    with served("app.py", folder, server.url, log) as (process, _):
        assert process.wait(60) != 0
    written = log.read_text()
    assert f"Turnfold can't start: {told}: {file}" in written
    assert "Traceback" not in written
    assert file.read_bytes() == before
