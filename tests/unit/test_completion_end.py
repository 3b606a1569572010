from __future__ import annotations

from datetime import UTC, datetime, timedelta

from graph.client import ClientUsage
from graph.service.completion_end import ResponsePlace, usage_of
from graph.store.call import CallCost

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def cost(inputs: int | None, outputs: int | None, cached: int | None = None) -> CallCost:
    return CallCost("answer", 1, 1, inputs, outputs, cached, NOW)


def test_usage_is_the_sum_of_what_was_reported() -> None:
    assert usage_of([cost(10, 2, 4), cost(20, 3)]) == ClientUsage(30, 5, 4)
    assert usage_of([cost(10, 2), cost(20, 3)]) == ClientUsage(30, 5, None)


def test_usage_is_unknown_without_a_call_and_if_one_of_them_was_not_reported() -> None:
    assert usage_of([]) is None
    assert usage_of([cost(10, 2), cost(None, 3)]) is None
    assert usage_of([cost(10, 2), cost(20, None)]) is None


def test_a_response_has_what_was_made_from_its_request_to_the_next_one() -> None:
    later = NOW + timedelta(seconds=5)
    first = ResponsePlace("s", 1, 1, 1, b"", NOW, later)
    second = ResponsePlace("s", 1, 1, 2, b"", later)
    for made_at, owners in [(NOW, (True, False)), (later, (False, True)), (later + timedelta(days=1), (False, True))]:
        assert (first.has(made_at), second.has(made_at)) == owners


def test_the_first_response_has_what_a_clock_that_was_set_back_dates_before_it() -> None:
    assert ResponsePlace("s", 1, 1, 1, b"", NOW).has(NOW - timedelta(days=1))
