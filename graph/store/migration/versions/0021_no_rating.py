"""Drops the ratings of answers, which changed nothing."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.drop_column("turn", "rating")
