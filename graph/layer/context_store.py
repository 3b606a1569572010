"""Keeps the values of one scope and kind in memory."""

from __future__ import annotations

import threading
from types import MappingProxyType

from graph.core.text import plain_text
from graph.layer.scope import ContextScope, ContextSnapshot, PersistenceKind


class MemoryContextStore:
    """A `ContextStore` that ends with its process.

    Args:
        scope: What the values belong to.
        persistence_kind: How long they hold.
    """

    def __init__(self, scope: ContextScope, persistence_kind: PersistenceKind) -> None:
        self.scope = scope
        self.persistence_kind = persistence_kind
        self._lock = threading.Lock()
        self._entries: dict[str, str] = {}

    def snapshot(self) -> ContextSnapshot:
        """Returns the values as they are now, read-only."""
        with self._lock:
            return MappingProxyType(self._entries.copy())

    def put(self, key: str, value: str) -> None:
        """Sets one value."""
        self.put_all({key: value})

    def put_all(self, entries: ContextSnapshot) -> None:
        """Sets several values at once."""
        plain = {key: plain_text(value) for key, value in entries.items()}
        with self._lock:
            self._entries.update(plain)

    def clear(self) -> None:
        """Removes all values."""
        with self._lock:
            self._entries.clear()
