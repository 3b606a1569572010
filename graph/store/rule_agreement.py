"""The table of agreements of owners to the rules of projects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, insert, select

from graph.store.database import Clock, Database
from graph.store.owner_table import rule_agreement_table

_agreement = rule_agreement_table.c
_ADD = insert(rule_agreement_table)
_NEWEST = (
    select(_agreement.digest, _agreement.rules, _agreement.decided_at)
    .where(_agreement.owner == bindparam("owner"), _agreement.root == bindparam("root"))
    .order_by(_agreement.sequence.desc())
    .limit(1)
)


@dataclass(frozen=True)
class RuleAgreement:
    """An owner's agreement to a project's rules.

    Attributes:
        digest: Identifies the accepted set of rules.
        rules: The set, as JSON.
        decided_at: UTC, for display; the newest row counts, whatever the clock.
    """

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
            connection.execute(_ADD, {"owner": owner, "root": root, **vars(agreement)})
        return agreement

    def newest(self, owner: str, root: str) -> RuleAgreement | None:
        with self._database.read() as connection:
            row = connection.execute(_NEWEST, {"owner": owner, "root": root}).one_or_none()
        return None if row is None else RuleAgreement(*row)
