"""Parameters of connections to Postgres, and mapping of the driver's errors."""

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

# Without these, a server waits a quarter of an hour for a database that lost power, longer than any lease lasts. They
# are client-side only: PgBouncer rejects unknown server parameters.
_PATIENCE: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}


def with_patience(url: str) -> str:
    """Returns libpq's connection string for the URL, with timeouts for a silent server where the URL sets none.

    Raises `psycopg.ProgrammingError` for a URL that can't be parsed.
    """
    given = conninfo_to_dict(url)
    return make_conninfo(url, **{name: value for name, value in _PATIENCE.items() if name not in given})


_NO_CONNECTION: Final = "no connection is free"
_DISK_FULL: Final = "53100"
# Too many connections; timeouts of a lock, a statement or an idle transaction; deadlock; serialisation failure.
_BUSY: Final = {"53300", "55P03", "57014", "25P03", "40P01", "40001"}
# Connection failures, and a server that shuts down, has crashed, or is starting.
_UNREACHABLE: Final = ("08", "57P")


@contextmanager
def errors_as_ours() -> Iterator[None]:
    """Maps errors of the driver and of both pools to ours, without chaining: their messages quote rows."""
    try:
        yield
    except DBAPIError as error:
        raise _to_database_error(error.orig) from None
    except psycopg.Error as error:
        raise _to_database_error(error) from None
    except QueueTimeout:
        raise DatabaseBusyError(_NO_CONNECTION) from None


def _to_database_error(error: BaseException | None) -> DatabaseError:
    """Maps an error of the driver by kind; its message isn't used, as it may quote values and the URL."""
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
