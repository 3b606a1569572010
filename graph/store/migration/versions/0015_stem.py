"""Rebuilds the full-text index of every archived message: its terms are stems now, the same ones in every database."""

from __future__ import annotations

from alembic import op

from graph.store.search import rebuild_index

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    rebuild_index(op.get_bind(), has_whole_texts=False)
