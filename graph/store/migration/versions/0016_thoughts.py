"""Adds what a model thought before its answer to the turns, which nothing but the page and an export reads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("turn", sa.Column("thought_seconds", sa.Float, nullable=False, server_default="0"))
    op.add_column("turn", sa.Column("thoughts", sa.Text, nullable=False, server_default=""))
