"""What is kept by owner: who is let in no more, ended sign-ins, tokens of programs, use within caps, agreed rules."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from datetime import UTC, date, datetime, timedelta
from functools import partial
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from graph.core.text import plain_text
from graph.server.identity import new_token
from graph.store.access import MOST_TOKENS
from graph.store.column import database_time
from graph.store.owner import OwnerUseStore, WithdrawnOwner
from graph.store.project import RuleAgreement
from graph.store.schema import own_instruction_table, sign_in_table
from graph.value.error import InputError, NotFoundError, TurnRateError, UserRateError, UserTokensError
from graph.value.view import ProgramToken
from tests.fake.drawn import at_most
from tests.fake.owners import sign_in_of
from tests.fake.store import OWNER, MovableClock, StoreSet, open_location

pytestmark = pytest.mark.both_engines

ROOT = "/srv/일/app"
HALF_A_DAY = 12 * 3_600
drawn = settings(max_examples=at_most(40), suppress_health_check=[HealthCheck.function_scoped_fixture])


def now_of(stores: StoreSet) -> datetime:
    """Returns the time by the database's clock."""
    with stores.database.read() as connection:
        return connection.execute(select(database_time())).scalar_one()


def test_withdrawal_counts_from_the_first_time_until_it_is_taken_back(stores: StoreSet) -> None:
    stores.make_session()
    assert (stores.owners.is_withdrawn(OWNER), stores.owners.withdrawn()) == (False, [])
    stores.owners.withdraw(OWNER)
    since = stores.clock()
    stores.clock.move(60)
    stores.owners.withdraw(OWNER)
    assert stores.owners.withdrawn() == [WithdrawnOwner(OWNER, since)]
    assert stores.owners.is_withdrawn(OWNER)
    assert not stores.owners.is_withdrawn("mallory")
    assert stores.sessions.get("s1", OWNER).owner == OWNER
    assert stores.owners.readmit(OWNER)
    assert not stores.owners.is_withdrawn(OWNER)
    assert not stores.owners.readmit(OWNER)


def test_instructions_are_an_owners_or_a_chats_and_the_last_kept_counts(stores: StoreSet) -> None:
    stores.make_session()
    assert (stores.instructions.get(OWNER), stores.sessions.get("s1", OWNER).instructions) == ("", "")
    for text in ("짧게 답하세요.", 'It\'s "brief";\n:name -- 표로', "짧게"):
        stores.instructions.keep(OWNER, text)
        stores.instructions.keep("mallory", "길게")
        stores.sessions.update("s1", OWNER, instructions=text)
        assert (stores.instructions.get(OWNER), stores.instructions.get("mallory")) == (text, "길게")
        assert stores.sessions.get("s1", OWNER).instructions == text
    stores.instructions.keep(OWNER, "")
    assert (stores.instructions.get(OWNER), stores.instructions.get("mallory")) == ("", "길게")
    with stores.database.read() as connection:
        assert connection.execute(select(own_instruction_table.c.owner)).scalars().all() == ["mallory"]


def test_one_sign_in_is_ended_and_no_other(stores: StoreSet) -> None:
    stores.make_session()
    laptop, phone = sign_in_of("laptop"), sign_in_of("phone")
    assert not any(stores.sign_ins.is_ended(OWNER, sign_in) for sign_in in (laptop, phone, laptop))
    stores.sign_ins.end(OWNER, laptop)
    stores.sign_ins.end(OWNER, laptop)
    assert [stores.sign_ins.is_ended(OWNER, sign_in) for sign_in in (laptop, phone)] == [True, False]
    assert not stores.sign_ins.is_ended("mallory", laptop)
    unseen = sign_in_of("unseen")
    stores.sign_ins.end(OWNER, unseen)
    assert stores.sign_ins.is_ended(OWNER, unseen)
    for sign_in in (None, phone):
        assert stores.sessions.get_admitted("s1", OWNER, sign_in).owner == OWNER
    with pytest.raises(NotFoundError):
        stores.sessions.get_admitted("s1", OWNER, laptop)


