from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import ormsgpack
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG, JsonPlusSerializer
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool
from pydantic import SecretStr

from graph.store.postgres import pooled_saver
from graph.store.postgres.pooled_saver import Pool, PooledSaver
from graph.value.error import DatabaseBusyError, DatabaseError, NotADatabaseError
from tests.fake.counting_graph import build, build_chat, thread
from tests.fake.drawn import at_most
from tests.fake.open_chat import OpenChat
from tests.fake.postgres import PostgresServer, cut_connections

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
OpenSaver = Callable[..., PooledSaver]
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
PATIENCE_SECONDS = 30
FAILED_ATTEMPTS = 15  # some at once, with pauses that double, from one second on


@pytest.fixture
def open_saver(postgres_head_url: str) -> Iterator[OpenSaver]:
    """Opens a saver over the test's database as `graph.store.postgres` does, with what a test names."""
    with ExitStack() as opened:

        def open_saver(*, ahead_seconds: float | None = None, size: int = 8) -> PooledSaver:
            pool: Any = ConnectionPool(
                postgres_head_url,
                kwargs={"autocommit": True, "row_factory": dict_row, "prepare_threshold": None},
                min_size=1,
                max_size=size,
                timeout=PATIENCE_SECONDS,
                check=ConnectionPool.check_connection,
                open=True,
            )
            opened.callback(pool.close)
            return PooledSaver(pool) if ahead_seconds is None else AheadSaver(pool, ahead_seconds)

        yield open_saver


@pytest.fixture
def saver(open_saver: OpenSaver) -> PooledSaver:
    return open_saver()


@pytest.fixture
def rows(postgres_head_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_head_url, autocommit=True) as connection:
        yield connection


def counts(rows: psycopg.Connection[Any], thread_id: str = "s1") -> list[int]:
    found = [rows.execute(f"SELECT count(*) FROM {name} WHERE thread_id = %s", (thread_id,)) for name in TABLES]  # noqa: S608  # names of LangGraph's
    return [row[0] for cursor in found for row in cursor]


def test_one_checkpoint_is_left_behind_a_run_with_its_blobs_and_no_writes(
    saver: PooledSaver, rows: psycopg.Connection[Any]
) -> None:
    chat = build_chat(saver, "네")
    chat.invoke({"messages": [HumanMessage("다른", id="q")], "turn_count": 1}, thread("other"), durability="sync")
    other = counts(rows, "other")
    for number in range(5):
        asked = {"messages": [HumanMessage("안녕", id=f"q{number}")], "turn_count": number}
        chat.invoke(asked, thread(), durability="sync")
        saver.prune_thread("s1")
        assert counts(rows) == [1, 1, 0]
        assert len(chat.get_state(thread()).values["messages"]) == 2 * (number + 1)
    assert counts(rows, "other") == other


@settings(max_examples=at_most(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([-60, 0, 60]), st.booleans()), min_size=2, max_size=12))
def test_servers_whose_clocks_differ_lose_no_turn_of_the_state(
    open_saver: OpenSaver, turns: list[tuple[int, bool]]
) -> None:
    # Each turn runs on one of three servers; one that is killed leaves its checkpoints unpruned, and is rebuilt.
    savers = {seconds: open_saver(ahead_seconds=seconds, size=1) for seconds in (-60, 0, 60)}
    said: list[str] = []
    savers[0].delete_thread("s1")
    for number, (seconds, is_killed) in enumerate(turns):
        saver = savers[seconds]
        chat = build_chat(saver, "네")
        held = chat.get_state(thread()).values.get("messages", [])
        if [message.id for message in held] != said:
            assert turns[number - 1][1], "only what wasn't pruned may differ"
            saver.delete_thread("s1")
            chat.update_state(
                thread(), {"messages": [HumanMessage("안녕", id=name) for name in said]}, as_node="answer"
            )
        chat.invoke({"messages": [HumanMessage("안녕", id=f"q{number}")], "turn_count": number}, thread())
        said += [f"q{number}", f"a{number}"]
        if not is_killed:
            saver.prune_thread("s1")
            assert [message.id for message in chat.get_state(thread()).values["messages"]] == said


def test_what_another_server_has_deleted_takes_nothing_else_along(
    saver: PooledSaver, open_saver: OpenSaver, rows: psycopg.Connection[Any]
) -> None:
    build(saver).invoke({"count": 1}, thread())
    other, before = open_saver(), counts(rows)
    other.prune_thread("s1")  # it has written nothing yet
    assert counts(rows) == before
    other.delete_thread("s1")
    build(other).invoke({"count": 41}, thread())
    saver.prune_thread("s1")
    assert build(saver).get_state(thread()).values == {"count": 42}
    other.prune_thread("s1")
    assert counts(rows)[0] == 1


