"""Holds the mutants to the code: each one can be made and is a fault in syntax, and its test files exist."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutation.fold_mutants import Mutant
from tests.mutation.mutants import MUTANTS
from tests.mutation.place import changes, mutated, places, replaced

ROOT = Path(__file__).parents[2]


def problem_of(mutant: Mutant) -> str:
    source = (ROOT / mutant.path).read_text(encoding="utf-8")
    try:
        is_equal = ast.dump(ast.parse(mutated(source, mutant.place, mutant.change))) == ast.dump(ast.parse(source))
    except (LookupError, SyntaxError) as error:
        return f"{mutant.path}, {mutant.place}: {error}"
    return f"{mutant.path}, {mutant.place}: {mutant.change} changes nothing" if is_equal else ""


def test_every_mutant_applies() -> None:
    assert [problem for mutant in MUTANTS if (problem := problem_of(mutant))] == []
    files = {name for mutant in MUTANTS for name in mutant.tests}
    assert [name for name in files if not (ROOT / name).is_file()] == []


SOURCE = '''
LIMIT, REST = 3, ("가", "b")


class Kept:
    size = 2

    def take(self, words: list[str], *, most: int = 4) -> str:
        """Says what."""
        # 주석: 줄이 바뀌어도 그대로
        if len(words) > most and not self.is_full:
            self.drop(words[0], by="age")
            self.seen[most + 1] = words
        return ", ".join(word for word in words if word) or "없음"
'''


@pytest.mark.parametrize(
    ("place", "change", "line"),
    [
        ("LIMIT", "more 1", 'LIMIT, REST = (4), ("가", "b")'),
        ("LIMIT", "drop element 3", "LIMIT, REST = 3, (('b',))"),
        ("Kept.size", "less 1", "    size = (1)"),
        ("Kept.take", "more 1", "    def take(self, words: list[str], *, most: int = (5)) -> str:"),
        ("Kept.take", "negate 1", "        if (not (len(words) > most and (not self.is_full))):"),
        ("Kept.take", "and or 1", "        if (len(words) > most or not self.is_full):"),
        ("Kept.take", "drop operand 2", "        if (len(words) > most):"),
        ("Kept.take", "compare 1", "        if (len(words) >= most) and not self.is_full:"),
        ("Kept.take", "drop statement 1", "            pass"),
        ("Kept.take", "drop keyword 1", "            (self.drop(words[0]))"),
        ("Kept.take", "Subscript 1 = words[-1]", '            self.drop((words[-1]), by="age")'),
        ("Kept.take", "left 1", "            self.seen[(most)] = words"),
        ("Kept.take", "drop filter 1", '        return ", ".join((word for word in words)) or "없음"'),
    ],
)
def test_a_fault_is_made_where_its_place_is_and_all_else_stays(place: str, change: str, line: str) -> None:
    made = mutated(SOURCE, place, change).splitlines()
    assert [one for one, other in zip(made, SOURCE.splitlines(), strict=True) if one != other] == [line]


@pytest.mark.parametrize("path", ["graph/service/turns.py", "graph/mcp/translate.py", "tests/mutation/place.py"])
def test_all_that_can_be_changed_in_a_file_is_still_a_program(path: str) -> None:
    source = (ROOT / path).read_text(encoding="utf-8")
    for place in list(places(source))[::4]:
        names = [change.name for change in changes(source, place)]
        assert len(names) == len(set(names))
        for change in list(changes(source, place))[::5]:
            ast.parse(replaced(source, change))


def test_what_is_not_there_is_no_fault() -> None:
    for place, change in (("Kept.gone", "negate 1"), ("Kept.take", "negate 9"), ("Kept.take", "Call 9 = 1")):
        with pytest.raises(LookupError):
            mutated(SOURCE, place, change)
