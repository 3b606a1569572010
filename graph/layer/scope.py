"""The words of seed 001: what a context belongs to, how long it holds, and the store of one such pair."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

ContextSnapshot = Mapping[str, str]


class ContextScope(StrEnum):
    """What a context belongs to.

    Attributes:
        APP: One owner's work in one project root, over all of its sessions.
        EXECUTION_TREE: One turn.
        LLM_TASK: One model call; composed of the others when it is made, never stored.
        LAYER: The parts of the product that a model can use: its tools.
    """

    APP = "app"
    EXECUTION_TREE = "execution_tree"
    LLM_TASK = "llm_task"
    LAYER = "layer"


class PersistenceKind(StrEnum):
    """How long a value holds: until its condition changes, or until the next request."""

    PERSISTENT = "persistent"
    VOLATILE = "volatile"


class ContextStore(Protocol):
    """The values of one scope and kind, by key, in the order in which they were put. Safe to use from any thread."""

    @property
    def scope(self) -> ContextScope:
        """What the values belong to."""
        ...

    @property
    def persistence_kind(self) -> PersistenceKind:
        """How long they hold."""
        ...

    def snapshot(self) -> ContextSnapshot:
        """Returns the values as they are now; later changes don't reach what was returned."""
        ...

    def put(self, key: str, value: str) -> None:
        """Sets one value."""
        ...

    def put_all(self, entries: ContextSnapshot) -> None:
        """Sets several values at once: a snapshot has all of them or none."""
        ...

    def clear(self) -> None:
        """Removes all values."""
        ...
