"""Adds what programs need: whose a session and a turn are, forks, anchors, images, asides and the server's keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    for name in ("client", "family", "forked_from"):
        op.add_column("session", sa.Column(name, sa.Text, nullable=False, server_default=""))
    op.add_column("session", sa.Column("forked_after", sa.Integer, nullable=False, server_default="0"))
    op.add_column("session", sa.Column("tools_off", sa.Text, nullable=False, server_default="[]"))
    op.add_column("turn", sa.Column("client", sa.Text, nullable=False, server_default=""))
    op.add_column("turn", sa.Column("is_imported", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("context_block", sa.Column("lost_tokens", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "anchor",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
        _session_id(),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("first_position", "first_call")),
        sa.Column("scope", sa.LargeBinary, nullable=False),
        sa.Column("asked", sa.LargeBinary, nullable=False),
        *(sa.Column(name, sa.LargeBinary, nullable=True) for name in ("idempotency", "chain", "answer")),
        sa.Index("anchor_by_session", "session_id", "turn"),
        *(sa.Index(f"anchor_by_{name}", "scope", name) for name in ("asked", "idempotency", "chain", "answer")),
    )
    op.create_table(
        "image",
        _session_id(),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("data_url", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "hash", name="image_key"),
    )
    op.create_table(
        "aside_call",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("owner", "client", "model")),
        sa.Column("sent_tokens", sa.Integer, nullable=False),
        sa.Column("usage_input_tokens", sa.Integer, nullable=True),
        sa.Column("usage_output_tokens", sa.Integer, nullable=True),
        sa.Column("usage_cached_tokens", sa.Integer, nullable=True),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("error_code", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "server_key",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
    )


def _session_id() -> sa.Column[str]:
    reference = sa.ForeignKey("session.session_id", ondelete="CASCADE")
    return sa.Column("session_id", sa.Text, reference, nullable=False)
