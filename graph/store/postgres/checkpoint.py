"""LangGraph's checkpoints in Postgres, by its own saver over a pool of connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import Connection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool
from pydantic import SecretStr
from sqlalchemy import Connection as TableConnection

from graph.store.postgres.connection import errors_as_ours, with_patience

POOL_SIZE: Final = 8
_RECONNECT_SECONDS: Final = 5.0  # the pool's pauses grow up to this, and delay the return after an outage
_IDLE_SECONDS: Final = 300.0
_RECYCLE_SECONDS: Final = 1_800.0
_VERSION: Final = "SELECT coalesce(max(v), -1) FROM checkpoint_migrations"
_SET_VERSION: Final = "INSERT INTO checkpoint_migrations (v) VALUES (%s)"
# A turn leaves about ten dead rows in each table, whatever its size.
_VACUUM: Final = "ALTER TABLE {} SET (autovacuum_vacuum_scale_factor = 0.02)"
_TABLES: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class PostgresCheckpoints:
    """The checkpoints in a database with existing tables; connects on first use.

    Works through PgBouncer in transaction mode: no statement is prepared under a name.
    """

    def __init__(self, url: SecretStr, *, busy_timeout_seconds: float) -> None:
        arguments: dict[str, Any] = {"autocommit": True, "row_factory": dict_row, "prepare_threshold": None}
        self.pool: ConnectionPool[Connection[DictRow]] = ConnectionPool(
            with_patience(url.get_secret_value()),
            kwargs=arguments,
            min_size=1,
            max_size=POOL_SIZE,
            timeout=busy_timeout_seconds,
            reconnect_timeout=_RECONNECT_SECONDS,
            max_idle=_IDLE_SECONDS,
            max_lifetime=_RECYCLE_SECONDS,
            check=ConnectionPool.check_connection,  # servers and proxies end connections that are idle
            name="checkpoints",
            open=False,
        )
        self.pool.open()

    @contextmanager
    def saver(self) -> Iterator[PostgresSaver]:
        """Yields a saver of its own for each turn, as a saver lets one call at a time use the pool.

        Its driver's errors become ours.
        """
        with errors_as_ours():
            # None allows only types known to be harmless; the default calls whatever constructor a forged row names.
            yield PostgresSaver(self.pool, serde=JsonPlusSerializer(allowed_msgpack_modules=None))

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


def set_up(connection: TableConnection) -> None:
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
