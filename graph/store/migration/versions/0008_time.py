"""Stores times as microseconds since 1970; the columns' type takes numbers as it is."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"

_TIMES = {
    "session": ("created_at", "updated_at"),
    "turn": ("started_at", "finished_at"),
    "message": ("created_at",),
    "record": ("adopted_at", "expires_at", "created_at"),
    "model_call": ("created_at",),
    "lease": ("expires_at",),
}


def upgrade() -> None:
    for table, columns in _TIMES.items():
        for column in columns:
            op.execute(
                f"UPDATE {table} SET {column} = CAST(strftime('%s', {column}) AS INTEGER) * 1000000"  # noqa: S608  # names of our own
                f" + CAST(substr({column} || '.000000', 21, 6) AS INTEGER) WHERE typeof({column}) = 'text'"
            )
