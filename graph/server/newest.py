"""Remembers a value for each of the newest names, in memory only."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)
Value = TypeVar("Value")


class Newest(Generic[Name, Value]):
    """Values by name; only those that were put last are kept; thread-safe.

    Args:
        limit: How many are kept.
    """

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._limit = limit
        self._values: dict[Name, Value] = {}

    def __len__(self) -> int:
        """How many are kept now."""
        return len(self._values)

    def __contains__(self, name: Name) -> bool:
        """Whether there is a value of this name."""
        return name in self._values

    def get(self, name: Name) -> Value | None:
        """Returns the value of this name, None if there is none."""
        return self._values.get(name)

    def put(self, name: Name, value: Value) -> None:
        """Keeps a value in place of the one before, and drops the oldest beyond the limit."""
        with self._lock:
            self._values.pop(name, None)
            self._values[name] = value
            if len(self._values) > self._limit:
                del self._values[next(iter(self._values))]

    def drop(self, name: Name) -> None:
        """Drops the value of this name, if there is one."""
        with self._lock:
            self._values.pop(name, None)
