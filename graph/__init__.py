"""The engine: turns, folds and the model's input. Public names are imported on first use, to keep start-up fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graph.core.turn import extract_current_turn, extract_last_n_turns
    from graph.fold.spec import should_summarize
    from graph.model.summariser import generate_summary
    from graph.node.builder import build_graph
    from graph.node.state import ChatState
    from graph.service import ChatService, open_service

__all__ = [
    "ChatService",
    "ChatState",
    "build_graph",
    "extract_current_turn",
    "extract_last_n_turns",
    "generate_summary",
    "open_service",
    "should_summarize",
]

_HOMES = {
    "ChatService": "graph.service",
    "ChatState": "graph.node.state",
    "build_graph": "graph.node.builder",
    "extract_current_turn": "graph.core.turn",
    "extract_last_n_turns": "graph.core.turn",
    "generate_summary": "graph.model.summariser",
    "open_service": "graph.service",
    "should_summarize": "graph.fold.spec",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attributes are of any type
    """Imports a public name from its module (PEP 562)."""
    if name not in _HOMES:
        msg = f"module 'graph' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_HOMES[name]), name)
