"""How connections to Postgres are asked for, and its errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import PoolTimeout
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as QueueTimeout

from graph.value.error import DatabaseBusyError, DatabaseError, DatabaseUnreachableError, DiskFullError

# Without these a server whose database lost its power waits for a quarter of an hour, and longer than any lease lasts.
# They are the client's own: PgBouncer is told of none of them.
_PATIENCE: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}


def with_patience(url: str) -> str:
    """Returns what libpq connects by: the URL, and how long to wait for a silent server where it doesn't say so.

    Raises:
        psycopg.ProgrammingError: The URL can't be understood.
    """
    said = conninfo_to_dict(url)
    return make_conninfo(url, **{name: value for name, value in _PATIENCE.items() if name not in said})


_NO_CONNECTION: Final = "no connection is free"
_DISK_FULL: Final = "53100"
# Too many connections, a lock, a statement or a pause in a transaction that took too long, a deadlock, a snapshot that
# others have overtaken.
_BUSY: Final = {"53300", "55P03", "57014", "25P03", "40P01", "40001"}
# Connection failures, and a server that ends, has crashed, or isn't up yet.
_UNREACHABLE: Final = ("08", "57P")


@contextmanager
def errors_as_ours() -> Iterator[None]:
    """Raises the errors of the driver, and of both pools, as ours, and without theirs: they quote rows."""
    try:
        yield
    except DBAPIError as error:
        raise _to_database_error(error.orig) from None
    except psycopg.Error as error:
        raise _to_database_error(error) from None
    except QueueTimeout:
        raise DatabaseBusyError(_NO_CONNECTION) from None


def _to_database_error(error: BaseException | None) -> DatabaseError:
    """Maps an error of the driver to ours; keeps only its kind, as its message may quote values and the URL."""
    if isinstance(error, PoolTimeout):
        return DatabaseBusyError(_NO_CONNECTION)
    code, name = getattr(error, "sqlstate", None), type(error).__name__
    if code is None:
        return DatabaseUnreachableError(name) if isinstance(error, psycopg.OperationalError) else DatabaseError(name)
    if code in _BUSY:
        return DatabaseBusyError(name)
    if code == _DISK_FULL:
        return DiskFullError(name)
    return DatabaseUnreachableError(name) if code.startswith(_UNREACHABLE) else DatabaseError(name)
