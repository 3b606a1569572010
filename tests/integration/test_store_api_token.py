from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from threading import Barrier
from typing import Final

import pytest

from graph.api_token import new_token
from graph.error import InputError
from graph.program_view import ProgramToken
from graph.store.api_token import MOST_TOKENS
from tests.fake.store import OWNER, StoreSet

pytestmark = pytest.mark.both_engines

_AT_ONCE: Final = 8


def test_a_token_is_found_by_itself_alone(stores: StoreSet) -> None:
    token, other = new_token(), new_token()
    made = stores.tokens.add(OWNER, "편집기", token, {"recall"})
    stores.tokens.add("mallory", "편집기", other, None)
    found = stores.tokens.find(token)
    assert found is not None
    assert (found[0], found[1].name, found[1].tools) == (OWNER, "편집기", frozenset({"recall"}))
    assert stores.tokens.of_owner(OWNER) == [
        ProgramToken(made.id, "편집기", frozenset({"recall"}), stores.clock(), stores.clock().date())
    ]
    for wrong in ("", token[:-1], token + "x", token.upper(), made.id, "토큰", "\ud800"):
        assert stores.tokens.find(wrong) is None


@pytest.mark.parametrize("tools", [None, frozenset(), frozenset({"recall", "web_search"})])
def test_all_tools_and_none_are_told_apart(stores: StoreSet, tools: frozenset[str] | None) -> None:
    assert stores.tokens.add(OWNER, "notes", new_token(), tools).tools == tools
    assert stores.tokens.of_owner(OWNER)[0].tools == tools


@pytest.mark.sqlite
def test_the_files_have_no_token(stores: StoreSet) -> None:
    token = new_token()
    stores.tokens.add(OWNER, "a program", token, None)
    stores.tokens.find(token)
    written = b"".join(file.read_bytes() for file in stores.path.parent.iterdir())
    assert b"a program" in written
    assert token.removeprefix("tf-").encode() not in written


def test_a_withdrawn_token_lets_nobody_in_and_its_name_is_free_again(stores: StoreSet) -> None:
    token = new_token()
    made = stores.tokens.add(OWNER, "notes", token, None)
    assert stores.tokens.has_any()
    stores.tokens.withdraw(OWNER, made.id)
    assert stores.tokens.find(token) is None
    assert stores.tokens.of_owner(OWNER) == []
    assert not stores.tokens.has_any()
    stores.tokens.add(OWNER, "notes", new_token(), None)


def test_of_two_tokens_of_one_name_that_are_made_at_once_one_is_kept(stores: StoreSet) -> None:
    together = Barrier(_AT_ONCE)

    def add(_: int) -> bool:
        together.wait()
        try:
            stores.tokens.add(OWNER, "notes", new_token(), None)
        except InputError as error:
            assert error.reason == "token_name_taken"  # noqa: PT017  # all but one
            return False
        return True

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        assert sum(pool.map(add, range(_AT_ONCE))) == 1
    assert len(stores.tokens.of_owner(OWNER)) == 1


def test_nobody_withdraws_anothers_token(stores: StoreSet) -> None:
    token = new_token()
    made = stores.tokens.add(OWNER, "notes", token, None)
    stores.tokens.withdraw("mallory", made.id)
    stores.tokens.withdraw(OWNER, "no-such-token")
    assert stores.tokens.find(token) is not None
    assert stores.tokens.of_owner("mallory") == []


def test_the_last_use_is_known_by_the_day(stores: StoreSet) -> None:
    token = new_token()
    assert stores.tokens.add(OWNER, "notes", token, None).last_used_on is None

    def last_use() -> date | None:
        stores.tokens.find(token)
        return stores.tokens.of_owner(OWNER)[0].last_used_on

    today = stores.clock().date()
    assert last_use() == today
    stores.clock.move(3_600)
    assert last_use() == today
    stores.clock.move(86_400)
    assert last_use() == today + timedelta(days=1)
    stores.clock.move(-3 * 86_400)
    assert last_use() == today + timedelta(days=1)


def test_names_of_an_owner_differ(stores: StoreSet) -> None:
    stores.tokens.add(OWNER, "notes", new_token(), None)
    with pytest.raises(InputError) as caught:
        stores.tokens.add(OWNER, "notes", new_token(), None)
    assert caught.value.reason == "token_name_taken"
    stores.tokens.add("mallory", "notes", new_token(), None)


def test_an_owner_has_so_many_and_no_more(stores: StoreSet) -> None:
    for number in range(MOST_TOKENS):
        stores.tokens.add(OWNER, f"program {number}", new_token(), None)
    with pytest.raises(InputError) as caught:
        stores.tokens.add(OWNER, "one more", new_token(), None)
    assert caught.value.reason == "too_many_tokens"
    stores.tokens.withdraw(OWNER, stores.tokens.of_owner(OWNER)[0].id)
    stores.tokens.add(OWNER, "one more", new_token(), None)
