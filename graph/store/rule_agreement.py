"""The table of agreements: which rules of a project an owner has agreed to."""

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
    """What an owner has agreed to for a project.

    Attributes:
        digest: Tells the agreed set of rules from others.
        rules: That set, as JSON.
        decided_at: In UTC; for the user to see. The newest row decides, whatever a clock says.
    """

    digest: str
    rules: str
    decided_at: datetime


class RuleAgreementStore:
    """Keeps every agreement; the newest of an owner and a root counts."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def agree(self, owner: str, root: str, *, digest: str, rules: str) -> RuleAgreement:
        """Keeps that the owner has agreed to these rules of this project."""
        agreement = RuleAgreement(digest, rules, self._clock())
        with self._database.write() as connection:
            connection.execute(_ADD, {"owner": owner, "root": root, **vars(agreement)})
        return agreement

    def newest(self, owner: str, root: str) -> RuleAgreement | None:
        """Returns what the owner has last agreed to for this project; None if they never did."""
        with self._database.read() as connection:
            row = connection.execute(_NEWEST, {"owner": owner, "root": root}).one_or_none()
        return None if row is None else RuleAgreement(*row)
