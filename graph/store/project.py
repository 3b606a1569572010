"""The tables of a session's context blocks, and of owners' agreements to the rules of projects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, func, insert, select

from graph.core.pin import STANDING, BlockKind, ContextBlock
from graph.core.text import plain_text
from graph.store.database import Clock, Database, Lease
from graph.store.schema import context_block_table, rule_agreement_table
from graph.value.error import NotFoundError

_block = context_block_table.c
_ADD = insert(context_block_table)
_OF_KIND = select(_block.version, _block.owner, _block.text).where(
    _block.session_id == bindparam("of_session"), _block.kind == bindparam("of_kind")
)
_VERSIONS = _OF_KIND.order_by(_block.version.desc())
_NEWEST = _OF_KIND.order_by(_block.version.desc()).limit(1)
_IN_STATE: Final = (*STANDING, "mcp")
_newer = context_block_table.alias("newer").c
_STANDING = select(_block.kind, _block.version, _block.text).where(
    _block.session_id == bindparam("of_session"),
    _block.kind.in_(_IN_STATE),
    _block.version
    == select(func.max(_newer.version))
    .where(_newer.session_id == _block.session_id, _newer.kind == _block.kind)
    .scalar_subquery(),
)
_ONE = _OF_KIND.where(_block.version == bindparam("of_version"))
_LOSSES = select(func.count(), func.coalesce(func.sum(_block.lost_tokens), 0)).where(
    _block.session_id == bindparam("of_session"), _block.kind == bindparam("of_kind"), _block.lost_tokens > 0
)


class ContextBlockStore:
    """Stores each changed text as a new version; an empty text ends the block. Rows are never updated."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(
        self, lease: Lease, kind: BlockKind, text: str, *, owner: str, lost_tokens: int = 0
    ) -> ContextBlock | None:
        """Returns the newest block of this kind if it has this text, else stores a new version.

        NUL and lone surrogates become U+FFFD; an empty text ends the block and returns None. `lost_tokens` is our
        estimate for the tokens cached by a provider behind the previous block.
        """
        text = plain_text(text)
        newest = self.newest(lease.session_id, kind)
        if text == ("" if newest is None else newest.text):
            return newest
        with self._database.write(lease, is_context=kind in _IN_STATE) as connection:
            return _add(connection, lease.session_id, kind, text, owner, lost_tokens)

    def newest(self, session_id: str, kind: BlockKind) -> ContextBlock | None:
        """Returns the session's newest block of this kind; None if missing or ended."""
        with self._database.read() as connection:
            row = _newest(connection, session_id, kind)
        return ContextBlock(kind, row.version, row.text) if row and row.text else None

    def standing(self, session_id: str) -> dict[BlockKind, ContextBlock]:
        """Returns the newest block of each kind that stays from turn to turn, without those that have ended."""
        with self._database.read() as connection:
            rows = connection.execute(_STANDING, {"of_session": session_id}).all()
        return {row.kind: ContextBlock(row.kind, row.version, row.text) for row in rows if row.text}

    def versions(self, session_id: str, kind: BlockKind) -> tuple[str, ...]:
        """Returns the texts of all versions of this kind of block, newest first, ends left out."""
        with self._database.read() as connection:
            rows = connection.execute(_VERSIONS, {"of_session": session_id, "of_kind": kind}).all()
        return tuple(row.text for row in rows if row.text)

    def losses(self, session_id: str, kind: BlockKind) -> tuple[int, int]:
        """Returns the number of changes of this kind of block that lost cached tokens, and the tokens lost in all."""
        place = {"of_session": session_id, "of_kind": kind}
        with self._database.read() as connection:
            count, tokens = connection.execute(_LOSSES, place).one()
        return int(count), int(tokens)

    def get(self, session_id: str, kind: BlockKind, version: int) -> ContextBlock:
        """Raises `NotFoundError` if the session has no such block."""
        place = {"of_session": session_id, "of_kind": kind, "of_version": version}
        with self._database.read() as connection:
            row = connection.execute(_ONE, place).one_or_none()
        if row is None:
            detail = f"{kind} {version}"
            raise NotFoundError(detail)
        return ContextBlock(kind, version, row.text)


def end_front(connection: Connection, session_id: str) -> None:
    """Ends the session's prefix block, so that the next turn makes a new one; in the caller's transaction."""
    newest = _newest(connection, session_id, "front")
    if newest and newest.text:
        _add(connection, session_id, "front", "", newest.owner, 0)


def _newest(connection: Connection, session_id: str, kind: BlockKind) -> Row[*tuple[Any, ...]] | None:
    return connection.execute(_NEWEST, {"of_session": session_id, "of_kind": kind}).one_or_none()


def _add(
    connection: Connection, session_id: str, kind: BlockKind, text: str, owner: str, lost_tokens: int
) -> ContextBlock | None:
    newest = _newest(connection, session_id, kind)
    version = 1 if newest is None else newest.version + 1
    values = {
        "session_id": session_id,
        "kind": kind,
        "version": version,
        "owner": owner,
        "text": text,
        "lost_tokens": lost_tokens,
    }
    connection.execute(_ADD, values)
    return ContextBlock(kind, version, text) if text else None


_agreement = rule_agreement_table.c
_ADD_AGREEMENT = insert(rule_agreement_table)
_NEWEST_AGREEMENT = (
    select(_agreement.digest, _agreement.rules, _agreement.decided_at)
    .where(_agreement.owner == bindparam("owner"), _agreement.root == bindparam("root"))
    .order_by(_agreement.sequence.desc())
    .limit(1)
)


@dataclass(frozen=True)
class RuleAgreement:
    """An owner's agreement to a project's rules (JSON); `decided_at` is for display, the newest row counts."""

    digest: str
    rules: str
    decided_at: datetime


class RuleAgreementStore:
    """Stores every agreement; the newest per owner and root counts."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def agree(self, owner: str, root: str, *, digest: str, rules: str) -> RuleAgreement:
        agreement = RuleAgreement(digest, rules, self._clock())
        with self._database.write() as connection:
            connection.execute(_ADD_AGREEMENT, {"owner": owner, "root": root, **vars(agreement)})
        return agreement

    def newest(self, owner: str, root: str) -> RuleAgreement | None:
        with self._database.read() as connection:
            row = connection.execute(_NEWEST_AGREEMENT, {"owner": owner, "root": root}).one_or_none()
        return None if row is None else RuleAgreement(*row)
