from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2
import psycopg
import pytest
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from tests.fake.chat import question
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_app import KEY, ask_health, served
from tests.fake.served_chat import Answer, ReceivedEvent, text_of

pytestmark = pytest.mark.slow
LEASE_SECONDS = 4.0
PARTIAL = "먼저 복제하고"
TOKEN = "token-of-a-program-0123456789"  # noqa: S105  # of these servers alone


def read(
    program: httpx2.Client, method: str, path: str, *, until: str = "", body: dict[str, str] | None = None
) -> list[ReceivedEvent]:
    """Reads the events of a stream to the end, or until they say this; then the client is gone."""
    with program.stream(method, path, json=body) as answer:
        received = b""
        for piece in answer.iter_raw():
            received += piece
            if until and until.encode() in received:
                break
    return Answer(answer.status_code, answer.headers, received).received


@pytest.mark.parametrize(
    ("is_one_file", "is_one_machine"),
    [
        pytest.param(True, True, id="one file"),
        pytest.param(False, True, id="one machine", marks=pytest.mark.postgres),
        pytest.param(False, False, id="two machines", marks=pytest.mark.postgres),
    ],
)
def test_a_turn_whose_server_is_killed_is_shown_as_interrupted_by_the_other_which_goes_on_with_it(
    server: FakeOpenAI, tmp_path: Path, request: pytest.FixtureRequest, *, is_one_file: bool, is_one_machine: bool
) -> None:
    url: str = "" if is_one_file else request.getfixturevalue("postgres_url")
    settings = {"CHAT_API_TOKENS": f"editor:local:{TOKEN}", "MODEL_WINDOW_TOKENS": "100000"}
    settings |= {"LEASE_SECONDS": str(LEASE_SECONDS), "HEARTBEAT_SECONDS": "1"}
    settings |= {"CHAT_DATABASE_URL": url} if url else {}
    with ExitStack() as stack:
        programs, processes = [], []
        for number in range(2):
            folder = tmp_path / ("data" if is_one_file else f"data-{number}")
            started = served("app.py", folder, server.url, tmp_path / f"log-{number}", **settings)
            process, port = stack.enter_context(started)
            program = httpx2.Client(
                base_url=f"http://127.0.0.1:{port}",
                headers={"Authorization": f"Bearer {TOKEN}"},
                timeout=60,
                trust_env=False,
            )
            programs.append(stack.enter_context(program))
            processes.append((process, port))
        for process, port in processes:
            assert ask_health(port, process) == (200, "ok")
        one, other = programs
        server.script(hang(PARTIAL))
        turn_events = read(one, "POST", "/chat", until=PARTIAL, body={"message": question(1)})
        session_id = turn_events[0].value["metadata"]["conversationId"]
        events = f"/chat/{session_id}/events"
        assert [item["is_running"] for item in other.get("/sessions").json()["sessions"]] == [True]
        if not is_one_machine:  # whether its process lives can't be seen from here
            with psycopg.connect(url) as connection:
                connection.execute("UPDATE lease SET host = 'another machine'")
        while text_of(read(other, "GET", events, until=PARTIAL)) != PARTIAL:  # it may have been cut within
            time.sleep(0.05)
        processes[0][0].kill()
        processes[0][0].wait()
        killed_at = time.monotonic()
        ended = read(other, "GET", events)
        assert time.monotonic() - killed_at < LEASE_SECONDS * 3
        assert (ended[-3].name, ended[-3].value["error"]["code"]) == ("turn_failed", "interrupted")
        (turn,) = other.get(f"/sessions/{session_id}/turns").json()["turns"]
        assert (turn["status"], turn["error_code"], turn["answer_text"]) == ("failed", "interrupted", PARTIAL)
        assert other.post(f"/sessions/{session_id}/retry").status_code == 202
        assert read(other, "GET", events)[-3].name == "turn_finished"
        (turn,) = other.get(f"/sessions/{session_id}/turns").json()["turns"]
        assert (turn["status"], turn["attempt"]) == ("finished", 2)


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "turnfold.db")) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end_under_an_open_page_keeps_its_turn_as_stopped(
    server: FakeOpenAI, tmp_path: Path, number: signal.Signals
) -> None:
    server.script(hang("여기까지는 들었습니다."))
    folder, log = tmp_path / "data", tmp_path / "log"
    with served("tests/fake/served_turn.py", folder, server.url, log, TURNFOLD_LOG_LEVEL="INFO") as (process, port):
        assert ask_health(port, process) == (200, "ok")
        server.wait_until(lambda fake: fake.hanging_count == 1, seconds=60)
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
    ("content", "received", "advice"),
    [
        (b"my diary, " * 1_000, "not_a_database", "make restore"),
        ("9999", "newer_database", "Update Turnfold"),
        (
            "0012",
            "older_database",
            "make export TO=<file> with the version that wrote it, then make import FROM=<file>",
        ),
    ],
    ids=["no-database", "newer", "older"],
)
def test_a_file_that_cannot_be_used_ends_the_start_with_one_sentence(
    server: FakeOpenAI, tmp_path: Path, content: bytes | str, received: str, advice: str
) -> None:
    folder, log = tmp_path / "data", tmp_path / "log"
    folder.mkdir()
    file = folder / "turnfold.db"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
            connection.execute("INSERT INTO alembic_version VALUES (?)", (content,))
    before = file.read_bytes()
    with served("app.py", folder, server.url, log) as (process, _):
        assert process.wait(60) != 0
    written = log.read_text()
    assert f"Turnfold can't start: {received}: {file}" in written
    assert advice in written
    assert "Traceback" not in written
    assert file.read_bytes() == before


METRICS_TOKEN = "canary-0123456789-abcdef"  # noqa: S105  # of this test alone
NAMED = {"Host": "chat.example.com"}
FORWARDED = {"X-Forwarded-For": "192.0.2.7"}
BEARER = {"Authorization": f"Bearer {METRICS_TOKEN}"}
FIRST_LINES = {"/metrics": "# HELP turnfold_turns_total", "/_stcore/metrics": "# TYPE"}


@pytest.mark.parametrize(
    ("token", "sent", "statuses"),
    [
        ("", [{}, NAMED, FORWARDED, BEARER], [200, 404, 404, 200]),
        (METRICS_TOKEN, [{}, NAMED, {**NAMED, **BEARER}, BEARER], [401, 401, 200, 200]),
    ],
)
def test_the_whole_server_keeps_its_figures_and_streamlits(
    server: FakeOpenAI, tmp_path: Path, token: str, sent: list[dict[str, str]], statuses: list[int]
) -> None:
    settings = {"TURNFOLD_HOSTS": "chat.example.com", "METRICS_TOKEN": token}
    with (
        served("app.py", tmp_path / "data", server.url, tmp_path / "log", **settings) as (process, port),
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        assert ask_health(port, process) == (200, "ok")
        for path, first_line in FIRST_LINES.items():
            answers = [client.get(path, headers=headers) for headers in sent]
            assert [answer.status_code for answer in answers] == statuses, path
            assert all(answer.text.startswith(first_line) for answer in answers if answer.status_code == 200)
