"""Rebuilds the full-text index of every archived message: words are stemmed by Porter's second edition."""

from __future__ import annotations

from alembic import op

from graph.store.search import rebuild_index

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    rebuild_index(op.get_bind(), has_whole_texts=False)
