"""Alembic's entry: runs migrations on the connection that it's given."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
