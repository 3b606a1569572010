from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import psycopg
import pytest

from tests.fake.app_servers import TOKEN, AppServer, app_servers
from tests.fake.chat import question
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_chat import text_of

pytestmark = pytest.mark.slow
LEASE_SECONDS = 4.0
PATIENCE_SECONDS = 60.0
PARTIAL = "먼저 복제하고"


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


def test_either_lists_shows_and_stops_a_turn_of_the_other(servers: list[AppServer], server: FakeOpenAI) -> None:
    one, other = servers
    server.script(hang(PARTIAL))
    session_id = begin(one)
    assert [item["is_running"] for item in other.get("/sessions")["sessions"]] == [True]
    seen = other.follow(session_id, until=lambda body: PARTIAL.encode() in body)
    assert text_of(seen.told) == PARTIAL
    assert other.post(f"/sessions/{session_id}/stop") == 204
    assert one.follow(session_id).told[-3].name == "turn_stopped"
    assert other.follow(session_id).told[-3].name == "turn_stopped"


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


def test_a_library_that_tries_again_at_the_other_server_is_given_the_same_answer(
    servers: list[AppServer], server: FakeOpenAI
) -> None:
    server.script(text(*f"{PARTIAL} " * 20, pause_seconds=0.03))
    told: list[tuple[str, str]] = []
    streams = []
    for each in servers:
        program = openai.OpenAI(base_url=f"http://127.0.0.1:{each.port}/v1", api_key=TOKEN, max_retries=0)
        stream = program.chat.completions.create(
            model="scripted-model",
            messages=[{"role": "user", "content": question(1)}],
            stream=True,
            extra_headers={"Idempotency-Key": "once"},
        )
        next(stream)
        streams.append(stream)
    for stream in streams:
        chunks = list(stream)
        told.append((chunks[0].id, "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)))
    assert told[0] == told[1]
    assert len(server.bodies("chat")) == 1
