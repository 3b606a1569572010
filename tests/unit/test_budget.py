from __future__ import annotations

from collections.abc import Callable

import pytest

from api.body import STRANGERS, Budget, Share
from api.problem import ProblemError


def refusal(call: Callable[[], None]) -> tuple[int, str, int | None]:
    with pytest.raises(ProblemError) as refused:
        call()
    problem = refused.value.problem
    return problem.status, problem.code, problem.retry_after_seconds


OVER = (503, "server_full", 5)


def test_no_owner_holds_more_than_half_and_all_together_no_more_than_all() -> None:
    budget = Budget(160)
    kim, lee = budget.share("kim"), budget.share("lee")
    kim.hold(80)
    assert refusal(lambda: kim.hold(81)) == OVER
    assert refusal(lambda: budget.share("kim").hold(1)) == OVER
    lee.hold(75)
    strangers = budget.share()
    strangers.hold(5)
    assert (budget.held, kim.held, lee.held, strangers.held) == (160, 80, 75, 5)
    assert refusal(lambda: budget.share("park").hold(1)) == OVER
    kim.hold(79)
    budget.share("park").hold(1)
    assert budget.held == 160


def test_strangers_hold_a_sixteenth_together_until_they_are_known() -> None:
    budget = Budget(160)
    shares = [budget.share() for _ in range(3)]
    shares[0].hold(6)
    shares[1].hold(4)
    assert refusal(lambda: shares[2].hold(1)) == OVER
    shares[0].give_to("kim")
    assert (shares[0].is_of_strangers, shares[1].is_of_strangers, budget.held) == (False, True, 10)
    shares[2].hold(6)
    shares[0].hold(80)
    assert refusal(lambda: shares[1].give_to("kim")) == OVER
    assert shares[1].is_of_strangers


@pytest.mark.parametrize("owner", [STRANGERS, "kim"])
def test_what_was_held_is_given_back_however_it_ends(owner: str) -> None:
    budget = Budget(160)

    def fail(share: Share) -> None:
        with share:
            share.hold(10)
            raise ZeroDivisionError

    for _ in range(100):
        with pytest.raises(ZeroDivisionError):
            fail(budget.share(owner))
    with budget.share(owner) as share:
        share.hold(10)
        assert refusal(lambda: share.hold(200)) == OVER
        assert budget.held == 10
    assert budget.held == 0
