from __future__ import annotations

import pytest

from bench.quality.fact import LISTS, MOST, FactCase, rates_of, read_cases

_MENDED, _HELD_BACK = (read_cases(file) for file in LISTS.values())


@pytest.mark.parametrize("case", _MENDED, ids=lambda case: " ".join(case.said)[:60])
def test_a_small_input_names_and_holds_its_right_facts(case: FactCase) -> None:
    assert case.garbage == ()
    assert case.unnamed == ()
    assert case.false_alarms == ()
    assert case.unnoticed == ()
    assert case.misjudged == ()


def test_of_inputs_held_back_few_facts_are_garbage_or_falsely_missing() -> None:
    rates = rates_of(_HELD_BACK)
    assert rates.garbage_share <= MOST
    assert rates.false_alarm_share <= MOST
    assert rates.unnoticed == 0
