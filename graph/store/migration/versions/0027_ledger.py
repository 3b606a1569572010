"""Adds the lines of the user's word that records keep, and those that the user struck out or restored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.add_column("record", sa.Column("ledger", sa.Text, nullable=False, server_default="[]"))
    op.add_column("session", sa.Column("struck", sa.Text, nullable=False, server_default="[]"))
