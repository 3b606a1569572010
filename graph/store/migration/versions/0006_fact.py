"""Adds the facts that a summary has and those that it lacks; for older records they aren't known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for name in ("kept_facts", "missing_facts"):
        op.add_column("record", sa.Column(name, sa.Text, nullable=False, server_default="[]"))
