"""Adds the full-text index; a later migration fills it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from graph.store.sqlite.search_index import create_index

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "search_session",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("session_id", sa.Text, sa.ForeignKey("session.session_id", ondelete="CASCADE"), nullable=False),
        sa.UniqueConstraint("session_id", name="search_session_once"),
        sqlite_autoincrement=True,
    )
    create_index(op.get_bind())
