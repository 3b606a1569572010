"""The tables of owners, who stand apart from their sessions: withdrawn owners, tokens, and what was used lately."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, MetaData, Table, true

from graph.store.column_type import JsonTuple, PlainText, UtcTime

METADATA = MetaData()

# Who is let in no more, whatever a sign-in or a token says.
withdrawn_owner_table = Table(
    "withdrawn_owner",
    METADATA,
    Column("owner", PlainText, primary_key=True),
    Column("withdrawn_at", UtcTime, nullable=False),
)

# Of a token only the SHA-256 hash is kept.
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
    Index("api_token_by_owner", "owner"),
)

# One row an owner: the turns begun within one minute, the tokens spent on one day, both counted from 1970 in UTC.
owner_use_table = Table(
    "owner_use",
    METADATA,
    Column("owner", PlainText, primary_key=True),
    Column("minute", Integer, nullable=False),
    Column("turns", Integer, nullable=False),
    Column("day", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)
