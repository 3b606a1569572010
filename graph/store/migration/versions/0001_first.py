"""The first tables. Lists its columns itself: a released migration never changes, while the schema does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "session",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("compression_rate", sa.Float, nullable=False),
        sa.Column("strategy", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("turn_count", sa.Integer, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("title_folded", sa.Text, nullable=False),
    )
    op.create_index("session_by_owner", "session", ["owner", "updated_at"])
    op.create_table(
        "turn",
        sa.Column("session_id", sa.Text, _session(), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("user_message_id", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("is_casual", sa.Boolean, nullable=False),
        sa.Column("stop_requested", sa.Boolean, nullable=False),
        sa.Column("error_code", sa.Text, nullable=False),
        sa.Column("error_detail", sa.Text, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("history_tokens", sa.Integer, nullable=False),
        sa.Column("partial_text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "number", name="turn_key"),
    )

    op.create_table(
        "message",
        sa.Column("session_id", sa.Text, _session(), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("chars", sa.Integer, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "position", name="message_key"),
        sa.UniqueConstraint("session_id", "message_id", name="message_said_once"),
    )
    op.create_index("message_by_turn", "message", ["session_id", "turn", "position"])
    op.create_table(
        "record",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, _session(), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("from_position", sa.Integer, nullable=False),
        sa.Column("to_position", sa.Integer, nullable=False),
        sa.Column("turn_length", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=True),
        sa.Column("adopted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("superseded_by", sa.Text, nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("compression_rate", sa.Float, nullable=False),
        sa.Column("original_chars", sa.Integer, nullable=False),
        sa.Column("summary_chars", sa.Integer, nullable=False),
        sa.Column("target_chars", sa.Integer, nullable=False),
        sa.Column("source_key", sa.Text, nullable=False),
        sa.Column("source_tokens", sa.Integer, nullable=False),
        sa.Column("summary_tokens", sa.Integer, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("is_usage", sa.Boolean, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("replaces", sa.Text, nullable=True),
        sa.Column("edited", sa.Boolean, nullable=False),
        sa.Column("error_code", sa.Text, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("turns", sa.Text, nullable=False),
        sa.Column("sources", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.UniqueConstraint("id", name="record_id"),
    )
    op.create_index("record_by_source", "record", ["session_id", "source_key"])
    op.create_index("record_by_place", "record", ["session_id", "from_position"])
    op.create_index("record_by_cover", "record", ["session_id", "superseded_by", "to_position"])
    op.create_table(
        "model_call",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("session_id", sa.Text, _session(), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("input_hash", sa.Text, nullable=False),
        sa.Column("sent_tokens", sa.Integer, nullable=False),
        sa.Column("full_tokens", sa.Integer, nullable=False),
        sa.Column("usage_input_tokens", sa.Integer, nullable=True),
        sa.Column("usage_output_tokens", sa.Integer, nullable=True),
        sa.Column("usage_cached_tokens", sa.Integer, nullable=True),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("error_code", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("manifest", sa.Text, nullable=False),
    )
    op.create_index("model_call_by_turn", "model_call", ["session_id", "turn", "attempt", "ordinal"])
    op.create_table(
        "lease",
        sa.Column("session_id", sa.Text, _session(), primary_key=True, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process_id", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Text, nullable=False),
    )


def _session() -> sa.ForeignKey:
    return sa.ForeignKey("session.session_id", ondelete="CASCADE")
