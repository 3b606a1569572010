from __future__ import annotations

from graph.client import ClientUsage
from graph.service.completion_end import usage_of
from graph.store.call import CallCost


def cost(inputs: int | None, outputs: int | None, cached: int | None = None) -> CallCost:
    return CallCost("answer", 1, 1, inputs, outputs, cached, 1)


def test_usage_is_the_sum_of_what_was_reported() -> None:
    assert usage_of([cost(10, 2, 4), cost(20, 3)]) == ClientUsage(30, 5, 4)
    assert usage_of([cost(10, 2), cost(20, 3)]) == ClientUsage(30, 5, None)


def test_usage_is_unknown_without_a_call_and_if_one_of_them_was_not_reported() -> None:
    assert usage_of([]) is None
    assert usage_of([cost(10, 2), cost(None, 3)]) is None
    assert usage_of([cost(10, 2), cost(20, None)]) is None
