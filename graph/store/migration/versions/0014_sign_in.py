"""Adds the table of sign-ins, by which a sign-out is known to every server."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "sign_in",
        *(sa.Column(name, sa.Text, nullable=False) for name in ("owner", "id")),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("owner", "id"),
        sa.Index("sign_in_by_time", "seen_at"),
    )
