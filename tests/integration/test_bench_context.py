"""The small form of `make bench-context`: 200 turns with answers of 300 characters."""

from __future__ import annotations

import pytest

from bench.context.contenders import full_history, trimmed
from bench.context.figures import check, run_ours, run_peer
from bench.context.recall import recalled_shares
from bench.context.script import build_script

TURNS = (50, 200)
ANSWER_CHARS = 300
BUDGET_TOKENS = 8_000


@pytest.mark.slow
def test_the_default_strategy_meets_its_requirements_over_two_hundred_turns() -> None:
    script = build_script(max(TURNS), ANSWER_CHARS)
    runs = [
        run_ours("interval", script, ANSWER_CHARS, recalled_shares(script, TURNS)),
        run_peer("full history", lambda _: full_history, script, ANSWER_CHARS),
        run_peer("trim_messages", lambda _: trimmed(BUDGET_TOKENS), script, ANSWER_CHARS),
    ]
    requirements = list(check(runs))
    assert len(requirements) == 9
    assert [words for is_met, words in requirements if not is_met] == []
