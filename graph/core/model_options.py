"""What the settings add to the requests of a model, and how a session's choice of thinking is put there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from graph.value.view import Thinking

ModelOptions = Mapping[str, Mapping[str, Any]]

ALL_MODELS: Final = "*"
_SHAPE: Final = 'takes {"model name, or * for all": {"reasoning_effort": "low"}}'
# What makes a request this chat's.
_OWN: Final = frozenset({"messages", "model", "stream", "stream_options", "tools", "tool_choice", "n"})
_TEMPLATE, _SWITCH = "chat_template_kwargs", "enable_thinking"  # vLLM, SGLang, llama.cpp
_EFFORT: Final = "reasoning_effort"  # OpenAI, Ollama
_REASONING: Final = "reasoning"  # OpenRouter


def read_options(text: str) -> ModelOptions:
    """Parses a JSON object of objects: the options by the model's name, "*" for all models.

    Raises:
        ValueError: Malformed; the message states the expected form and the defect.
    """
    try:
        read = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        _refuse("this is no JSON")
    if not isinstance(read, dict) or not all(isinstance(options, dict) for options in read.values()):
        _refuse("the whole is an object, and so are the options of each model")
    if own := sorted(_OWN.intersection(name for options in read.values() for name in options)):
        _refuse(f"{own[0]} can't be an option")
    return dict(read)


def options_of(options: ModelOptions | None, name: str) -> dict[str, Any]:
    """Returns a model's options: those of all models, and its own over them."""
    return _merged((options or {}).get(ALL_MODELS, {}), (options or {}).get(name, {}))


def knows_thinking(options: Mapping[str, Any]) -> bool:
    """Returns True if a model's options say how much it thinks."""
    return _EFFORT in options or _REASONING in options or _SWITCH in _template_of(options)


def with_thinking(options: Mapping[str, Any], thinking: Thinking, *, is_openrouter: bool) -> dict[str, Any]:
    """Returns a model's options with a session's choice, by the names that the options have, or the endpoint's."""
    if not thinking:
        return dict(options)
    is_on = thinking != "off"
    chosen: dict[str, Any] = {}
    if _SWITCH in _template_of(options):
        chosen[_TEMPLATE] = {_SWITCH: is_on}
    if _REASONING in options or (is_openrouter and not knows_thinking(options)):
        chosen[_REASONING] = {"effort": thinking} if is_on else {"enabled": False}
    elif _EFFORT in options or not knows_thinking(options):
        chosen[_EFFORT] = thinking if is_on else "none"
    return _merged({name: value for name, value in options.items() if name != _REASONING}, chosen)


def _template_of(options: Mapping[str, Any]) -> Mapping[str, Any]:
    template = options.get(_TEMPLATE)
    return template if isinstance(template, dict) else {}


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        name: {**value, **over[name]}
        for name, value in under.items()
        if isinstance(value, dict) and isinstance(over.get(name), dict)
    }
    return {**under, **over, **both}


def _refuse(defect: str) -> NoReturn:
    msg = f"{_SHAPE}; {defect}"
    raise ValueError(msg)
