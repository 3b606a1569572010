from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.fake.rounds import Rounds
from tests.integration.test_property import repeatable

Step = tuple[Any, ...]
CALLS = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 3), CALLS),
    st.tuples(st.just("answer"), CALLS, CALLS),
    st.tuples(st.just("answer"), CALLS, CALLS),
    st.tuples(st.just("answer_badly"), st.sampled_from(["none", "one too few", "one too many"])),
    st.just(("ask_on_page",)),
    st.just(("die_while_answering",)),
    st.just(("kill",)),
    st.just(("reopen",)),
    st.just(("lose_checkpoints",)),
    st.just(("stop",)),
)
EVERYTHING: list[Step] = [
    ("ask", 2, 1),
    ("kill",),
    ("answer_badly", "one too few"),
    ("answer", 1, 2),
    ("lose_checkpoints",),
    ("answer", 1, 0),
    ("die_while_answering",),
    ("ask", 1, 0),
    ("reopen",),
    ("stop",),
    ("answer_badly", "one too many"),
    ("ask", 1, 1),
    ("ask_on_page",),
]


@repeatable(8)
@given(st.lists(STEPS, min_size=3, max_size=9))
@example(EVERYTHING)
def test_rounds_of_a_program_lose_and_repeat_nothing_whatever_happens_between_them(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rounds = Rounds(Path(folder))
        try:
            rounds.ask_on_page()
            for name, *arguments in steps:
                getattr(rounds, name)(*arguments)
                rounds.check()
            rounds.ask(0, 1)
            rounds.check()
        finally:
            rounds.close()