# Of a sign-in: whether it was seen before its owner signed out everywhere, how many seconds after that its provider's
# clock says that it was made, and whether it has ended.
AROUND_A_SIGN_OUT = [
    (True, -3_600, True),
    (True, -1, True),
    (True, 90, True),  # by a clock that is ahead
    (False, -3_600, True),
    (False, -125, True),
    (False, -100, False),  # made after, by a clock that is behind
    (False, -0.5, False),  # made in the same second, of which a token has the beginning
    (False, 2, False),
    (False, 90, False),
]


@pytest.mark.parametrize(("is_seen", "seconds", "is_ended"), AROUND_A_SIGN_OUT)
def test_signing_out_everywhere_ends_what_was_made_before(
    stores: StoreSet, *, is_seen: bool, seconds: float, is_ended: bool
) -> None:
    stores.make_session()
    sign_in = sign_in_of("laptop", began=now_of(stores) + timedelta(seconds=seconds))
    if is_seen:
        assert not stores.sign_ins.is_ended(OWNER, sign_in)
    stores.sign_ins.end_all(OWNER)
    assert not stores.sign_ins.is_ended("mallory", sign_in)
    with nullcontext() if not is_ended else pytest.raises(NotFoundError):
        assert stores.sessions.get_admitted("s1", OWNER, sign_in).owner == OWNER
    assert [stores.sign_ins.is_ended(OWNER, sign_in) for _ in "12"] == [is_ended] * 2
    stores.sign_ins.end_all(OWNER)
    assert stores.sign_ins.is_ended(OWNER, sign_in)


def test_a_sign_in_of_the_farthest_time_is_ended_like_any_other(stores: StoreSet) -> None:
    sign_in = sign_in_of("laptop", began=datetime.max.replace(tzinfo=UTC), until=datetime.max.replace(tzinfo=UTC))
    assert not stores.sign_ins.is_ended(OWNER, sign_in)
    stores.sign_ins.end_all(OWNER)
    assert stores.sign_ins.is_ended(OWNER, sign_in)


def test_a_sign_in_is_forgotten_once_no_cookie_can_be_as_old(stores: StoreSet) -> None:
    now = now_of(stores)
    for name, days in (("old", 32), ("young", 30)):
        stores.sign_ins.end(OWNER, sign_in_of(name))
        with stores.database.write() as connection:
            seen_at = now - timedelta(days=days)
            connection.execute(update(sign_in_table).where(sign_in_table.c.id == name).values(seen_at=seen_at))
    assert not stores.sign_ins.is_ended(OWNER, sign_in_of("new"))
    with stores.database.read() as connection:
        assert {*connection.execute(select(sign_in_table.c.id)).scalars()} == {"young", "new"}


@drawn
@given(st.one_of(st.sampled_from(["", "https://id.example|한 사람", "a" * 10_000]), st.text()))
def test_any_owner_can_be_withdrawn(stores: StoreSet, owner: str) -> None:
    stores.owners.withdraw(owner)
    assert stores.owners.is_withdrawn(owner)
    assert plain_text(owner) in {retained.owner for retained in stores.owners.withdrawn()}
    assert stores.owners.readmit(owner)


def test_token_is_found_by_itself_alone(stores: StoreSet) -> None:
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


def test_all_tools_and_none_are_told_apart(stores: StoreSet) -> None:
    for tools in (None, frozenset[str](), frozenset({"recall", "web_search"})):
        made = stores.tokens.add(OWNER, "notes", new_token(), tools)
        assert made.tools == stores.tokens.of_owner(OWNER)[0].tools == tools
        stores.tokens.withdraw(OWNER, made.id)


def test_tokens_of_one_person_and_of_several_are_told_apart(stores: StoreSet) -> None:
    for is_personal in (True, False):
        token = new_token()
        made = stores.tokens.add(OWNER, "notes", token, None, is_personal=is_personal)
        found = stores.tokens.find(token)
        assert found is not None
        assert [made.is_personal, found[1].is_personal, stores.tokens.of_owner(OWNER)[0].is_personal] == [
            is_personal
        ] * 3
        stores.tokens.withdraw(OWNER, made.id)


def test_live_tokens_of_all_owners_are_counted(stores: StoreSet) -> None:
    assert stores.tokens.counts() == (0, 0)
    made = [stores.tokens.add(owner, "notes", new_token(), None) for owner in (OWNER, "mallory", "kim")]
    stores.tokens.add(OWNER, "team", new_token(), None, is_personal=False)
    stores.tokens.withdraw(OWNER, made[0].id)
    assert stores.tokens.counts() == (2, 1)


