"""Adds what a record covers, the sizes around a compaction, and where a session's context starts after a reset."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("session", _count("context_from_position"))
    op.add_column("record", sa.Column("covered_until_message_id", sa.Text, nullable=False, server_default=""))
    for name in (
        "covered_message_count",
        "covered_token_count",
        "context_messages",
        "context_messages_after",
        "context_tokens",
    ):
        op.add_column("record", _count(name))


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default="0")
