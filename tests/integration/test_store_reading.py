from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from graph.error import NotFoundError
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = pytest.mark.both_engines


def test_all_reads_of_a_block_see_one_state_and_those_of_other_threads_their_own(stores: StoreSet) -> None:
    stores.make_session()

    def title() -> str:
        return stores.sessions.get(SESSION, OWNER).title

    with ThreadPoolExecutor(1) as other:
        with stores.database.reading():
            assert title() == ""
            with stores.database.reading():
                stores.sessions.rename(SESSION, OWNER, "renamed")
                assert title() == ""
            assert title() == ""
            assert other.submit(title).result() == "renamed"
        assert title() == "renamed"
        with pytest.raises(NotFoundError), stores.database.reading():
            stores.sessions.get("nowhere", OWNER)
        assert title() == "renamed"


def test_blocks_of_writing_within_each_other_are_one_transaction(stores: StoreSet) -> None:
    stores.make_session()

    def rename(title: str) -> None:
        with stores.database.writing():
            with stores.database.writing():
                stores.sessions.rename(SESSION, OWNER, "inner")
            stores.sessions.rename(SESSION, OWNER, title)
            assert stores.sessions.get(SESSION, OWNER).title == title
            if not title:
                raise KeyboardInterrupt

    rename("outer")
    with pytest.raises(KeyboardInterrupt):
        rename("")
    assert stores.sessions.get(SESSION, OWNER).title == "outer"
