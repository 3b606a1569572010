"""Adds the attempts of turns that don't count, those made before included, and an index of branches by their origin."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

# Of an earlier attempt only messages and calls were kept. A whole answer has no mark of a turn that was closed.
_EARLIER = """
    INSERT INTO attempt (session_id, turn, attempt, owner, status, model, client, error_code, error_detail,
        started_at, finished_at)
    SELECT message.session_id, message.turn, message.attempt, turn.owner, 'finished',
        COALESCE((SELECT MAX(model_call.model) FROM model_call WHERE model_call.session_id = message.session_id
            AND model_call.turn = message.turn AND model_call.attempt = message.attempt), turn.model),
        turn.client, '', '', MIN(message.created_at), MAX(message.created_at)
    FROM turn JOIN message ON message.session_id = turn.session_id AND message.turn = turn.number
    WHERE turn.attempt > 1 AND message.attempt < turn.attempt AND message.role = 'ai'
    GROUP BY message.session_id, message.turn, message.attempt, turn.owner, turn.client, turn.model
    HAVING MAX(CASE WHEN message.content LIKE '%"turnfold":{"closed"%' THEN 1 ELSE 0 END) = 0
"""


def upgrade() -> None:
    time = sa.DateTime(timezone=True)
    op.create_table(
        "attempt",
        sa.Column("session_id", sa.Text, sa.ForeignKey("session.session_id", ondelete="CASCADE"), nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("error_code", sa.Text, nullable=False),
        sa.Column("error_detail", sa.Text, nullable=False),
        sa.Column("started_at", time, nullable=False),
        sa.Column("finished_at", time, nullable=True),
        sa.Column("thought_seconds", sa.Float, nullable=False, server_default="0"),
        sa.Column("partial_text", sa.Text, nullable=False, server_default=""),
        sa.Column("thoughts", sa.Text, nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("session_id", "turn", "attempt", name="attempt_key"),
        sqlite_with_rowid=False,
    )
    op.execute(_EARLIER)
    op.create_index("session_by_origin", "session", ["forked_from"])
