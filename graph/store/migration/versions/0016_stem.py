"""Rebuilds the full-text index of every archived message: words are stemmed by Porter's second edition."""

from __future__ import annotations

from alembic import op

from graph.store.search import rebuild_index

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    rebuild_index(op.get_bind())
