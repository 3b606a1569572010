from __future__ import annotations

from typing import get_args

import pytest

from component.words.text import LANGUAGES, Language
from component.words.wording import words_of
from graph.layer.rule_file import FrontMatterProblem
from graph.layer.rule_set import RuleLimit
from graph.value.project_view import PrimedKind, RuleKind


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_and_problem_has_its_words(language: Language) -> None:
    labels = words_of(language).project
    assert set(get_args(FrontMatterProblem)) == set(labels.rule_problems)
    assert set(get_args(RuleKind)) == set(labels.rule_kinds)
    assert set(get_args(RuleLimit)) == set(labels.rule_limits)
    assert {*get_args(PrimedKind), "user", "assistant"} == set(labels.primed_kinds)
