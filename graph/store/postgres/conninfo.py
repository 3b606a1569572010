"""How connections to Postgres are asked for, so that a machine or a network that falls silent is noticed."""

from __future__ import annotations

from typing import Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

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
