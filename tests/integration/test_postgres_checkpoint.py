from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ormsgpack
import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG, JsonPlusSerializer
from pydantic import SecretStr

from graph.store.postgres.checkpoint import POOL_SIZE, PostgresCheckpoints
from graph.value.error import DatabaseBusyError, DatabaseError
from tests.fake.counting_graph import build, build_chat, thread
from tests.fake.open_chat import OpenChat
from tests.fake.postgres import PostgresServer, cut_connections

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
PATIENCE_SECONDS = 30
FAILED_ATTEMPTS = 15  # some at once, with pauses that double, from one second on


@pytest.fixture
def checkpoints(postgres_head_url: str) -> Iterator[PostgresCheckpoints]:
    with closing(PostgresCheckpoints(SecretStr(postgres_head_url), busy_timeout_seconds=PATIENCE_SECONDS)) as opened:
        yield opened


@pytest.fixture
def saver(checkpoints: PostgresCheckpoints) -> Iterator[PostgresSaver]:
    with checkpoints.saver() as saver:
        yield saver


@pytest.fixture
def rows(postgres_head_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_head_url, autocommit=True) as connection:
        yield connection


def test_turns_wait_for_no_other_but_for_a_free_connection(checkpoints: PostgresCheckpoints) -> None:
    with ExitStack() as others:
        for _ in range(POOL_SIZE - 1):
            others.enter_context(others.enter_context(checkpoints.saver())._cursor())  # noqa: SLF001  # a call of another turn, held open
        with checkpoints.saver() as saver:
            assert build(saver).invoke({"count": 1}, thread(), durability="exit") == {"count": 2}
        others.enter_context(checkpoints.pool.connection())
        checkpoints.pool.timeout = 0.05
        with pytest.raises(DatabaseBusyError), checkpoints.saver() as saver:
            build(saver).get_state(thread())


def test_a_database_that_comes_back_after_a_while_is_used_at_once(
    checkpoints: PostgresCheckpoints, postgres_head_url: str, postgres: PostgresServer
) -> None:
    name = postgres_head_url.rpartition("/")[2]

    def count() -> object:
        with checkpoints.saver() as saver:
            return build(saver).get_state(thread()).values

    with checkpoints.saver() as saver:
        build(saver).invoke({"count": 1}, thread())
    postgres.execute("ALTER DATABASE {} ALLOW_CONNECTIONS false", name)
    assert cut_connections(postgres_head_url)
    while checkpoints.pool.get_stats().get("connections_errors", 0) < FAILED_ATTEMPTS:
        with pytest.raises(DatabaseError):
            count()
    postgres.execute("ALTER DATABASE {} ALLOW_CONNECTIONS true", name)
    assert count() == {"count": 2}


def test_a_forged_row_runs_no_code(saver: PostgresSaver, rows: psycopg.Connection[Any], tmp_path: Path) -> None:
    chat = build_chat(saver, "네")
    chat.invoke({"messages": [HumanMessage("안녕", id="q")], "turn_count": 1}, thread())

    def forged(folder: Path) -> bytes:
        return ormsgpack.packb(ormsgpack.Ext(EXT_CONSTRUCTOR_SINGLE_ARG, ormsgpack.packb(("os", "mkdir", str(folder)))))

    JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(("msgpack", forged(tmp_path / "default")))
    rows.execute("UPDATE checkpoint_blobs SET blob = %s", (forged(tmp_path / "ours"),))
    chat.get_state(thread())
    assert (tmp_path / "default").exists()
    assert not (tmp_path / "ours").exists()


def test_dead_rows_are_vacuumed_by_their_number_in_small_and_in_large_tables(rows: psycopg.Connection[Any]) -> None:
    query = "SELECT relname FROM pg_class WHERE 'autovacuum_vacuum_scale_factor=0.02' = ANY(reloptions)"
    assert {name for (name,) in rows.execute(query)} == set(TABLES)


def test_a_fork_by_a_server_whose_clock_is_behind_heads_the_list(open_chat: OpenChat, postgres_head_url: str) -> None:
    chat = open_chat(clock=lambda: datetime.now(UTC) - timedelta(seconds=60), chat_database_url=postgres_head_url)
    chat.ask(1, 1)
    forked = chat.service.turns.fork(chat.session_id, after_turn=1)
    assert [item.session_id for item in chat.service.sessions.list()] == [forked, chat.session_id]
