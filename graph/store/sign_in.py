"""The table of sign-ins, known and ended, shared by all servers of the database."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import and_, bindparam, delete, exists, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from graph.server.identity import LONGEST_SIGN_IN_HOURS, SignIn
from graph.store.column import add_once, database_time
from graph.store.database import Database
from graph.store.owner_table import sign_in_table
from graph.value.error import StoreError

_LOG = logging.getLogger(__name__)
_ALL: Final = ""
# Tolerated difference between a provider's clock and the database's, the same as when its token is checked.
_CLOCKS_DIFFER: Final = timedelta(seconds=120)
_LATEST: Final = datetime.max.replace(tzinfo=UTC) - _CLOCKS_DIFFER
# The longest life of a cookie, plus a day for clock differences.
_KEPT: Final = timedelta(hours=LONGEST_SIGN_IN_HOURS) + timedelta(days=1)

_row = sign_in_table.c
_IS_OWNERS = _row.owner == bindparam("owner")
_IS_IT = and_(_IS_OWNERS, _row.id == bindparam("sign_in"))
_IS_ENDED = _row.ended_at.is_not(None)
# A known sign-in has a row, independent of clocks. An unknown one has ended if it is older than the owner's sign-out of
# all, by more than the clocks may differ.
IS_SIGNED_OUT: Final = exists().where(
    or_(
        and_(_IS_IT, _IS_ENDED),
        and_(_IS_OWNERS, _row.id == _ALL, _row.ended_at >= bindparam("surely_began", type_=_row.ended_at.type)),
    )
)
_STATE = select(IS_SIGNED_OUT, exists().where(_IS_IT))
_SEE = add_once(sign_in_table).values(owner=bindparam("owner"), id=bindparam("sign_in"), seen_at=database_time())
_END_SEEN = (
    update(sign_in_table)
    .where(_row.owner == bindparam("of_owner"), _row.ended_at.is_(None))
    .values(ended_at=database_time())
)
_ended = insert(sign_in_table).values(
    owner=bindparam("owner"), id=bindparam("sign_in"), seen_at=database_time(), ended_at=database_time()
)
_END = _ended.on_conflict_do_update(
    index_elements=[_row.owner, _row.id],
    set_={name: _ended.excluded[name] for name in ("seen_at", "ended_at")},
)
_FORGET = delete(sign_in_table).where(_row.seen_at < database_time(-_KEPT.total_seconds()))


def parameters_of(sign_in: SignIn | None) -> dict[str, object]:
    """Returns the parameters of `IS_SIGNED_OUT` beside the owner; without a sign-in it is false."""
    if sign_in is None:
        return {"sign_in": None, "surely_began": None}
    return {"sign_in": sign_in.id, "surely_began": min(sign_in.began, _LATEST) + _CLOCKS_DIFFER}


class SignInStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def is_ended(self, owner: str, sign_in: SignIn) -> bool:
        """True if a sign-out has ended this sign-in. Records a sign-in on first use."""
        with self._database.read() as connection:
            is_ended, is_seen = connection.execute(_STATE, {"owner": owner, **parameters_of(sign_in)}).one()
        if not (is_ended or is_seen):
            self._note(owner, sign_in)
        return bool(is_ended)

    def end(self, owner: str, sign_in: SignIn) -> None:
        with self._database.write() as connection:
            connection.execute(_END, {"owner": owner, "sign_in": sign_in.id})

    def end_all(self, owner: str) -> None:
        """Ends all sign-ins of an owner so far; later ones are valid."""
        with self._database.write() as connection:
            connection.execute(_END_SEEN, {"of_owner": owner})
            connection.execute(_END, {"owner": owner, "sign_in": _ALL})

    def _note(self, owner: str, sign_in: SignIn) -> None:
        try:
            with self._database.write() as connection:
                connection.execute(_SEE, {"owner": owner, "sign_in": sign_in.id})
                connection.execute(_FORGET)
        except StoreError as error:  # no reason to refuse the sign-in
            _LOG.warning("a sign-in was not noted: %s", error.code)
