"""The table of withdrawn owners: who is let in no more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, delete, select

from graph.store.database import Clock, Database
from graph.store.expression import add_once
from graph.store.owner_table import withdrawn_owner_table

_withdrawn = withdrawn_owner_table.c
_WITHDRAW = add_once(withdrawn_owner_table)
_READMIT = delete(withdrawn_owner_table).where(_withdrawn.owner == bindparam("of_owner"))
_IS_WITHDRAWN = select(_withdrawn.owner).where(_withdrawn.owner == bindparam("owner"))
_ALL = select(_withdrawn.owner, _withdrawn.withdrawn_at).order_by(_withdrawn.withdrawn_at, _withdrawn.owner)


@dataclass(frozen=True)
class WithdrawnOwner:
    """An owner who is let in no more, since when, in UTC."""

    owner: str
    withdrawn_at: datetime


class OwnerStore:
    """Withdraws owners and takes that back; their sessions stay as they are."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def withdraw(self, owner: str) -> None:
        """Lets the owner in no more, from the next call on; again changes nothing."""
        with self._database.write() as connection:
            connection.execute(_WITHDRAW, {"owner": owner, "withdrawn_at": self._clock()})

    def readmit(self, owner: str) -> bool:
        """Takes a withdrawal back; returns whether there was one."""
        with self._database.write() as connection:
            return connection.execute(_READMIT, {"of_owner": owner}).rowcount > 0

    def is_withdrawn(self, owner: str) -> bool:
        """Whether the owner is let in no more."""
        with self._database.read() as connection:
            return connection.execute(_IS_WITHDRAWN, {"owner": owner}).first() is not None

    def withdrawn(self) -> list[WithdrawnOwner]:
        """Returns all who are let in no more, in the order of their withdrawal."""
        with self._database.read() as connection:
            return [WithdrawnOwner(*row) for row in connection.execute(_ALL)]
