"""LangGraph's checkpoints in Postgres: a cache, rebuilt from the tables if it differs from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import Connection as PsycopgConnection
from psycopg import Cursor
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool
from pydantic import SecretStr
from sqlalchemy import Connection

from graph.store.postgres.connection import errors_as_ours, with_patience
from graph.value.error import NotADatabaseError

Pool = ConnectionPool[PsycopgConnection[DictRow]]

_POOL_SIZE: Final = 8
_RECONNECT_SECONDS: Final = 5.0  # the pool's pauses grow up to this, and delay the return after an outage
_IDLE_SECONDS: Final = 300.0
_RECYCLE_SECONDS: Final = 1_800.0
_VERSION: Final = "SELECT coalesce(max(v), -1) FROM checkpoint_migrations"
_SET_VERSION: Final = "INSERT INTO checkpoint_migrations (v) VALUES (%s)"
# A turn leaves about ten dead rows in each table, whatever its size.
_VACUUM: Final = "ALTER TABLE {} SET (autovacuum_vacuum_scale_factor = 0.02)"
_TABLES: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
# One statement, so one snapshot; deletes nothing if another server has deleted the checkpoint to keep.
_PRUNE: Final = """
    WITH kept AS (
        SELECT checkpoint -> 'channel_versions' AS versions FROM checkpoints
        WHERE thread_id = %(thread_id)s AND checkpoint_ns = '' AND checkpoint_id = %(kept_id)s
    ), old_checkpoints AS (
        DELETE FROM checkpoints
        WHERE thread_id = %(thread_id)s AND checkpoint_id <> %(kept_id)s AND EXISTS (SELECT FROM kept)
    ), old_writes AS (
        DELETE FROM checkpoint_writes
        WHERE thread_id = %(thread_id)s AND checkpoint_id <> %(kept_id)s AND EXISTS (SELECT FROM kept)
    )
    DELETE FROM checkpoint_blobs AS blob USING kept
    WHERE blob.thread_id = %(thread_id)s AND NOT EXISTS (
        SELECT FROM jsonb_each_text(kept.versions) AS used WHERE used.key = blob.channel AND used.value = blob.version
    )
"""


class PooledSaver(PostgresSaver):
    """LangGraph's Postgres saver for concurrent callers; never runs code named by a forged row, and can be pruned.

    Checkpoint ids contain the writing server's time, so the newest id may be an older state: pruning keeps the
    checkpoint this saver wrote last, and callers compare a loaded one with the tables. `pool` is in autocommit mode,
    without named prepared statements.
    """

    def __init__(self, pool: Pool) -> None:
        # None allows only types known to be harmless; the default calls whatever constructor a forged row names.
        super().__init__(pool, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        self.lock = nullcontext()  # type: ignore[assignment]  # each call has a connection of its own
        self.pool = pool
        self._written: dict[str, str] = {}

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        stored = super().put(config, checkpoint, metadata, new_versions)
        configurable = stored["configurable"]
        self._written[str(configurable["thread_id"])] = str(configurable["checkpoint_id"])
        return stored

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint named by `config`, or the newest by id; raises `NotADatabaseError` if undecodable."""
        try:
            return super().get_tuple(config)
        except (ValueError, TypeError, LookupError, AttributeError, NotImplementedError) as error:
            raise NotADatabaseError("checkpoints") from error

    def prune_thread(self, thread_id: str) -> None:
        """Deletes all checkpoints of a session, newer ids too, except the last one written by this server, if any."""
        kept_id = self._written.pop(thread_id, None)
        if kept_id is not None:
            with self._cursor() as cursor:
                cursor.execute(_PRUNE, {"thread_id": thread_id, "kept_id": kept_id})

    def delete_thread(self, thread_id: str) -> None:
        self._written.pop(thread_id, None)
        super().delete_thread(thread_id)

    def connections(self) -> Mapping[str, Callable[[], float]]:
        """Returns functions that count the pool's connections, by state."""
        return {
            "in_use": lambda: self._count("pool_size") - self._count("pool_available"),
            "idle": lambda: self._count("pool_available"),
        }

    def close(self) -> None:
        self.pool.close()

    def _count(self, name: str) -> float:
        return self.pool.get_stats()[name]

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        with errors_as_ours(), super()._cursor(pipeline=pipeline) as cursor:
            yield cursor


def open_saver(url: SecretStr, *, busy_timeout_seconds: float) -> PooledSaver:
    """Opens the checkpoints of a database with existing tables; connects on first use.

    Works through PgBouncer in transaction mode: no statement is prepared under a name.
    """
    arguments: dict[str, Any] = {"autocommit": True, "row_factory": dict_row, "prepare_threshold": None}
    pool: Pool = ConnectionPool(
        with_patience(url.get_secret_value()),
        kwargs=arguments,
        min_size=1,
        max_size=_POOL_SIZE,
        timeout=busy_timeout_seconds,
        reconnect_timeout=_RECONNECT_SECONDS,
        max_idle=_IDLE_SECONDS,
        max_lifetime=_RECYCLE_SECONDS,
        check=ConnectionPool.check_connection,  # servers and proxies end connections that are idle
        name="checkpoints",
        open=False,
    )
    pool.open()
    return PooledSaver(pool)


def set_up(connection: Connection) -> None:
    """Creates or migrates the saver's tables, in the caller's transaction.

    `PostgresSaver.setup` fails when several servers start at once: it creates indexes concurrently, outside of any
    transaction.
    """
    first, *_ = PostgresSaver.MIGRATIONS
    connection.exec_driver_sql(first)
    done = connection.exec_driver_sql(_VERSION).scalar_one()
    if done == len(PostgresSaver.MIGRATIONS) - 1:
        return
    for version, statement in enumerate(PostgresSaver.MIGRATIONS):
        if version > done:
            connection.exec_driver_sql(statement.replace("CONCURRENTLY", ""))
            connection.exec_driver_sql(_SET_VERSION, (version,))
    for name in _TABLES:
        connection.exec_driver_sql(_VACUUM.format(name))
