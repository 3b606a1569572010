"""Adds to the turns what a model thought before its answer, and to the sessions how much it is to think."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("turn", sa.Column("thought_seconds", sa.Float, nullable=False, server_default="0"))
    op.add_column("turn", sa.Column("thoughts", sa.Text, nullable=False, server_default=""))
    op.add_column("session", sa.Column("thinking", sa.Text, nullable=False, server_default=""))
