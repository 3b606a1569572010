"""Adds the revision of a session, which every change of it raises."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.add_column("lease", sa.Column("revision", sa.BigInteger, nullable=False, server_default="0"))
