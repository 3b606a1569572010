"""Makes the full-text index anew, without places and lengths, and fills it with every archived message."""

from __future__ import annotations

from alembic import op

from graph.store.search import index_anew

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    index_anew(op.get_bind())
