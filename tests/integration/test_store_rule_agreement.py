from __future__ import annotations

import pytest

from graph.store.rule_agreement import RuleAgreement
from tests.fake.store import OWNER, StoreSet

pytestmark = pytest.mark.both_engines

ROOT = "/srv/일/app"


def test_who_never_agreed_has_agreed_to_nothing(stores: StoreSet) -> None:
    assert stores.agreements.newest(OWNER, ROOT) is None


def test_the_newest_agreement_counts_though_a_clock_was_set_back(stores: StoreSet) -> None:
    stores.agreements.agree(OWNER, ROOT, digest="aa", rules='{"files": []}')
    stores.clock.move(-3_600)
    kept = stores.agreements.agree(OWNER, ROOT, digest="bb", rules='{"files": ["AGENTS.md"]}')
    assert (
        stores.agreements.newest(OWNER, ROOT) == kept == RuleAgreement("bb", '{"files": ["AGENTS.md"]}', stores.clock())
    )
    stores.agreements.agree(OWNER, ROOT, digest="aa", rules='{"files": []}')
    newest = stores.agreements.newest(OWNER, ROOT)
    assert newest is not None
    assert newest.digest == "aa"


def test_an_agreement_is_of_one_owner_and_one_root(stores: StoreSet) -> None:
    stores.agreements.agree(OWNER, ROOT, digest="aa", rules="{}")
    assert stores.agreements.newest("mallory", ROOT) is None
    assert stores.agreements.newest(OWNER, f"{ROOT}/sub") is None


def test_an_agreement_outlasts_the_sessions(stores: StoreSet) -> None:
    stores.make_session()
    stores.agreements.agree(OWNER, ROOT, digest="aa", rules="{}")
    stores.sessions.delete("s1", OWNER)
    assert stores.agreements.newest(OWNER, ROOT) is not None
