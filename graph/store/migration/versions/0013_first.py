"""The tables of a new SQLite file; a new Postgres is made from the schema.

Lists its columns itself: a released migration never changes, while the schema does.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = None

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_sessions()
    _create_records()
    _create_calls()
    _create_programs()
    _create_owners()
    op.execute(
        "CREATE VIRTUAL TABLE message_search"
        " USING fts5(terms, content='', detail=none, columnsize=0, tokenize='porter ascii')"
    )


def _create_sessions() -> None:
    op.create_table(
        "session",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.Column("compression_rate", sa.Float, nullable=False),
        sa.Column("strategy", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("turn_count", sa.Integer, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("title_folded", sa.Text, nullable=False),
        _count("context_from_position"),
        _count("restored_tokens"),
        _text("project_root"),
        sa.Column("has_memory", sa.Boolean, nullable=False, server_default=sa.true()),
        _text("client"),
        _text("family"),
        _text("forked_from"),
        _count("forked_after"),
        sa.Column("tools_off", sa.Text, nullable=False, server_default="[]"),
        _text("title_source"),
        sa.Column("is_pinned", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("deleted_at", _TIME, nullable=True),
        sa.Index("session_by_owner", "owner", "updated_at"),
    )
    op.create_table(
        "turn",
        _session_id(),
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
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("finished_at", _TIME, nullable=True),
        sa.Column("history_tokens", sa.Integer, nullable=False),
        sa.Column("partial_text", sa.Text, nullable=False),
        _text("client"),
        sa.Column("is_imported", sa.Boolean, nullable=False, server_default=sa.false()),
        _count("rating"),
        sa.PrimaryKeyConstraint("session_id", "number", name="turn_key"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "message",
        _session_id(),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("chars", sa.Integer, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "position", name="message_key"),
        sa.UniqueConstraint("session_id", "message_id", name="message_said_once"),
    )
    op.create_table(
        "search_session",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        _session_id(),
        sa.UniqueConstraint("session_id", name="search_session_once"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "lease",
        _session_id(),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("expires_at", _TIME, nullable=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process_id", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id"),
        sqlite_with_rowid=False,
    )


def _create_records() -> None:
    op.create_table(
        "record",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False),
        _session_id(),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("from_position", sa.Integer, nullable=False),
        sa.Column("to_position", sa.Integer, nullable=False),
        sa.Column("turn_length", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=True),
        sa.Column("adopted_at", _TIME, nullable=True),
        sa.Column("superseded_by", sa.Text, nullable=True),
        sa.Column("expires_at", _TIME, nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
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
        _text("covered_until_message_id"),
        _count("covered_message_count"),
        _count("covered_token_count"),
        _count("context_messages"),
        _count("context_messages_after"),
        _count("context_tokens"),
        sa.Column("facts", sa.LargeBinary, nullable=True),
        _text("wish"),
        sa.UniqueConstraint("id", name="record_id"),
        sa.Index("record_by_source", "session_id", "source_key"),
        sa.Index("record_by_place", "session_id", "from_position"),
        sa.Index("record_by_cover", "session_id", "superseded_by", "to_position"),
    )
    op.create_table(
        "pin",
        _session_id(),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "message_id", name="pin_key"),
    )
    op.create_table(
        "context_reset",
        _session_id(),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("begin_before", sa.Integer, nullable=True),
        _count("restored_tokens"),
        sa.PrimaryKeyConstraint("session_id", "turn", name="context_reset_key"),
        sqlite_with_rowid=False,
    )


def _create_calls() -> None:
    op.create_table(
        "model_call",
        sa.Column("id", sa.Text, nullable=False),
        _session_id(),
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
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "turn", "attempt", "ordinal", "id", name="model_call_key"),
    )
    op.create_table(
        "context_block",
        _session_id(),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        _count("lost_tokens"),
        sa.PrimaryKeyConstraint("session_id", "kind", "version", name="context_block_key"),
    )
    op.create_table(
        "image",
        _session_id(),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("data_url", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "hash", name="image_key"),
    )


def _create_programs() -> None:
    op.create_table(
        "anchor",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
        _session_id(),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("first_position", sa.Integer, nullable=False),
        sa.Column("first_call", sa.Integer, nullable=False),
        sa.Column("scope", sa.LargeBinary, nullable=False),
        sa.Column("asked", sa.LargeBinary, nullable=False),
        sa.Column("idempotency", sa.LargeBinary, nullable=True),
        sa.Column("chain", sa.LargeBinary, nullable=True),
        sa.Column("answer", sa.LargeBinary, nullable=True),
        sa.Index("anchor_by_session", "session_id", "turn"),
        *(sa.Index(f"anchor_by_{name}", "scope", name) for name in ("asked", "idempotency", "chain", "answer")),
    )
    op.create_table(
        "aside_call",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("sent_tokens", sa.Integer, nullable=False),
        sa.Column("usage_input_tokens", sa.Integer, nullable=True),
        sa.Column("usage_output_tokens", sa.Integer, nullable=True),
        sa.Column("usage_cached_tokens", sa.Integer, nullable=True),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("error_code", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
    )
    op.create_table(
        "server_key",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
    )


def _create_owners() -> None:
    op.create_table(
        "withdrawn_owner",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("withdrawn_at", _TIME, nullable=False),
    )
    op.create_table(
        "api_token",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("has_all_tools", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("tools", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("last_used_on", _TIME, nullable=True),
        sa.Column("withdrawn_at", _TIME, nullable=True),
        sa.Index("api_token_by_digest", "digest", unique=True),
        sa.Index("api_token_by_name", "owner", "name", unique=True, sqlite_where=sa.text("withdrawn_at IS NULL")),
    )
    op.create_table(
        "owner_use",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("minute", sa.Integer, nullable=False),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("day", sa.Integer, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "rule_agreement",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("root", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("decided_at", _TIME, nullable=False),
        sa.Column("rules", sa.Text, nullable=False),
        sa.Index("rule_agreement_by_root", "owner", "root"),
    )


def _session_id() -> sa.Column[str]:
    reference = sa.ForeignKey("session.session_id", ondelete="CASCADE")
    return sa.Column("session_id", sa.Text, reference, nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default="")


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default="0")
