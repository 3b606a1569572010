"""Adds the size of the context when a compaction was undone, so that it isn't repeated at once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("session", sa.Column("restored_tokens", sa.Integer, nullable=False, server_default="0"))
