from __future__ import annotations

import random

import pytest

from prompt.system.framing import Language
from tests.fake.saving_chat import SHARES, play

TURNS = 40
DICE = random.Random(38)  # noqa: S311  # the same drafts each time
DRAWN = [[round(DICE.uniform(1.04, 1.6), 2) for _ in range(TURNS // 3)] for _ in range(3)]
# Of one length each, and drawn: those of `SHARES` have them all.
SLOW = [(1.04,), (1.3,), *DRAWN]
DRAFTS = [SHARES, *(pytest.param(shares, marks=pytest.mark.slow) for shares in SLOW)]


@pytest.mark.parametrize("shares", DRAFTS, ids=lambda shares: f"{shares[0]}-{len(shares)}")
@pytest.mark.parametrize("language", ["ko", "en"])
def test_folds_have_saved_more_than_they_cost_from_turn_13_on(language: Language, shares: tuple[float, ...]) -> None:
    played = play(language, shares, turns=TURNS)
    # A date in each label costs an English fold a turn.
    assert played.positive_from <= (13 if language == "ko" else 14)
    assert played.calls <= 1.1 * len(played.targets)
    assert 0.8 <= sum(played.achieved[:5]) / sum(played.targets[:5]) <= 1.2
    assert 0.8 <= sum(played.achieved) / sum(played.targets) <= 1.2


@pytest.mark.parametrize("language", ["ko", "en"])
def test_folds_of_the_longest_drafts_that_are_taken_save_a_block_later(language: Language) -> None:
    played = play(language, (1.6,), turns=TURNS)
    assert played.positive_from <= 14
    assert played.calls <= 1.1 * len(played.targets)
    assert 0.8 <= sum(played.achieved) / sum(played.targets) <= 1.2


@pytest.mark.parametrize(
    ("language", "turns", "turn"), [("ko", 72, 65), pytest.param("en", 93, 89, marks=pytest.mark.slow)]
)
def test_beside_a_cache_at_a_tenth_of_the_price_folds_pay_later(language: Language, turns: int, turn: int) -> None:
    # Written at 4 x, a summary of 0.3 of its source costs what leaving out the rest saves in 17 turns. At turn 36 the
    # mean block has stood for 18, so that hardly anything would be left for reading it.
    assert play(language, is_cached=True, turns=turns).positive_from <= turn
