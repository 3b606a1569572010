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
def test_folds_have_saved_more_than_they_cost_from_turn_12_on(language: Language, shares: tuple[float, ...]) -> None:
    played = play(language, shares, turns=TURNS)
    # The English chat is so full of facts that they, and not the rate, say how much is asked for.
    assert played.positive_from <= (9 if language == "ko" else 13)
    assert played.calls <= 1.1 * len(played.targets)
    assert sum(played.achieved) / sum(played.targets) <= (0.72 if language == "ko" else 1.05)


@pytest.mark.parametrize("language", ["ko", "en"])
def test_folds_of_the_longest_drafts_that_are_taken_save_a_block_later(language: Language) -> None:
    played = play(language, (1.6,), turns=TURNS)
    assert played.positive_from <= (9 if language == "ko" else 14)
    assert played.calls <= 1.1 * len(played.targets)
    assert sum(played.achieved) / sum(played.targets) <= (0.72 if language == "ko" else 1.05)


@pytest.mark.parametrize(
    ("language", "turns", "turn"), [("ko", 48, 38), pytest.param("en", 93, 85, marks=pytest.mark.slow)]
)
def test_beside_a_cache_at_a_tenth_of_the_price_folds_pay_later(language: Language, turns: int, turn: int) -> None:
    # Written at 4 x, a summary of 0.3 of its source costs what leaving out the rest saves in 17 turns. At turn 36 the
    # mean block has stood for 18, so that hardly anything would be left for reading it.
    assert play(language, is_cached=True, turns=turns).positive_from <= turn
