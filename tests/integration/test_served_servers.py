from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import psycopg
import pytest
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from tests.fake.chat import question
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_app import KEY, ask_health, served
from tests.fake.served_chat import Answer, text_of

pytestmark = pytest.mark.slow
LEASE_SECONDS = 4.0
PATIENCE_SECONDS = 60.0
PARTIAL = "먼저 복제하고"
TOKEN: Final = "token-of-a-program-0123456789"  # noqa: S105  # of these servers alone


@dataclass
class AppServer:
    """One server, and a program that asks it."""

    process: subprocess.Popen[bytes]
    port: int
    program: httpx2.Client

    def wait_until_ready(self) -> None:
        assert ask_health(self.port, self.process) == (200, "ok")

    def kill(self) -> None:
        """Ends it as a power failure would."""
        self.process.kill()
        self.process.wait()

    def get(self, path: str) -> Any:  # noqa: ANN401  # JSON of any shape
        return self.program.get(path).raise_for_status().json()

    def post(self, path: str) -> int:
        """Sends a request without a body; returns the status."""
        return self.program.post(path).status_code

    def chat(self, body: Mapping[str, Any], *, until: Callable[[bytes], bool] = lambda _: False) -> Answer:
        """Sends a message and reads its events to the end, or until they look like that; then the client is gone."""
        return self._read("POST", "/chat", until, json=body)

    def follow(self, session_id: str, *, until: Callable[[bytes], bool] = lambda _: False) -> Answer:
        """Reads the events of the newest turn."""
        return self._read("GET", f"/chat/{session_id}/events", until)

    def _read(self, method: str, path: str, until: Callable[[bytes], bool], **request: Any) -> Answer:  # noqa: ANN401  # what httpx takes
        with self.program.stream(method, path, **request) as answer:
            body = b""
            for piece in answer.iter_raw():
                body += piece
                if until(body):
                    break
            return Answer(answer.status_code, answer.headers, body)


@contextmanager
def app_servers(folder: Path, model_url: str, count: int = 2, **settings: str) -> Iterator[list[AppServer]]:
    """Starts the servers at once over the files of a folder, or each with a folder of its own and one Postgres."""
    settings = {"CHAT_API_TOKENS": f"editor:local:{TOKEN}", "MODEL_WINDOW_TOKENS": "100000", **settings}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with ExitStack() as stack:
        servers: list[AppServer] = []
        for number in range(count):
            log = folder / f"log-{number}"
            data = folder / (f"data-{number}" if "CHAT_DATABASE_URL" in settings else "data")
            process, port = stack.enter_context(served("app.py", data, model_url, log, **settings))
            url = f"http://127.0.0.1:{port}"
            program = httpx2.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False)
            servers.append(AppServer(process, port, stack.enter_context(program)))
        for server in servers:
            server.wait_until_ready()
        yield servers


@pytest.fixture(params=[pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    return {} if request.param == "sqlite" else {"CHAT_DATABASE_URL": request.getfixturevalue("postgres_url")}


@pytest.fixture
def servers(server: FakeOpenAI, tmp_path: Path, database: dict[str, str]) -> Iterator[list[AppServer]]:
    lease = {"LEASE_SECONDS": str(LEASE_SECONDS), "HEARTBEAT_SECONDS": "1"}
    with app_servers(tmp_path, server.url, 2, **lease, **database) as started:
        yield started


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)


def begin(server: AppServer) -> str:
    """Begins a turn that hangs in its answer; returns the session's id."""
    begun = server.chat({"message": question(1)}, until=lambda body: PARTIAL.encode() in body)
    return str(begun.told[0].value["metadata"]["conversationId"])


def run_elsewhere(url: str) -> None:
    """Has the running turn be another machine's: whether its process lives can't be seen from here."""
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE lease SET host = 'another machine'")


@pytest.mark.parametrize(
    ("database", "is_elsewhere"),
    [
        pytest.param("sqlite", False, id="one file"),
        pytest.param("postgres", False, id="one machine", marks=pytest.mark.postgres),
        pytest.param("postgres", True, id="two machines", marks=pytest.mark.postgres),
    ],
    indirect=["database"],
)
def test_a_turn_whose_server_is_killed_is_shown_as_interrupted_by_the_other_which_goes_on_with_it(
    servers: list[AppServer], server: FakeOpenAI, database: dict[str, str], *, is_elsewhere: bool
) -> None:
    one, other = servers
    server.script(hang(PARTIAL))
    session_id = begin(one)
    assert [item["is_running"] for item in other.get("/sessions")["sessions"]] == [True]
    if is_elsewhere:
        run_elsewhere(database["CHAT_DATABASE_URL"])
    wait_until(lambda: text_of(other.follow(session_id, until=lambda body: PARTIAL.encode() in body).told) == PARTIAL)
    one.kill()
    killed_at = time.monotonic()
    ended = other.follow(session_id).told
    assert time.monotonic() - killed_at < LEASE_SECONDS * 3
    assert (ended[-3].name, ended[-3].value["error"]["code"]) == ("turn_failed", "interrupted")
    (turn,) = other.get(f"/sessions/{session_id}/turns")["turns"]
    assert (turn["status"], turn["error_code"], turn["answer_text"]) == ("failed", "interrupted", PARTIAL)
    assert other.post(f"/sessions/{session_id}/retry") == 202
    assert other.follow(session_id).told[-3].name == "turn_finished"
    (turn,) = other.get(f"/sessions/{session_id}/turns")["turns"]
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
