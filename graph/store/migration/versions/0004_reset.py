"""Adds the table of resets, with the last one of each session; what the context was before it isn't known any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_KNOWN = """
    INSERT INTO context_reset (session_id, turn, owner)
    SELECT session.session_id, max(message.turn), session.owner
    FROM session JOIN message ON message.session_id = session.session_id
        AND message.position <= session.context_from_position
    GROUP BY session.session_id, session.owner
"""


def upgrade() -> None:
    op.create_table(
        "context_reset",
        sa.Column("session_id", sa.Text, sa.ForeignKey("session.session_id", ondelete="CASCADE"), nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("begin_before", sa.Integer, nullable=True),
        sa.Column("restored_tokens", sa.Integer, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("session_id", "turn", name="context_reset_key"),
    )
    op.execute(_KNOWN)
