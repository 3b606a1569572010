"""Adds a session's project, the context blocks that were sent, and the rules that owners agreed to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("session", sa.Column("project_root", sa.Text, nullable=False, server_default=""))
    op.add_column("session", sa.Column("has_memory", sa.Boolean, nullable=False, server_default=sa.true()))
    op.create_table(
        "context_block",
        sa.Column("session_id", sa.Text, sa.ForeignKey("session.session_id", ondelete="CASCADE"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "kind", "version", name="context_block_key"),
    )
    op.create_table(
        "rule_agreement",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("root", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("rules", sa.Text, nullable=False),
        sa.Index("rule_agreement_by_root", "owner", "root"),
    )