@pytest.mark.sqlite
def test_files_have_no_token(own_stores: StoreSet) -> None:
    token = new_token()
    own_stores.tokens.add(OWNER, "a program", token, None)
    own_stores.tokens.find(token)
    written = b"".join(file.read_bytes() for file in own_stores.path.parent.iterdir())
    assert b"a program" in written
    assert token.removeprefix("tf-").encode() not in written


def test_token_is_withdrawn_by_its_owner_alone_and_its_name_is_free_again(stores: StoreSet) -> None:
    token = new_token()
    made = stores.tokens.add(OWNER, "notes", token, None)
    stores.tokens.withdraw("mallory", made.id)
    stores.tokens.withdraw(OWNER, "no-such-token")
    assert stores.tokens.find(token) is not None
    assert stores.tokens.of_owner("mallory") == []
    assert stores.tokens.has_any()
    stores.tokens.withdraw(OWNER, made.id)
    assert stores.tokens.find(token) is None
    assert stores.tokens.of_owner(OWNER) == []
    assert not stores.tokens.has_any()
    stores.tokens.add(OWNER, "notes", new_token(), None)


def test_of_two_tokens_of_one_name_made_at_once_one_is_kept(stores: StoreSet) -> None:
    together = Barrier(8)

    def add(_: int) -> bool:
        together.wait()
        try:
            stores.tokens.add(OWNER, "notes", new_token(), None)
        except InputError as error:
            assert error.reason == "token_name_taken"  # noqa: PT017  # all but one
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(8))) == 1
    assert len(stores.tokens.of_owner(OWNER)) == 1
    stores.tokens.add("mallory", "notes", new_token(), None)


def test_last_use_is_known_by_the_day(stores: StoreSet) -> None:
    token = new_token()
    assert stores.tokens.add(OWNER, "notes", token, None).last_used_on is None

    def last_use() -> date | None:
        stores.tokens.find(token)
        return stores.tokens.of_owner(OWNER)[0].last_used_on

    today = stores.clock().date()
    for seconds, days in ((0, 0), (3_600, 0), (86_400, 1), (-3 * 86_400, 1)):
        stores.clock.move(seconds)
        assert last_use() == today + timedelta(days=days)


def test_an_owner_has_so_many_tokens_and_no_more(stores: StoreSet) -> None:
    for number in range(MOST_TOKENS):
        stores.tokens.add(OWNER, f"program {number}", new_token(), None)
    with pytest.raises(InputError) as caught:
        stores.tokens.add(OWNER, "one more", new_token(), None)
    assert caught.value.reason == "too_many_tokens"
    stores.tokens.withdraw(OWNER, stores.tokens.of_owner(OWNER)[0].id)
    stores.tokens.add(OWNER, "one more", new_token(), None)


def capped(
    stores: StoreSet, *, turns: int | None = None, tokens: int | None = None, clock: MovableClock | None = None
) -> OwnerUseStore:
    return OwnerUseStore(stores.database, clock=clock or stores.clock, turns_per_minute=turns, tokens_per_day=tokens)


def started(use: OwnerUseStore, tries: int, owner: str = OWNER) -> int:
    """Returns how many of these turns may begin."""
    count = 0
    for _ in range(tries):
        try:
            use.begin(owner)
            count += 1
        except TurnRateError:
            pass
    return count


def test_so_many_turns_begin_within_a_minute_and_as_many_in_the_next(stores: StoreSet) -> None:
    uncapped = capped(stores)
    assert started(uncapped, 50) == 50
    uncapped.spend(OWNER, 10**15)
    with stores.database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM owner_use").scalar() == 0
    use = capped(stores, turns=3)
    assert started(use, 5) == 3
    with pytest.raises(UserRateError) as refused:
        use.begin(OWNER)
    assert refused.value.retry_after_seconds == 60  # the clock of the test begins with a minute
    assert started(use, 1, owner="mallory") == 1
    stores.clock.move(59)
    with pytest.raises(UserRateError) as refused:
        use.begin(OWNER)
    assert refused.value.retry_after_seconds == 1
    stores.clock.move(1)
    assert started(use, 5) == 3


