"""Rebuilds the full-text index and the titles to search in: full width and other compatibility forms are ordinary."""

from __future__ import annotations

from alembic import op
from sqlalchemy import select, update

from graph.store.schema import session_table
from graph.store.search import rebuild_index
from graph.store.session import title_values

revision = "0032"
down_revision = "0031"

_session = session_table.c


def upgrade() -> None:
    connection = op.get_bind()
    for session_id, title in connection.execute(select(_session.session_id, _session.title)).all():
        folded = title_values(title)
        connection.execute(update(session_table).where(_session.session_id == session_id).values(folded))
    rebuild_index(connection)
