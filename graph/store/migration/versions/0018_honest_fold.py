"""Adds to the records the rate that a dense block needed, and the facts of a summary that its source lacks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("record", sa.Column("needed_rate", sa.Float, nullable=False, server_default="0"))
    op.add_column("record", sa.Column("invented_facts", sa.Text, nullable=False, server_default="[]"))
