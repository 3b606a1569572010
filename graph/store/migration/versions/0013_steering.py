"""Adds what users steer by: pinned messages, wishes for summaries, ratings, and what the list of sessions keeps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "pin",
        sa.Column("session_id", sa.Text, sa.ForeignKey("session.session_id", ondelete="CASCADE"), nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("message_id", "owner")),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "message_id", name="pin_key"),
    )
    op.add_column("record", sa.Column("wish", sa.Text, nullable=False, server_default=""))
    op.add_column("turn", sa.Column("rating", sa.Integer, nullable=False, server_default="0"))
    op.add_column("session", sa.Column("title_source", sa.Text, nullable=False, server_default=""))
    op.add_column("session", sa.Column("is_pinned", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("session", sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True))
