"""Adds to the sessions when their due blocks are folded; "" is the server's default."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.add_column("session", sa.Column("fold_when", sa.Text, nullable=False, server_default=""))
