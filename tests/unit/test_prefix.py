from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.core.manifest import Block, Manifest
from graph.core.model_input import lost_tokens, same_blocks

SYSTEM: Block = ("system", "chat", 1, 70)
TOOLS: Block = ("tools", "hash", 1, 300)


def message(name: str, tokens: int = 40) -> Block:
    return ("message", name, 1, tokens)


def record(name: str, version: int = 1) -> Block:
    return ("record", name, version, 90)


@pytest.mark.parametrize(
    ("before", "after", "retained"),
    [
        ((), (SYSTEM, message("q1"), TOOLS), ()),
        ((SYSTEM, message("q1")), (SYSTEM, message("q1"), message("a1"), message("q2")), (0, 1)),
        ((SYSTEM, message("q1"), TOOLS), (SYSTEM, message("q1"), message("a1"), TOOLS), (0, 1, 3)),
        # Providers read the tools first.
        ((SYSTEM, message("q1"), TOOLS), (SYSTEM, message("q1"), ("tools", "other", 1, 300)), ()),
        ((SYSTEM, message("q1"), TOOLS), (SYSTEM, message("q1")), ()),
        # The system prompt grows by a heading with the first record.
        ((SYSTEM, message("q1")), (("system", "chat", 1, 80), record("r1"), message("q2")), (0,)),
        ((SYSTEM, record("r1"), message("q4")), (SYSTEM, record("r1", 2), message("q4")), (0,)),
        ((SYSTEM, message("q1")), (("system", "chat", 2, 70), message("q1")), ()),
        ((("system", "chat", 2, 70), TOOLS), (SYSTEM, TOOLS), ()),
    ],
)
def test_blocks_are_kept_until_the_first_that_differs(
    before: Manifest, after: Manifest, retained: tuple[int, ...]
) -> None:
    assert [index for index, is_shared in enumerate(same_blocks(before, after)) if is_shared] == list(retained)


@given(st.lists(st.sampled_from("abcde"), max_size=8), st.lists(st.sampled_from("abcde"), max_size=8))
def test_what_is_kept_is_a_beginning_of_both(before: list[str], after: list[str]) -> None:
    retained = same_blocks(tuple(map(message, before)), tuple(map(message, after)))
    count = sum(retained)
    assert retained == (True,) * count + (False,) * (len(after) - count)
    assert before[:count] == after[:count]
    assert before[count : count + 1] != after[count : count + 1] or count == len(after) == len(before)


VOLATILE: Block = ("context", "volatile", 1, 25)
NOTE: Block = ("note", "context", 1, 6)
FRONT: Block = ("context", "front", 1, 60)
RAW: Manifest = (SYSTEM, *(message(name) for name in ("q1", "a1", "q2")), TOOLS)


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ((), RAW, 0),
        (RAW, (*RAW[:-1], message("a2"), message("q3"), TOOLS), 0),
        # Folded in time: nothing that was sent is sent again behind the record.
        (RAW, (SYSTEM, record("r1"), message("q3"), TOOLS), 0),
        # Folded late: what had been sent behind its source is read anew.
        (RAW, (SYSTEM, record("r1"), message("q2", 33), message("a2"), TOOLS), 33),
        ((SYSTEM, record("r1"), message("q4")), (SYSTEM, record("r1", 2), message("q4"), message("a4")), 40),
        ((SYSTEM, record("r1"), message("q4")), (SYSTEM, message("q1"), message("q4"), message("a4")), 40),
        ((SYSTEM, record("r1"), record("r2"), message("q7")), (SYSTEM, record("m1"), record("r2"), message("q8")), 90),
        ((SYSTEM, message("q1"), message("q2")), (SYSTEM, message("q2"), message("q3")), 40),
        # The one message of a rolling input has grown before its end, and nothing was folded.
        ((SYSTEM, NOTE, message("q2")), (SYSTEM, message("q2"), message("a2"), NOTE, message("q3")), 0),
        ((SYSTEM, record("r1"), NOTE, message("q2")), (SYSTEM, record("r1"), message("q2"), NOTE, message("q3")), 0),
        ((SYSTEM, record("r1"), NOTE, message("q2")), (SYSTEM, record("r1"), record("r2"), NOTE, message("q2")), 46),
        # Read anew with the whole history as well.
        (RAW, (SYSTEM, record("r1"), message("q2"), ("tools", "other", 1, 300)), 0),
        (RAW, (("system", "chat", 2, 70), message("q2"), TOOLS), 0),
        ((SYSTEM, FRONT, message("q1")), (SYSTEM, ("context", "front", 2, 60), message("q1")), 0),
        ((SYSTEM, message("q1"), VOLATILE, message("q2")), (SYSTEM, message("q1"), message("q2")), 0),
        ((SYSTEM, message("q1"), VOLATILE, message("q2")), (SYSTEM, record("r1"), message("q2")), 0),
    ],
)
def test_lost_is_what_is_sent_again_behind_what_was_folded(before: Manifest, after: Manifest, lost: int) -> None:
    assert lost_tokens(before, after) == lost
