"""Decides when a block of three turns is folded, and to what length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from graph.error import InputError

BLOCK_TURNS: Final = 3
MIN_RATE: Final = 0.1
MAX_RATE: Final = 0.5


@dataclass(frozen=True)
class Block:
    """Turns `first_turn` to `last_turn`, folded together."""

    first_turn: int
    last_turn: int


def should_summarize(turn_count: int) -> bool:
    """Whether a block falls due when this turn begins: exactly at 4, 7, 10, 13 and so on."""
    return turn_count > BLOCK_TURNS and turn_count % BLOCK_TURNS == 1


def due_blocks(complete_turns: int, covered_turn: int) -> tuple[Block, ...]:
    """Returns the blocks that are complete and not covered, oldest first.

    If another strategy's record ends inside a block, the first block is shorter.

    Args:
        complete_turns: How many turns of the session have their answer.
        covered_turn: The last turn that an active record covers, 0 if none does.
    """
    blocks = []
    first = covered_turn + 1
    for turn in range(first, complete_turns + 1):
        if should_summarize(turn + 1):
            blocks.append(Block(first, turn))
            first = turn + 1
    return tuple(blocks)


def next_block(complete_turns: int, covered_turn: int) -> Block:
    """Returns the block that is due first: one of `due_blocks`, or else the one that more turns will complete."""
    due = due_blocks(complete_turns, covered_turn)
    return due[0] if due else Block(covered_turn + 1, complete_turns + BLOCK_TURNS - complete_turns % BLOCK_TURNS)


def round_rate(rate: float) -> float:
    """Rounds a compression rate to two decimals.

    Raises:
        InputError: The rate is outside 0.1–0.5 (or not a number).
    """
    rounded = round(rate, 2)
    if not MIN_RATE <= rounded <= MAX_RATE:
        raise InputError("bad_rate", f"{MIN_RATE}–{MAX_RATE}")
    return rounded


def target_chars(original_chars: int, compression_rate: float) -> int:
    """Returns the target length: `int(original_chars * compression_rate)` (seed 002)."""
    return int(original_chars * compression_rate)
