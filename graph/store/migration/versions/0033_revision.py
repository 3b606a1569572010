"""Adds the revisions of a session, which every change of it raises."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    for name in ("revision", "context_revision"):
        op.add_column("lease", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
