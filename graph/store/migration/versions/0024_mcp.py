"""Adds the MCP tools that a chat uses, the calls that wait for a user's word, and results in full length."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.add_column("session", sa.Column("mcp_tools", sa.Text, nullable=False, server_default="[]"))
    op.add_column("session", sa.Column("mcp_allowed", sa.Text, nullable=False, server_default="[]"))
    op.add_column("turn", sa.Column("asked_calls", sa.Text, nullable=False, server_default="[]"))
    op.add_column("message", sa.Column("whole_text", sa.Text, nullable=False, server_default=""))
