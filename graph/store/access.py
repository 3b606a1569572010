"""The tables of sign-ins and of API tokens, shared by all servers of the database."""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Row, and_, bindparam, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from graph.server.identity import LONGEST_SIGN_IN_HOURS, SignIn, digest_of
from graph.store.column import add_once, database_time
from graph.store.database import Clock, Database
from graph.store.schema import api_token_table, sign_in_table
from graph.value.error import InputError, StoreError
from graph.value.view import ProgramToken

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


MOST_TOKENS: Final = 100

_token = api_token_table.c
_IS_LIVE = _token.withdrawn_at.is_(None)
_SHOWN = (
    _token.id,
    _token.name,
    _token.has_all_tools,
    _token.tools,
    _token.is_personal,
    _token.created_at,
    _token.last_used_on,
)
_OF_OWNER = (
    select(*_SHOWN).where(_token.owner == bindparam("of_owner"), _IS_LIVE).order_by(_token.created_at, _token.id)
)
_KNOWN = select(_token.digest, _token.owner, *_SHOWN).where(_token.digest == bindparam("of_digest"), _IS_LIVE)
_ADD = add_once(api_token_table).returning(_token.id)
_WITHDRAW = (
    update(api_token_table)
    .where(_token.id == bindparam("of_id"), _token.owner == bindparam("of_owner"), _IS_LIVE)
    .values(withdrawn_at=bindparam("at"))
)
_USE = (
    update(api_token_table)
    .where(_token.id == bindparam("of_id"), or_(_token.last_used_on.is_(None), _token.last_used_on < bindparam("day")))
    .values(last_used_on=bindparam("day"))
)
_COUNTS = select(_token.is_personal, func.count().label("tokens")).where(_IS_LIVE).group_by(_token.is_personal)
_ANY = select(_token.id).where(_IS_LIVE).limit(1)


class ApiTokenStore:
    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def add(
        self, owner: str, name: str, token: str, tools: Collection[str] | None, *, is_personal: bool = True
    ) -> ProgramToken:
        """Stores a token's hash; raises `InputError` (`token_name_taken` or `too_many_tokens`)."""
        chosen = None if tools is None else frozenset(tools)
        made = ProgramToken(secrets.token_urlsafe(9), name, chosen, self._clock(), is_personal=is_personal)
        row = {
            "id": made.id,
            "owner": owner,
            "name": name,
            "digest": digest_of(token),
            "has_all_tools": tools is None,
            "tools": tuple(sorted(tools or ())),
            "is_personal": is_personal,
            "created_at": made.created_at,
        }
        with self._database.write() as connection:
            if len(connection.execute(_OF_OWNER, {"of_owner": owner}).all()) >= MOST_TOKENS:
                raise InputError("too_many_tokens", f"≤ {MOST_TOKENS}")
            if connection.execute(_ADD, row).first() is None:
                raise InputError("token_name_taken", name)
        return made

    def of_owner(self, owner: str) -> list[ProgramToken]:
        with self._database.read() as connection:
            return [_shown(row) for row in connection.execute(_OF_OWNER, {"of_owner": owner})]

    def withdraw(self, owner: str, token_id: str) -> None:
        """Revokes a token from the next request on; ignores another owner's token."""
        with self._database.write() as connection:
            connection.execute(_WITHDRAW, {"of_id": token_id, "of_owner": owner, "at": self._clock()})

    def find(self, token: str) -> tuple[str, ProgramToken] | None:
        """Returns the owner and description of a live token, else None; records the day of use."""
        digest = digest_of(token)
        with self._database.read() as connection:
            row = connection.execute(_KNOWN, {"of_digest": digest}).one_or_none()
        # The index search stops at the first differing byte, which for a hash reveals nothing.
        if row is None or not hmac.compare_digest(row.digest, digest):
            return None
        self._note_use(row)
        return row.owner, _shown(row)

    def counts(self) -> tuple[int, int]:
        """Returns how many live tokens of all owners are one person's, and how many are shared."""
        with self._database.read() as connection:
            found = {row.is_personal: row.tokens for row in connection.execute(_COUNTS)}
        return found.get(True, 0), found.get(False, 0)

    def has_any(self) -> bool:
        with self._database.read() as connection:
            return connection.execute(_ANY).first() is not None

    def _note_use(self, row: Row[*tuple[Any, ...]]) -> None:
        today = self._clock().replace(hour=0, minute=0, second=0, microsecond=0)
        if row.last_used_on is not None and row.last_used_on >= today:
            return
        try:
            with self._database.write() as connection:
                connection.execute(_USE, {"of_id": row.id, "day": today})
        except StoreError as error:  # no reason to refuse the request
            _LOG.warning("the use of a token was not noted: %s", error.code)


def _shown(row: Row[*tuple[Any, ...]]) -> ProgramToken:
    tools = None if row.has_all_tools else frozenset(row.tools)
    used_on = row.last_used_on and row.last_used_on.date()
    return ProgramToken(row.id, row.name, tools, row.created_at, used_on, row.is_personal)
