"""A bounded map that retains the newest values, in memory only."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)
Value = TypeVar("Value")


class Newest(Generic[Name, Value]):
    """A thread-safe map that drops the oldest value beyond `limit`."""

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._limit = limit
        self._values: dict[Name, Value] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: Name) -> bool:
        return name in self._values

    def get(self, name: Name) -> Value | None:
        return self._values.get(name)

    def put(self, name: Name, value: Value) -> None:
        with self._lock:
            self._values.pop(name, None)
            self._values[name] = value
            if len(self._values) > self._limit:
                del self._values[next(iter(self._values))]

    def drop(self, name: Name) -> None:
        with self._lock:
            self._values.pop(name, None)
