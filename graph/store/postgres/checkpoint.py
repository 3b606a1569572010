"""LangGraph's checkpoints in Postgres."""

from __future__ import annotations

from typing import Final

from langgraph.checkpoint.postgres.base import BasePostgresSaver
from sqlalchemy import Connection

_VERSION: Final = "SELECT coalesce(max(v), -1) FROM checkpoint_migrations"
_SET_VERSION: Final = "INSERT INTO checkpoint_migrations (v) VALUES (%s)"


def set_up(connection: Connection) -> None:
    """Makes the saver's tables, or brings them up to date, in the caller's transaction.

    Its own `setup` fails when several servers start at once: it makes indexes without a lock of the tables, outside of
    any transaction.
    """
    first, *_ = BasePostgresSaver.MIGRATIONS
    connection.exec_driver_sql(first)
    done = connection.exec_driver_sql(_VERSION).scalar_one()
    for version, statement in enumerate(BasePostgresSaver.MIGRATIONS):
        if version > done:
            connection.exec_driver_sql(statement.replace("CONCURRENTLY", ""))
            connection.exec_driver_sql(_SET_VERSION, (version,))
