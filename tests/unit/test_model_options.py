from __future__ import annotations

from typing import Any

import pytest

from graph.core.model_options import knows_thinking, options_of, read_options, with_thinking
from graph.value.view import Thinking


def test_a_models_own_options_stand_over_those_of_all() -> None:
    options = read_options(
        '{"*": {"top_k": 5, "chat_template_kwargs": {"a": 1}}, "m": {"top_k": 9, "chat_template_kwargs": {"b": 2}}}'
    )
    assert options_of(options, "m") == {"top_k": 9, "chat_template_kwargs": {"a": 1, "b": 2}}
    assert options_of(options, "other") == {"top_k": 5, "chat_template_kwargs": {"a": 1}}
    assert options_of(None, "m") == {}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"m": 5}', '{"m": {"top_p": NaN}}', '{"*": {"messages": []}}', "[" * 9_999]
)
def test_bad_options_are_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"takes \{.model name"):
        read_options(text)


@pytest.mark.parametrize(
    ("options", "thinking", "sent"),
    [
        ({"reasoning_effort": "medium"}, "", {"reasoning_effort": "medium"}),
        ({"reasoning_effort": "medium"}, "high", {"reasoning_effort": "high"}),
        ({"reasoning_effort": "medium"}, "off", {"reasoning_effort": "none"}),
        (
            {"chat_template_kwargs": {"enable_thinking": True, "a": 1}},
            "off",
            {"chat_template_kwargs": {"enable_thinking": False, "a": 1}},
        ),
        (
            {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 5},
            "low",
            {"chat_template_kwargs": {"enable_thinking": True}, "top_k": 5},
        ),
        ({"reasoning": {"max_tokens": 9}}, "low", {"reasoning": {"effort": "low"}}),
        ({"reasoning": {"max_tokens": 9}}, "off", {"reasoning": {"enabled": False}}),
        ({}, "low", {"reasoning_effort": "low"}),
    ],
)
def test_a_choice_goes_out_by_the_names_of_the_options(
    options: dict[str, Any], thinking: Thinking, sent: dict[str, Any]
) -> None:
    assert with_thinking(options, thinking, is_openrouter=False) == sent
    assert knows_thinking(options) == bool(options)


def test_openrouter_has_its_own_name() -> None:
    assert with_thinking({"top_k": 5}, "off", is_openrouter=True) == {"top_k": 5, "reasoning": {"enabled": False}}
    assert not knows_thinking({"chat_template_kwargs": {"a": 1}, "top_k": 5})
