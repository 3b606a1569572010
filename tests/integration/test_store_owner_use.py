from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.error import TurnRateError, UserRateError, UserTokensError
from graph.store.owner_use import OwnerUseStore
from tests.fake.store import OWNER, MovableClock, StoreSet, open_place

pytestmark = pytest.mark.both_engines

Opened = Callable[..., OwnerUseStore]


@pytest.fixture
def caps(stores: StoreSet) -> Opened:
    def opened(
        *, turns: int | None = None, tokens: int | None = None, clock: MovableClock | None = None
    ) -> OwnerUseStore:
        return OwnerUseStore(
            stores.database, clock=clock or stores.clock, turns_per_minute=turns, tokens_per_day=tokens
        )

    return opened


def begun(use: OwnerUseStore, tries: int, owner: str = OWNER) -> int:
    """Returns how many of these turns may begin."""
    count = 0
    for _ in range(tries):
        try:
            use.begin(owner)
            count += 1
        except TurnRateError:
            pass
    return count


def test_without_a_cap_nothing_is_counted(caps: Opened, stores: StoreSet) -> None:
    use = caps()
    assert begun(use, 500) == 500
    use.spend(OWNER, 10**15)
    with stores.database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM owner_use").scalar() == 0


def test_so_many_turns_begin_within_a_minute_and_as_many_in_the_next(caps: Opened, stores: StoreSet) -> None:
    use = caps(turns=3)
    assert begun(use, 5) == 3
    with pytest.raises(UserRateError) as refused:
        use.begin(OWNER)
    assert refused.value.retry_after_seconds == 60  # the clock of the test begins with a minute
    assert begun(use, 1, owner="mallory") == 1
    stores.clock.move(59)
    with pytest.raises(UserRateError) as refused:
        use.begin(OWNER)
    assert refused.value.retry_after_seconds == 1
    stores.clock.move(1)
    assert begun(use, 5) == 3


def test_tokens_are_counted_until_the_day_ends(caps: Opened, stores: StoreSet) -> None:
    use = caps(tokens=1_000)
    use.spend(OWNER, 999)
    use.begin(OWNER)
    use.spend(OWNER, 5_000)  # of the turn that ran already
    with pytest.raises(UserTokensError) as refused:
        use.begin(OWNER)
    assert refused.value.retry_after_seconds == 12 * 3_600
    assert refused.value.detail == "12 h"
    use.begin("mallory")
    stores.clock.move(12 * 3_600)
    use.begin(OWNER)
    use.spend(OWNER, 1_000)
    assert begun(use, 1) == 0


@pytest.mark.parametrize("tokens", [0, -5])
def test_a_call_that_cost_nothing_counts_nothing(caps: Opened, tokens: int) -> None:
    use = caps(tokens=1)
    use.spend(OWNER, tokens)
    assert begun(use, 3) == 3


def test_both_caps_hold_and_a_turn_that_one_refuses_is_no_turn_of_the_other(caps: Opened, stores: StoreSet) -> None:
    use = caps(turns=2, tokens=10)
    use.spend(OWNER, 10)
    assert begun(use, 4) == 0
    stores.clock.move(12 * 3_600)
    assert begun(use, 4) == 2
    use.spend(OWNER, 10)
    with pytest.raises(UserTokensError):
        use.begin(OWNER)


def test_servers_whose_clocks_differ_share_one_count(caps: Opened) -> None:
    ahead, behind = MovableClock(), MovableClock()
    ahead.move(60)
    behind.move(-60)
    first, second = caps(turns=4, tokens=50, clock=ahead), caps(turns=4, tokens=50, clock=behind)
    assert begun(first, 2) + begun(second, 2) + begun(first, 2) + begun(second, 2) == 4
    first.spend(OWNER, 25)
    second.spend(OWNER, 25)
    with pytest.raises(UserTokensError):
        first.begin(OWNER)
    with pytest.raises(UserTokensError):
        second.begin(OWNER)


def test_a_clock_that_was_far_ahead_locks_nobody_out(caps: Opened, stores: StoreSet) -> None:
    use = caps(turns=1, tokens=1)
    stores.clock.move(400 * 86_400)
    use.begin(OWNER)
    use.spend(OWNER, 1)
    stores.clock.move(-400 * 86_400)
    use.begin(OWNER)


def test_servers_at_once_never_pass_the_cap(stores: StoreSet) -> None:
    cap, tries = 20, 15
    with ExitStack() as opened:
        databases = [opened.enter_context(open_place(*stores.place)).database for _ in range(4)]
        servers = [
            OwnerUseStore(database, clock=stores.clock, turns_per_minute=cap, tokens_per_day=1_000_000)
            for database in databases
        ]
        with ThreadPoolExecutor(max_workers=len(servers)) as pool:
            counts = list(pool.map(partial(begun, tries=tries), servers))
            assert sum(counts) == cap
            list(pool.map(lambda server: [server.spend(OWNER, 7) for _ in range(tries)], servers))
    with stores.database.read() as connection:
        spent = connection.exec_driver_sql("SELECT tokens FROM owner_use").scalar()
    assert spent == 7 * tries * len(servers)


STEPS = st.lists(st.tuples(st.sampled_from(["begin", "spend", "wait"]), st.integers(0, 200_000)), max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(owner=st.text(), steps=STEPS, turns=st.integers(1, 5), tokens=st.integers(1, 300_000))
def test_no_story_passes_a_cap(
    stores: StoreSet, owner: str, steps: list[tuple[str, int]], turns: int, tokens: int
) -> None:
    use = OwnerUseStore(stores.database, clock=stores.clock, turns_per_minute=turns, tokens_per_day=tokens)
    stores.clock.move(10 * 86_400)  # behind all that another story has counted
    begun_in: dict[int, int] = {}
    spent_on: dict[int, int] = {}
    for step, amount in steps:
        minute, day = (int(stores.clock().timestamp()) // length for length in (60, 86_400))
        if step == "wait":
            stores.clock.move(amount)
        elif step == "spend":
            use.spend(owner, amount)
            spent_on[day] = spent_on.get(day, 0) + amount
        else:
            may_begin = begun_in.get(minute, 0) < turns and spent_on.get(day, 0) < tokens
            assert begun(use, 1, owner) == may_begin
            begun_in[minute] = begun_in.get(minute, 0) + may_begin
