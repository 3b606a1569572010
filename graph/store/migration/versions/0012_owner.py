"""Adds the tables of owners: who is withdrawn, the tokens of their programs, and what they used lately."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "withdrawn_owner",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "api_token",
        sa.Column("id", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("owner", "name")),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("has_all_tools", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("tools", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        *(sa.Column(name, sa.DateTime(timezone=True), nullable=True) for name in ("last_used_on", "withdrawn_at")),
        sa.Index("api_token_by_digest", "digest", unique=True),
        sa.Index(
            "api_token_by_name",
            "owner",
            "name",
            unique=True,
            sqlite_where=sa.text("withdrawn_at IS NULL"),
            postgresql_where=sa.text("withdrawn_at IS NULL"),
        ),
    )
    op.create_table(
        "owner_use",
        sa.Column("owner", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("minute", "turns", "day")),
        sa.Column("tokens", sa.BigInteger, nullable=False),
    )
