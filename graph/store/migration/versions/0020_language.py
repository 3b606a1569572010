"""Adds to the sessions the language of their program's system message."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("session", sa.Column("language", sa.Text, nullable=False, server_default=""))