def test_tokens_are_counted_until_the_day_ends(stores: StoreSet) -> None:
    use = capped(stores, tokens=1_000)
    use.spend(OWNER, -5)
    use.spend(OWNER, 999)
    use.begin(OWNER)
    use.spend(OWNER, 5_000)  # of the turn that ran already
    with pytest.raises(UserTokensError) as refused:
        use.begin(OWNER)
    assert (refused.value.retry_after_seconds, refused.value.detail) == (HALF_A_DAY, "12 h")
    use.begin("mallory")
    stores.clock.move(HALF_A_DAY)
    use.begin(OWNER)
    use.spend(OWNER, 1_000)
    assert started(use, 1) == 0


def test_servers_whose_clocks_differ_share_one_count_and_none_locks_out_for_long(stores: StoreSet) -> None:
    ahead, behind = MovableClock(), MovableClock()
    ahead.move(60)
    behind.move(-60)
    first, second = (capped(stores, turns=4, tokens=50, clock=clock) for clock in (ahead, behind))
    assert started(first, 2) + started(second, 2) + started(first, 2) + started(second, 2) == 4
    for server in (first, second):
        server.spend(OWNER, 25)
    for server in (first, second):
        with pytest.raises(UserTokensError):
            server.begin(OWNER)
    ahead.move(400 * 86_400)
    first.begin("far")
    first.spend("far", 50)
    second.begin("far")


def test_servers_at_once_never_pass_the_cap(stores: StoreSet) -> None:
    cap, tries = 20, 15
    with ExitStack() as opened:
        databases = [opened.enter_context(open_location(*stores.location)).database for _ in range(4)]
        servers = [
            OwnerUseStore(database, clock=stores.clock, turns_per_minute=cap, tokens_per_day=1_000_000)
            for database in databases
        ]
        with ThreadPoolExecutor(max_workers=len(servers)) as pool:
            assert sum(pool.map(partial(started, tries=tries), servers)) == cap
            list(pool.map(lambda server: [server.spend(OWNER, 7) for _ in range(tries)], servers))
    with stores.database.read() as connection:
        spent = connection.exec_driver_sql("SELECT tokens FROM owner_use").scalar()
    assert spent == 7 * tries * len(servers)


STEPS = st.lists(st.tuples(st.sampled_from(["begin", "spend", "wait"]), st.integers(0, 200_000)), max_size=40)


@drawn
@given(owner=st.text(), steps=STEPS, turns=st.integers(1, 5), tokens=st.integers(1, 300_000))
def test_no_story_passes_a_cap(
    stores: StoreSet, owner: str, steps: list[tuple[str, int]], turns: int, tokens: int
) -> None:
    use = capped(stores, turns=turns, tokens=tokens)
    stores.clock.move(10 * 86_400)  # behind all that another story has counted
    started_in: dict[int, int] = {}
    spent_on: dict[int, int] = {}
    for step, amount in steps:
        minute, day = (int(stores.clock().timestamp()) // length for length in (60, 86_400))
        if step == "wait":
            stores.clock.move(amount)
        elif step == "spend":
            use.spend(owner, amount)
            spent_on[day] = spent_on.get(day, 0) + amount
        else:
            may_begin = started_in.get(minute, 0) < turns and spent_on.get(day, 0) < tokens
            assert started(use, 1, owner) == may_begin
            started_in[minute] = started_in.get(minute, 0) + may_begin


def test_newest_agreement_of_one_owner_and_root_counts_whatever_the_clock_says(stores: StoreSet) -> None:
    assert stores.agreements.newest(OWNER, ROOT) is None
    stores.make_session()
    stores.agreements.agree(OWNER, ROOT, digest="aa", rules='{"files": []}')
    stores.clock.move(-3_600)
    retained = stores.agreements.agree(OWNER, ROOT, digest="bb", rules='{"files": ["AGENTS.md"]}')
    assert retained == RuleAgreement("bb", '{"files": ["AGENTS.md"]}', stores.clock())
    assert stores.agreements.newest(OWNER, ROOT) == retained
    stores.agreements.agree(OWNER, ROOT, digest="aa", rules='{"files": []}')
    stores.sessions.delete("s1", OWNER)
    newest = stores.agreements.newest(OWNER, ROOT)
    assert newest is not None
    assert newest.digest == "aa"
    assert stores.agreements.newest("mallory", ROOT) is None
    assert stores.agreements.newest(OWNER, f"{ROOT}/sub") is None
