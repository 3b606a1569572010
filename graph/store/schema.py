"""The tables of owners and of sessions."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
    true,
)

from graph.store.column import JsonTuple, PlainText, UtcTime

METADATA = MetaData()

# Owners without access, even with a valid sign-in or token.
withdrawn_owner_table = Table(
    "withdrawn_owner",
    METADATA,
    Column("owner", PlainText, primary_key=True),
    Column("withdrawn_at", UtcTime, nullable=False),
)

# Known sign-ins, and the time each ended. The row with an empty id stands for all sign-ins of an owner.
sign_in_table = Table(
    "sign_in",
    METADATA,
    Column("owner", PlainText, primary_key=True),
    Column("id", PlainText, primary_key=True),
    Column("seen_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime, nullable=True),
    Index("sign_in_by_time", "seen_at"),
)

# Only the SHA-256 hash of a token is stored.
api_token_table = Table(
    "api_token",
    METADATA,
    Column("id", PlainText, primary_key=True),
    Column("owner", PlainText, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("has_all_tools", Boolean, nullable=False, server_default=true()),
    Column("tools", JsonTuple, nullable=False),
    Column("is_personal", Boolean, nullable=False, server_default=true()),
    Column("created_at", UtcTime, nullable=False),
    Column("last_used_on", UtcTime, nullable=True),  # the day alone
    Column("withdrawn_at", UtcTime, nullable=True),
    Index("api_token_by_digest", "digest", unique=True),
    # A name is free again once its token is withdrawn.
    Index(
        "api_token_by_name",
        "owner",
        "name",
        unique=True,
        sqlite_where=text("withdrawn_at IS NULL"),
        postgresql_where=text("withdrawn_at IS NULL"),
    ),
)

# One row per owner: turns of one minute, tokens of one day, both numbered from 1970 in UTC.
owner_use_table = Table(
    "owner_use",
    METADATA,
    Column("owner", PlainText, primary_key=True),
    Column("minute", Integer, nullable=False),
    Column("turns", Integer, nullable=False),
    Column("day", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)

# An owner's instructions for all chats.
own_instruction_table = Table(
    "own_instruction",
    METADATA,
    Column("owner", PlainText, primary_key=True),
    Column("text", PlainText, nullable=False),
)

# Instructions that an owner keeps by a name, to be chosen for a chat.
preset_table = Table(
    "preset",
    METADATA,
    Column("owner", PlainText, primary_key=True),
    Column("name", PlainText, primary_key=True),
    Column("text", PlainText, nullable=False),
)

# Per owner and folder of this machine, independent of sessions.
rule_agreement_table = Table(
    "rule_agreement",
    METADATA,
    # Orders the rows by insertion.
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("owner", PlainText, nullable=False),
    Column("root", PlainText, nullable=False),
    Column("digest", PlainText, nullable=False),
    Column("decided_at", UtcTime, nullable=False),
    Column("rules", PlainText, nullable=False),
    Index("rule_agreement_by_root", "owner", "root"),
)

# Cost of requests without a session: titles, tags.
aside_table = Table(
    "aside_call",
    METADATA,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("owner", PlainText, nullable=False),
    Column("client", PlainText, nullable=False),
    Column("model", PlainText, nullable=False),
    Column("sent_tokens", Integer, nullable=False),
    Column("usage_input_tokens", Integer, nullable=True),
    Column("usage_output_tokens", Integer, nullable=True),
    Column("usage_cached_tokens", Integer, nullable=True),
    Column("seconds", Float, nullable=False),
    Column("error_code", PlainText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)


def _session_id(*, is_key: bool = False) -> Column[str]:
    reference = ForeignKey("session.session_id", ondelete="CASCADE")
    return Column("session_id", PlainText, reference, primary_key=is_key, nullable=False)


def _sequence() -> Column[int]:
    # Orders the rows by insertion: "newest" must not depend on a server's clock, which may be set back.
    return Column("sequence", BigInteger().with_variant(Integer, "sqlite"), nullable=False)


# Wide columns come last in each table: SQLite reads a row only up to the last column that a query selects.
# Tables of short rows are clustered by key, without a second tree (`sqlite_with_rowid`); long rows would fill whole
# pages there.

session_table = Table(
    "session",
    METADATA,
    Column("session_id", PlainText, primary_key=True),
    Column("owner", PlainText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("compression_rate", Float, nullable=False),
    Column("strategy", PlainText, nullable=False),
    Column("model", PlainText, nullable=False),
    Column("turn_count", Integer, nullable=False),
    Column("title", PlainText, nullable=False),
    Column("title_folded", PlainText, nullable=False),
    Column("context_from_position", Integer, nullable=False, server_default="0"),
    Column("restored_tokens", Integer, nullable=False, server_default="0"),
    Column("project_root", PlainText, nullable=False, server_default=""),
    Column("has_memory", Boolean, nullable=False, server_default=true()),
    Column("client", PlainText, nullable=False, server_default=""),
    Column("family", PlainText, nullable=False, server_default=""),
    Column("forked_from", PlainText, nullable=False, server_default=""),
    Column("forked_after", Integer, nullable=False, server_default="0"),
    Column("tools_off", JsonTuple, nullable=False, server_default="[]"),
    Column("title_source", PlainText, nullable=False, server_default=""),  # "": the first words; "model"; "user"
    Column("is_pinned", Boolean, nullable=False, server_default=false()),
    Column("deleted_at", UtcTime, nullable=True),  # the row is erased once the deletion can't be undone
    Column("thinking", PlainText, nullable=False, server_default=""),
    Column("language", PlainText, nullable=False, server_default=""),  # of a program's system message
    Column("fold_when", PlainText, nullable=False, server_default=""),  # "": the server's default
    Column("instructions", PlainText, nullable=False, server_default=""),  # the user's own, for this chat
    Column("brought_instructions", PlainText, nullable=False, server_default=""),  # of its file: not sent until agreed
    Column("mcp_tools", JsonTuple, nullable=False, server_default="[]"),  # as they were when they were chosen
    Column("mcp_allowed", JsonTuple, nullable=False, server_default="[]"),  # those whose calls don't ask any more
    Column("struck", JsonTuple, nullable=False, server_default="[]"),  # ids of ledger lines, "+" before restored ones
    Index("session_by_owner", "owner", "updated_at"),
    Index("session_by_origin", "forked_from"),
)

turn_table = Table(
    "turn",
    METADATA,
    _session_id(),
    Column("number", Integer, nullable=False),
    Column("owner", PlainText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("status", PlainText, nullable=False),
    Column("user_message_id", PlainText, nullable=False),
    Column("model", PlainText, nullable=False),
    Column("is_casual", Boolean, nullable=False),
    Column("stop_requested", Boolean, nullable=False),
    Column("error_code", PlainText, nullable=False),
    Column("error_detail", PlainText, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime, nullable=True),
    Column("history_tokens", Integer, nullable=False),
    Column("partial_text", PlainText, nullable=False),
    Column("client", PlainText, nullable=False, server_default=""),
    Column("is_imported", Boolean, nullable=False, server_default=false()),
    Column("thought_seconds", Float, nullable=False, server_default="0"),
    Column("asked_calls", JsonTuple, nullable=False, server_default="[]"),  # those that wait for the user's word
    Column("thoughts", PlainText, nullable=False, server_default=""),
    PrimaryKeyConstraint("session_id", "number", name="turn_key"),
    sqlite_with_rowid=False,
)

# What `turn` says of the attempts that don't count, but have an answer; their messages are in the archive.
attempt_table = Table(
    "attempt",
    METADATA,
    _session_id(),
    Column("turn", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("owner", PlainText, nullable=False),
    Column("status", PlainText, nullable=False),
    Column("model", PlainText, nullable=False),
    Column("client", PlainText, nullable=False),
    Column("error_code", PlainText, nullable=False),
    Column("error_detail", PlainText, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime, nullable=True),
    Column("thought_seconds", Float, nullable=False, server_default="0"),
    Column("partial_text", PlainText, nullable=False, server_default=""),
    Column("thoughts", PlainText, nullable=False, server_default=""),
    PrimaryKeyConstraint("session_id", "turn", "attempt", name="attempt_key"),
    sqlite_with_rowid=False,
)

message_table = Table(
    "message",
    METADATA,
    _session_id(),
    Column("position", Integer, nullable=False),
    Column("owner", PlainText, nullable=False),
    Column("message_id", PlainText, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("role", PlainText, nullable=False),
    Column("chars", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("content", Text, nullable=False),
    Column(
        "whole_text", PlainText, nullable=False, server_default=""
    ),  # of a result or question that `content` has cut
    PrimaryKeyConstraint("session_id", "position", name="message_key"),
    UniqueConstraint("session_id", "message_id", name="message_said_once"),
)

# Numbers of sessions in the full-text index, whose rows have an integer key.
search_session_table = Table(
    "search_session",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    _session_id(),
    UniqueConstraint("session_id", name="search_session_once"),
    sqlite_autoincrement=True,  # numbers of deleted sessions aren't reused
)

# The meaning of a message, by `EMBEDDING_MODEL`: little-endian float32 of length 1; empty for a message without text.
message_vector_table = Table(
    "message_vector",
    METADATA,
    _session_id(),
    Column("position", Integer, nullable=False),
    Column("model", PlainText, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("session_id", "position", name="message_vector_key"),
)

# In SQLite, `sequence` alone is the key of `record` and `anchor`: the rowid, which each row has anyway.

record_table = Table(
    "record",
    METADATA,
    _sequence(),
    Column("id", PlainText, nullable=False),
    _session_id(),
    Column("owner", PlainText, nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("level", Integer, nullable=False),
    Column("from_position", Integer, nullable=False),
    Column("to_position", Integer, nullable=False),
    Column("turn_length", Integer, nullable=False),
    Column("status", PlainText, nullable=False),
    Column("outcome", PlainText, nullable=True),
    Column("adopted_at", UtcTime, nullable=True),
    Column("superseded_by", PlainText, nullable=True),
    Column("expires_at", UtcTime, nullable=True),
    Column("created_at", UtcTime, nullable=False),
    Column("model", PlainText, nullable=False),
    Column("compression_rate", Float, nullable=False),
    Column("original_chars", Integer, nullable=False),
    Column("summary_chars", Integer, nullable=False),
    Column("target_chars", Integer, nullable=False),
    Column("source_key", PlainText, nullable=False),
    Column("source_tokens", Integer, nullable=False),
    Column("summary_tokens", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("is_usage", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("replaces", PlainText, nullable=True),
    Column("edited", Boolean, nullable=False),
    Column("error_code", PlainText, nullable=False),  # while in progress: the process that makes the record
    Column("seconds", Float, nullable=False),
    Column("turns", JsonTuple, nullable=False),
    Column("sources", JsonTuple, nullable=False),
    Column("summary", PlainText, nullable=False),
    Column("covered_until_message_id", PlainText, nullable=False, server_default=""),
    *(Column(f"covered_{kind}_count", Integer, nullable=False, server_default="0") for kind in ("message", "token")),
    *(
        Column(f"context_{kind}", Integer, nullable=False, server_default="0")
        for kind in ("messages", "messages_after", "tokens")
    ),
    Column("facts", LargeBinary, nullable=True),  # `row.pack_facts`
    Column("wish", PlainText, nullable=False, server_default=""),
    Column("needed_rate", Float, nullable=False, server_default="0"),
    Column("invented_facts", JsonTuple, nullable=False, server_default="[]"),
    Column("ledger", JsonTuple, nullable=False, server_default="[]"),  # turn, kind and text of each line
    Column("days", PlainText, nullable=False, server_default=""),  # the first and the last of its messages
    PrimaryKeyConstraint("session_id", "sequence", name="record_key"),
    UniqueConstraint("id", name="record_id").ddl_if(dialect="sqlite"),
    UniqueConstraint("session_id", "id", name="record_id_in_session").ddl_if(dialect="postgresql"),
    Index("record_by_source", "session_id", "source_key"),
    Index("record_by_place", "session_id", "from_position"),
    Index("record_by_cover", "session_id", "superseded_by", "to_position"),
)

# Messages that are always sent verbatim.
pin_table = Table(
    "pin",
    METADATA,
    _session_id(),
    Column("message_id", PlainText, nullable=False),
    Column("owner", PlainText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("session_id", "message_id", name="pin_key"),
)

reset_table = Table(
    "context_reset",
    METADATA,
    _session_id(),
    Column("turn", Integer, nullable=False),
    Column("owner", PlainText, nullable=False),
    # NULL: unknown, or outdated because the turn before the reset was regenerated.
    Column("begin_before", Integer, nullable=True),
    Column("restored_tokens", Integer, nullable=False, server_default="0"),
    PrimaryKeyConstraint("session_id", "turn", name="context_reset_key"),
    sqlite_with_rowid=False,
)

call_table = Table(
    "model_call",
    METADATA,
    Column("id", PlainText, nullable=False),
    _session_id(),
    Column("owner", PlainText, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("model", PlainText, nullable=False),
    Column("input_hash", PlainText, nullable=False),
    Column("sent_tokens", Integer, nullable=False),
    Column("full_tokens", Integer, nullable=False),
    *(Column(f"usage_{kind}_tokens", Integer, nullable=True) for kind in ("input", "output", "cached")),
    Column("seconds", Float, nullable=False),
    Column("error_code", PlainText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("manifest", Text, nullable=False),
    # With the id, because the first version gave both tries after a context-length error the same ordinal.
    PrimaryKeyConstraint("session_id", "turn", "attempt", "ordinal", "id", name="model_call_key"),
)

context_block_table = Table(
    "context_block",
    METADATA,
    _session_id(),
    Column("kind", PlainText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("owner", PlainText, nullable=False),
    Column("lost_tokens", Integer, nullable=False, server_default="0"),  # cached behind the version before
    Column("text", PlainText, nullable=False),
    PrimaryKeyConstraint("session_id", "kind", "version", name="context_block_key"),
)

lease_table = Table(
    "lease",
    METADATA,
    _session_id(is_key=True),
    Column("owner", PlainText, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("expires_at", UtcTime, nullable=True),
    Column("host", PlainText, nullable=False),
    Column("process_id", Integer, nullable=False),
    Column("process_started", PlainText, nullable=False),
    # Both are raised in the transaction of a change: by any of the session, and by one of what a turn reads of it.
    Column("revision", BigInteger, nullable=False, server_default="0"),
    Column("context_revision", BigInteger, nullable=False, server_default="0"),
    sqlite_with_rowid=False,
)

# One row per response to a program, with hashes that recognise its next request. Every hash is keyed, 16 bytes.
anchor_table = Table(
    "anchor",
    METADATA,
    _sequence(),
    _session_id(),
    Column("owner", PlainText, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    *(Column(name, Integer, nullable=False) for name in ("first_position", "first_call")),  # of the response
    *(Column(name, LargeBinary, nullable=False) for name in ("scope", "asked")),
    Column("idempotency", LargeBinary, nullable=True),
    # NULL until the response is complete.
    Column("chain", LargeBinary, nullable=True),
    Column("answer", LargeBinary, nullable=True),
    # NULL if the request lacks turns of the session.
    Column("whole", LargeBinary, nullable=True),
    Column("frame", LargeBinary, nullable=True),  # four hashes of 8 bytes
    PrimaryKeyConstraint("session_id", "sequence", name="anchor_key"),
    Index("anchor_by_session", "session_id", "turn"),
    *(Index(f"anchor_by_{name}", "scope", name) for name in ("asked", "idempotency", "chain", "answer")),
)

# Images sent by programs, stored once per session; the archive refers to them by hash.
image_table = Table(
    "image",
    METADATA,
    _session_id(),
    Column("hash", PlainText, nullable=False),
    Column("owner", PlainText, nullable=False),
    Column("data_url", Text, nullable=False),
    PrimaryKeyConstraint("session_id", "hash", name="image_key"),
)

# Random keys of the server, generated once.
server_key_table = Table(
    "server_key",
    METADATA,
    Column("name", PlainText, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

# SQLite's full-text index numbers its sessions; Postgres's doesn't.
POSTGRES_TABLES: Final = [table for table in METADATA.sorted_tables if table is not search_session_table]
