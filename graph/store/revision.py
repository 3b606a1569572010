"""The revisions of many sessions, and of what their owners' lists are made of, in one statement."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, BindParameter, bindparam, cast, func, literal, select, union_all

from graph.store.database import Database
from graph.store.schema import lease_table, session_table, sign_in_table, withdrawn_owner_table

_lease, _session, _sign_in, _withdrawn = lease_table.c, session_table.c, sign_in_table.c, withdrawn_owner_table.c


@dataclass(frozen=True)
class Revisions:
    """What was read, by kind and name."""

    rows: Mapping[tuple[str, str], tuple[int, int]]

    def of_session(self, session_id: str) -> int | None:
        """Returns the session's revision; None before its first change."""
        row = self.rows.get(("session", session_id))
        return row and row[0]

    def of_owner(self, owner: str) -> Hashable:
        """Returns what differs once a session of the owner has changed, or once a sign-in or all access has ended."""
        return tuple(self.rows.get((kind, owner)) for kind in ("list", "ended", "withdrawn"))


_NONE: Final = cast(literal(0), BigInteger)
_sum, _count = cast(func.coalesce(func.sum(_lease.revision), 0), BigInteger), cast(func.count(), BigInteger)
_of_owners: BindParameter[list[str]] = bindparam("owners", expanding=True)
_of_sessions: BindParameter[list[str]] = bindparam("sessions", expanding=True)
_REVISIONS: Final = union_all(
    select(literal("session"), _lease.session_id, _lease.revision, _NONE).where(_lease.session_id.in_(_of_sessions)),
    select(literal("list"), _session.owner, _sum, _count)
    .select_from(session_table.outerjoin(lease_table, _lease.session_id == _session.session_id))
    .where(_session.owner.in_(_of_owners))
    .group_by(_session.owner),
    select(literal("ended"), _sign_in.owner, _count, _NONE)
    .where(_sign_in.owner.in_(_of_owners), _sign_in.ended_at.is_not(None))
    .group_by(_sign_in.owner),
    select(literal("withdrawn"), _withdrawn.owner, _NONE, _NONE).where(_withdrawn.owner.in_(_of_owners)),
)


def read_revisions(database: Database, sessions: Collection[str], owners: Collection[str]) -> Revisions:
    with database.read() as connection:
        rows = connection.execute(_REVISIONS, {"sessions": list(sessions), "owners": list(owners)})
        return Revisions({(kind, name): (number, count) for kind, name, number, count in rows.tuples()})
