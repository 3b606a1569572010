"""Adds the users' own instructions, for all chats and for one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_table(
        "own_instruction",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.add_column("session", sa.Column("instructions", sa.Text, nullable=False, server_default=""))
