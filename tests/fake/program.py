"""What a program sends beside its user's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graph.value.client import ClientOptions
from graph.value.view import TurnOptions

PROGRAM = ClientOptions("editor")


def tool(name: str, **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool in OpenAI's shape."""
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": f"runs {name}", "parameters": parameters}}


def asked_by(**changes: Any) -> TurnOptions:  # noqa: ANN401  # fields of `ClientOptions`
    """The options of a turn that the program asks for."""
    return TurnOptions(client=replace(PROGRAM, **changes))
