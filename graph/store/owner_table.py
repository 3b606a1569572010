"""Tables of owners, independent of sessions: tokens, use, costs, agreements, sign-ins, withdrawals."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, MetaData, Table, text, true

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
