"""Adds to the records the days of their messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.add_column("record", sa.Column("days", sa.Text, nullable=False, server_default=""))
