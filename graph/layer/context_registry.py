"""Finds the context of each owner and project root, and keeps each one's files in a folder of its own."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from graph.core.text import plain_text
from graph.file.atomic_file import locked, put_aside, read_whole, write_whole
from graph.layer.app_context import (
    CURRENT_FILE_RULES,
    EXECUTION_ID,
    PROJECT_ROOT,
    USER_MESSAGE,
    VOLATILE_KEYS,
    AppContextService,
    ContextScope,
    ContextSnapshot,
    ContextStore,
    PersistenceKind,
    RequestPolicy,
)
from prompt.system.framing import Language


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


# How many turns have a line in the cache.
MOST_SUMMARIES: Final = 20
_PART_CHARS: Final = 120


class ExecutionContext:
    """What one turn has of its own; later requests don't change it. Safe to use from any thread.

    Args:
        execution_id: The turn's id.
        user_message: The user's words.
        request_context: The volatile values of its request, from `update_volatile_from_request`.
        summaries: EXECUTION_TREE x PERSISTENT, where the turn's line is kept: `execution-summary-cache.json`.
        file_rules: The rules whose patterns match the current file.

    Attributes:
        volatile_store: EXECUTION_TREE x VOLATILE.
        persistent_store: `summaries`.
    """

    def __init__(
        self,
        execution_id: str,
        user_message: str,
        request_context: ContextSnapshot,
        summaries: ContextStore,
        *,
        file_rules: str = "",
    ) -> None:
        self.execution_id = execution_id
        self.persistent_store = summaries
        self.volatile_store = MemoryContextStore(ContextScope.EXECUTION_TREE, PersistenceKind.VOLATILE)
        self.volatile_store.put_all(
            {
                EXECUTION_ID: execution_id,
                USER_MESSAGE: user_message,
                **{key: request_context[key] for key in VOLATILE_KEYS if key in request_context},
                CURRENT_FILE_RULES: file_rules,
            }
        )

    def request_context(self) -> ContextSnapshot:
        """Returns the volatile values of the turn's request, in the order of their keys."""
        return _chosen(self.volatile_store.snapshot(), VOLATILE_KEYS)

    def own_context(self) -> ContextSnapshot:
        """Returns the turn's id and the user's message."""
        return _chosen(self.volatile_store.snapshot(), (EXECUTION_ID, USER_MESSAGE))

    def finish(self, outcome: str, ended_at: datetime) -> None:
        """Keeps one short line: the day, what was asked, what came of it; each of the last two has 120 characters.

        Args:
            outcome: The answer, or why there is none.
            ended_at: When the turn ended, with its zone; the line has the day in UTC.

        Raises:
            FileAccessError: The cache's file can't be read or written.
            DiskFullError: There is no room left.
        """
        asked = _shortened(self.volatile_store.snapshot()[USER_MESSAGE])
        line = f"{ended_at.astimezone(UTC):%Y-%m-%d} {asked} → {_shortened(outcome)}"
        self.persistent_store.put(self.execution_id, line)


def _chosen(entries: ContextSnapshot, keys: tuple[str, ...]) -> ContextSnapshot:
    return {key: entries[key] for key in keys if entries.get(key)}


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _PART_CHARS else line[: _PART_CHARS - 1].rstrip() + "…"


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


_PERSISTENT_FILE: Final = "persistent-context.json"
_SUMMARY_FILE: Final = "execution-summary-cache.json"
_MOST_SERVICES: Final = 256


class ContextRegistry:
    """The services of the owners and roots that were last asked for. Safe to use from any thread.

    One process has one service for an owner and a root, up to 256 of them: beyond that the one that was asked for the
    longest time ago is forgotten with its volatile values. Its files stay.

    Args:
        folder: Where the folders of owners and roots are made.
        load_rules: Returns the rules that an owner agreed to in a root, "" for none.
        directory: The server's working directory.
        policy: See `apply_request`.
    """

    def __init__(
        self,
        folder: Path,
        load_rules: Callable[[str, str], str],
        *,
        directory: Path,
        policy: RequestPolicy = "merge",
    ) -> None:
        self._folder = folder
        self._load_rules = load_rules
        self._directory = directory
        self._policy = policy
        self._lock = threading.Lock()
        self._services: OrderedDict[tuple[str, str], AppContextService] = OrderedDict()

    def app_context(self, owner: str, root: str) -> AppContextService:
        """Returns the one service of this owner and root.

        Raises:
            FileAccessError: Its folder or file can't be read, written or locked.
            DiskFullError: There is no room left for its folder.
        """
        key = (owner, root)
        with self._lock:
            if key not in self._services:
                self._services[key] = self._open(owner, root)
            self._services.move_to_end(key)
            if len(self._services) > _MOST_SERVICES:
                self._services.popitem(last=False)
            return self._services[key]

    def told(self, owner: str, root: str, context: Mapping[str, object], language: Language) -> ContextSnapshot:
        """Takes over what a request says of its context, and returns the volatile values that hold for it.

        Args:
            owner: The owner.
            root: The project's root, which was checked; a request has no say in it.
            context: See `apply_request`.
            language: Of the note of what was cut.

        Raises:
            FileAccessError: The folder or file of the context can't be read, written or locked.
            DiskFullError: There is no room left for its folder.
        """
        app_context = self.app_context(owner, root)
        app_context.ensure_volatile_server_working_directory(self._directory, Path(root))
        said = {key: value for key, value in context.items() if key != PROJECT_ROOT}
        return app_context.update_volatile_from_request(said, language)

    def summaries(self, owner: str, root: str) -> FileContextStore:
        """Returns EXECUTION_TREE x PERSISTENT of this owner and root: the lines of the newest 20 turns, by turn.

        Raises:
            FileAccessError: Its folder or file can't be read, written or locked.
            DiskFullError: There is no room left for its folder.
        """
        path = self._folder_of(owner, root) / _SUMMARY_FILE
        return FileContextStore(path, ContextScope.EXECUTION_TREE, most_entries=MOST_SUMMARIES)

    def forget_executions(self, is_forgotten: Callable[[str], bool]) -> None:
        """Removes the lines of turns from the files of all owners and roots, by the turns' ids.

        Raises:
            FileAccessError: A file can't be read, written or locked.
            DiskFullError: There is no room left.
        """
        for path in sorted(self._folder.glob(f"*/{_SUMMARY_FILE}")):
            store = FileContextStore(path, ContextScope.EXECUTION_TREE, most_entries=MOST_SUMMARIES)
            store.remove([turn for turn in store.snapshot() if is_forgotten(turn)])

    def _open(self, owner: str, root: str) -> AppContextService:
        return AppContextService(
            FileContextStore(self._folder_of(owner, root) / _PERSISTENT_FILE, ContextScope.APP),
            MemoryContextStore(ContextScope.APP, PersistenceKind.VOLATILE),
            lambda asked_root: self._load_rules(owner, asked_root),
            directory=self._directory,
            policy=self._policy,
        )

    def _folder_of(self, owner: str, root: str) -> Path:
        """Returns the folder named by a hash: an owner's name or a root may hold anything."""
        identity = f"{len(owner)}:{owner}{root}".encode("utf-8", "surrogatepass")
        return self._folder / hashlib.sha256(identity).hexdigest()[:32]
