"""Holds the mutants to the code: each one's text is in its file once, and its test files exist."""

from __future__ import annotations

from pathlib import Path

from tests.mutation.mutants import MUTANTS

ROOT = Path(__file__).parents[2]


def test_every_mutant_applies() -> None:
    counts = {(mutant.path, mutant.line): (ROOT / mutant.path).read_text().count(mutant.line) for mutant in MUTANTS}
    assert [mutant for mutant, count in counts.items() if count != 1] == []
    files = {name for mutant in MUTANTS for name in mutant.tests}
    assert [name for name in files if not (ROOT / name).is_file()] == []
