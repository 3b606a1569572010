"""Adds to the API tokens made on the page whether one person uses them, which is so of those made before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.add_column("api_token", sa.Column("is_personal", sa.Boolean, nullable=False, server_default=sa.true()))
