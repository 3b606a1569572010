"""Adds what tells of a program's request whether it has all turns of its chat, and under which instructions it came."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.add_column("anchor", sa.Column("whole", sa.LargeBinary, nullable=True))
    op.add_column("anchor", sa.Column("frame", sa.LargeBinary, nullable=True))