def test_without_a_free_connection_the_database_is_busy(open_saver: OpenSaver) -> None:
    saver = open_saver(size=2)
    graph = build(saver)
    graph.invoke({"count": 1}, thread())
    with saver._cursor(), ExitStack() as others:  # noqa: SLF001  # a call of another thread, held open
        assert graph.get_state(thread()).values == {"count": 2}
        others.enter_context(saver._cursor())  # noqa: SLF001  # and of a third
        saver.pool.timeout = 0.05
        with pytest.raises(DatabaseBusyError):
            graph.get_state(thread())
    saver.pool.timeout = PATIENCE_SECONDS  # the calls of one run wait for each other, and for a connection to be made
    assert graph.invoke({"count": 1}, thread()) == {"count": 2}


def test_a_database_that_comes_back_after_a_while_is_used_at_once(
    postgres_head_url: str, postgres: PostgresServer
) -> None:
    name = postgres_head_url.rpartition("/")[2]
    with closing(pooled_saver.open_saver(SecretStr(postgres_head_url), busy_timeout_seconds=PATIENCE_SECONDS)) as saver:
        graph = build(saver)
        graph.invoke({"count": 1}, thread())
        postgres.execute("ALTER DATABASE {} ALLOW_CONNECTIONS false", name)
        assert cut_connections(postgres_head_url)
        while saver.pool.get_stats().get("connections_errors", 0) < FAILED_ATTEMPTS:
            with pytest.raises(DatabaseError):
                graph.get_state(thread())
        postgres.execute("ALTER DATABASE {} ALLOW_CONNECTIONS true", name)
        assert graph.get_state(thread()).values == {"count": 2}


def test_a_checkpoint_that_cannot_be_read_is_told_apart(saver: PooledSaver, rows: psycopg.Connection[Any]) -> None:
    chat = build_chat(saver, "네")
    chat.invoke({"messages": [HumanMessage("안녕", id="q")], "turn_count": 1}, thread())
    for kind in ("msgpack", "pickle", "json"):
        rows.execute("UPDATE checkpoint_blobs SET type = %s, blob = %s", (kind, b"\xc1broken"))
        with pytest.raises(NotADatabaseError):
            chat.get_state(thread())


def test_a_forged_row_runs_no_code(saver: PooledSaver, rows: psycopg.Connection[Any], tmp_path: Path) -> None:
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


_TICKS_PER_SECOND = 10_000_000


class AheadSaver(PooledSaver):
    def __init__(self, pool: Pool, seconds: float) -> None:
        super().__init__(pool)
        self._ticks = int(seconds * _TICKS_PER_SECOND)
        self._moved: dict[str, str] = {}

    def put(self, config: RunnableConfig, checkpoint: Checkpoint, *rest: Any) -> RunnableConfig:  # noqa: ANN401  # handed on as it came
        self._moved[checkpoint["id"]] = _moved_id(checkpoint["id"], self._ticks)
        moved: Any = {**checkpoint, "id": self._moved[checkpoint["id"]]}
        return super().put(self._moved_config(config), moved, *rest)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        super().put_writes(self._moved_config(config), writes, task_id, task_path)

    def _moved_config(self, config: RunnableConfig) -> RunnableConfig:
        configurable = config["configurable"]
        known = str(configurable.get("checkpoint_id") or "")
        return {**config, "configurable": {**configurable, "checkpoint_id": self._moved.get(known, known) or None}}


def _moved_id(checkpoint_id: str, ticks: int) -> str:
    """Moves the time within an id; the field of the version stands in its midst."""
    number = UUID(checkpoint_id).int
    time = ((number >> 80) << 12 | (number >> 64) & 0xFFF) + ticks
    rest = number & ((1 << 64) - 1)
    return str(UUID(int=(time >> 12) << 80 | 0x6000 << 64 | (time & 0xFFF) << 64 | rest))


def test_a_fork_by_a_server_whose_clock_is_behind_heads_the_list(open_chat: OpenChat, postgres_head_url: str) -> None:
    chat = open_chat(clock=lambda: datetime.now(UTC) - timedelta(seconds=60), chat_database_url=postgres_head_url)
    chat.ask(1, 1)
    forked = chat.service.turns.fork(chat.session_id, after_turn=1)
    assert [item.session_id for item in chat.service.sessions.list()] == [forked, chat.session_id]
