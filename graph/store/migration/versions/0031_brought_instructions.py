"""Adds the instructions that a chat's file brought, which aren't sent until the user agrees."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.add_column("session", sa.Column("brought_instructions", sa.Text, nullable=False, server_default=""))
