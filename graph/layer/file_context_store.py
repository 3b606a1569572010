"""Keeps the values of one scope and kind in a file of their own, for every process that serves the owner."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection
from pathlib import Path
from types import MappingProxyType

from graph.atomic_file import locked, put_aside, read_whole, write_whole
from graph.core.text import plain_text
from graph.layer.scope import ContextScope, ContextSnapshot, PersistenceKind

_log = logging.getLogger(__name__)


class FileContextStore:
    """A persistent `ContextStore`: one JSON object of texts, UTF-8, replaced whole with each change.

    Opening it creates its folder and deletes what a killed writer left. Each change reads the file anew under the
    file's lock, so that no process loses what another one put. A file that isn't such an object is renamed to
    `<name>.damaged-<hash of its bytes>`, and the store begins anew.

    Args:
        path: The file; it is created by the first change.
        scope: What the values belong to.
        most_entries: How many keys are kept, the last ones put; None for all.

    Raises:
        FileAccessError: The file can't be read, written or locked; also raised by every method.
        DiskFullError: There is no room left; also raised by every method that changes something.
    """

    persistence_kind = PersistenceKind.PERSISTENT

    def __init__(self, path: Path, scope: ContextScope, *, most_entries: int | None = None) -> None:
        self.scope = scope
        self._path = path
        self._most_entries = most_entries
        with locked(path):
            self._read_or_begin_anew()

    def snapshot(self) -> ContextSnapshot:
        """Returns the values as they are on the disk now, read-only."""
        entries = self._read()
        if entries is None:
            with locked(self._path):
                entries = self._read_or_begin_anew()
        return MappingProxyType(entries)

    def put(self, key: str, value: str) -> None:
        """Sets one value; the key becomes the last one."""
        self.put_all({key: value})

    def put_all(self, entries: ContextSnapshot) -> None:
        """Sets several values at once; their keys become the last ones."""
        plain = {plain_text(key): plain_text(value) for key, value in entries.items()}
        self._change(lambda kept: {**_without(kept, plain), **plain})

    def remove(self, keys: Collection[str]) -> None:
        """Removes the values of these keys, those that there are."""
        self._change(lambda kept: _without(kept, keys))

    def clear(self) -> None:
        """Removes all values."""
        self._change(lambda _: {})

    def _change(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Applies a change to what the file holds; writes nothing if nothing is changed."""
        with locked(self._path):
            before = self._read_or_begin_anew()
            after = change(before)
            if self._most_entries is not None:
                after = dict(list(after.items())[-self._most_entries :])
            if list(after.items()) != list(before.items()):
                write_whole(self._path, json.dumps(after, ensure_ascii=False, indent=1).encode())

    def _read(self) -> dict[str, str] | None:
        """Returns the values, none if there is no file; None if it is damaged."""
        data = read_whole(self._path)
        return {} if data is None else _parse(data)

    def _read_or_begin_anew(self) -> dict[str, str]:
        """Puts a damaged file aside; called under the lock, so that no writer's new file is taken for it."""
        data = read_whole(self._path)
        if data is None:
            return {}
        entries = _parse(data)
        if entries is None:
            name = f"{self._path.name}.damaged-{hashlib.sha256(data).hexdigest()[:12]}"
            put_aside(self._path, name)
            _log.warning("%s is damaged; it is kept as %s, and the context begins anew", self._path, name)
            return {}
        return entries


def _without(entries: ContextSnapshot, keys: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in entries.items() if key not in keys}


def _parse(data: bytes) -> dict[str, str] | None:
    """Returns the values that a file's bytes say, None if they aren't a JSON object of texts."""
    try:
        found = json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return None
    # An escaped lone surrogate is valid JSON, and no text.
    return {plain_text(key): plain_text(value) for key, value in found.items()}
