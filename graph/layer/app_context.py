"""The context of an owner's work in a project root: accepted rules, and context of the requests."""

from __future__ import annotations

import hashlib
import json
import logging
import os.path
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from graph.core.text import plain_text
from graph.file.atomic_file import locked, put_aside, read_whole, write_whole
from prompt.system.framing import DEFAULT_RULES, Language, note_left_out

DEFAULT_SYSTEM_RULES: Final = "defaultSystemRules"
PROJECT_RULES: Final = "projectRules"
LAYER_SUMMARY: Final = "layerSummary"
PROJECT_MEMORY: Final = "projectMemory"

WORKING_DIRECTORY: Final = "workingDirectory"
PROJECT_ROOT: Final = "projectRoot"
CURRENT_FILE: Final = "currentFile"
CURRENT_FILE_RULES: Final = "currentFileRules"
SELECTION: Final = "selection"

EXECUTION_ID: Final = "executionId"
USER_MESSAGE: Final = "userMessage"

VOLATILE_KEYS: Final = (WORKING_DIRECTORY, PROJECT_ROOT, CURRENT_FILE, CURRENT_FILE_RULES, SELECTION)

_log = logging.getLogger(__name__)

ContextSnapshot = Mapping[str, str]


class ContextScope(StrEnum):
    """The owner of a context.

    `APP` is an owner's work in one root, over all sessions; `EXECUTION_TREE` one turn; `LLM_TASK` one model call,
    composed but never stored; `LAYER` the tools of the product.
    """

    APP = "app"
    EXECUTION_TREE = "execution_tree"
    LLM_TASK = "llm_task"
    LAYER = "layer"


class PersistenceKind(StrEnum):
    """The lifetime of a value: until its condition changes, or until the next request."""

    PERSISTENT = "persistent"
    VOLATILE = "volatile"


class ContextStore(ABC):
    """The values of one scope and kind, by key, in insertion order. Thread-safe."""

    scope: ContextScope
    persistence_kind: PersistenceKind

    @abstractmethod
    def snapshot(self) -> ContextSnapshot:
        """Returns a read-only copy of the current values."""

    def put(self, key: str, value: str) -> None:
        self.put_all({key: value})

    @abstractmethod
    def put_all(self, entries: ContextSnapshot) -> None:
        """Sets several values atomically: a snapshot has all of them or none."""

    @abstractmethod
    def clear(self) -> None:
        """Removes all values."""


class MemoryContextStore(ContextStore):
    def __init__(self, scope: ContextScope, persistence_kind: PersistenceKind) -> None:
        self.scope = scope
        self.persistence_kind = persistence_kind
        self._lock = threading.Lock()
        self._entries: dict[str, str] = {}

    def snapshot(self) -> ContextSnapshot:
        with self._lock:
            return MappingProxyType(self._entries.copy())

    def put_all(self, entries: ContextSnapshot) -> None:
        plain = {key: plain_text(value) for key, value in entries.items()}
        with self._lock:
            self._entries.update(plain)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


class FileContextStore(ContextStore):
    """A persistent store: one JSON object of texts, UTF-8, replaced atomically with each change.

    The constructor creates the folder and deletes temporary files of killed writers. Each change first reads the file
    under its lock, so that processes don't lose each other's changes. A file that isn't such an object is renamed to
    `<name>.damaged-<hash of its bytes>`, and the store starts empty. Methods raise `FileAccessError` and
    `DiskFullError`.
    """

    persistence_kind = PersistenceKind.PERSISTENT

    def __init__(self, path: Path, scope: ContextScope) -> None:
        self.scope = scope
        self._path = path
        with locked(path):
            self._read_or_start_empty()

    def snapshot(self) -> ContextSnapshot:
        data = read_whole(self._path)
        entries = {} if data is None else _parse(data)
        if entries is None:
            with locked(self._path):
                entries = self._read_or_start_empty()
        return MappingProxyType(entries)

    def put_all(self, entries: ContextSnapshot) -> None:
        plain = {plain_text(key): plain_text(value) for key, value in entries.items()}
        with locked(self._path):
            self._write({**self._read_or_start_empty(), **plain})

    def clear(self) -> None:
        with locked(self._path):
            if self._read_or_start_empty():
                self._write({})

    def _write(self, entries: ContextSnapshot) -> None:
        write_whole(self._path, json.dumps(entries, ensure_ascii=False, indent=1).encode())

    def _read_or_start_empty(self) -> dict[str, str]:
        """Renames a damaged file; called under the lock, so that another process's new file isn't renamed."""
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


def _parse(data: bytes) -> dict[str, str] | None:
    """Parses a JSON object of texts; None if the bytes aren't one."""
    try:
        found = json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return None
    # An escaped lone surrogate is valid JSON, but invalid text.
    return {plain_text(key): plain_text(value) for key, value in found.items()}


RequestPolicy = Literal["merge", "request"]

SELECTION_CHARS: Final = 8_000
PATH_CHARS: Final = 4_096
_PATHS: Final = (PROJECT_ROOT, CURRENT_FILE)


def apply_request(
    stored: ContextSnapshot, request: Mapping[str, object], *, policy: RequestPolicy, language: Language
) -> dict[str, str]:
    """Returns the volatile values after a request.

    Only `currentFile`, `selection` and `projectRoot` are accepted, each a text; other keys are dropped, even the
    server's `workingDirectory`. Relative paths are resolved lexically against it, without a look at the disk. A path
    over 4,096 characters is dropped, as its beginning would name another file. A selection has at most 8,000
    characters, including the note on a cut. A blank `currentFile` or `selection` removes the earlier value; a blank
    `projectRoot` is ignored. Policy "merge" retains earlier values, except a selection in another file; "request"
    retains none.
    """
    accepted = _accepted(request, stored.get(WORKING_DIRECTORY, ""), language)
    working = {key: stored.get(key, "") for key in (WORKING_DIRECTORY, PROJECT_ROOT)}
    if policy == "merge":
        working[CURRENT_FILE] = stored.get(CURRENT_FILE, "")
        if accepted.get(CURRENT_FILE, working[CURRENT_FILE]) == working[CURRENT_FILE]:
            working[SELECTION] = stored.get(SELECTION, "")
    return {key: value for key, value in {**working, **accepted}.items() if value}


def _accepted(request: Mapping[str, object], directory: str, language: Language) -> dict[str, str]:
    accepted: dict[str, str] = {}
    for key in (*_PATHS, SELECTION):
        value = request.get(key)
        if not isinstance(value, str):
            continue
        text = plain_text(value)
        if key == SELECTION:
            accepted[key] = _cut(text, language) if text.strip() else ""
        elif not text.strip():
            accepted |= {key: ""} if key == CURRENT_FILE else {}
        elif len(path := os.path.normpath(os.path.join(directory, text))) <= PATH_CHARS:  # noqa: PTH118  # a text, no file
            accepted[key] = path
    return accepted


def _cut(selection: str, language: Language) -> str:
    if len(selection) <= SELECTION_CHARS:
        return selection
    longest_note = note_left_out(len(selection), len(selection), language)
    retained_chars = SELECTION_CHARS - len(longest_note)
    return selection[:retained_chars] + note_left_out(len(selection) - retained_chars, len(selection), language)


LoadRules = Callable[[str], str]

# Stored with the rules, but not sent: the trigger they were loaded for.
_LOADED_ROOT: Final = "loadedRoot"
_LOADED_DIGEST: Final = "loadedDigest"


@dataclass(frozen=True)
class PersistentRefreshTrigger:
    """The inputs of the persistent context, reloaded on change; `rules_digest` hashes the accepted rules."""

    project_root: str | None
    rules_digest: str = ""


class AppContextService:
    """Seed 001's entry to the APP scope; one for each owner and project root. Thread-safe.

    At each request::

        service.ensure_volatile_server_working_directory(directory, root)
        volatile = service.update_volatile_from_request({"currentFile": "src/app.py", "selection": "def main():"})
        service.refresh_persistent_if_needed(PersistentRefreshTrigger(root, agreed.digest))
        execution = execution_tree(turn_id, user_message, volatile)
        sent = PromptComposer("en", layer).parts(LLMTaskType.CHAT, service, execution=execution)

    All sessions of the owner in this root share `volatile_store`; a turn is sent its own `execution_tree`. Methods
    raise `FileAccessError` if the persistent file can't be read or written.
    """

    def __init__(
        self,
        persistent_store: ContextStore,
        volatile_store: ContextStore,
        load_rules: LoadRules,
        *,
        directory: Path,
        policy: RequestPolicy = "merge",
    ) -> None:
        self.persistent_store = persistent_store
        self.volatile_store = volatile_store
        self._load_rules = load_rules
        self._policy = policy
        self._lock = threading.Lock()
        self.ensure_volatile_server_working_directory(directory)

    def get_app_context_for_prompt(self, language: Language = "ko") -> tuple[ContextSnapshot, ContextSnapshot]:
        """Returns the persistent and the volatile values for prompts, in the order of their keys.

        The default rules are added here, not stored: the file serves sessions of both languages.
        """
        persistent = {
            DEFAULT_SYSTEM_RULES: DEFAULT_RULES[language],
            PROJECT_RULES: self.persistent_store.snapshot().get(PROJECT_RULES, ""),
        }
        volatile = self.volatile_store.snapshot()
        return (
            {key: value for key, value in persistent.items() if value},
            {key: volatile[key] for key in VOLATILE_KEYS if volatile.get(key)},
        )

    def ensure_volatile_server_working_directory(self, directory: Path, root: Path | None = None) -> None:
        """Sets `workingDirectory` and `projectRoot`, by default the same; call this before applying a request."""
        absolute = plain_text(os.path.abspath(directory))  # noqa: PTH100  # `absolute` keeps ".."
        own_root = absolute if root is None else plain_text(str(root))
        with self._lock:
            self._server = {WORKING_DIRECTORY: absolute, PROJECT_ROOT: own_root}
            self.volatile_store.put_all(self._server)

    def update_volatile_from_request(self, context: Mapping[str, object], language: Language = "ko") -> ContextSnapshot:
        """Applies a request's context and returns the volatile values; `projectRoot` must be checked before."""
        with self._lock:
            # The server's own values: the store may have those of a concurrent request.
            stored = {**self.volatile_store.snapshot(), **self._server}
            volatile = apply_request(stored, context, policy=self._policy, language=language)
            # Atomic, so that no prompt is composed of half a request.
            self.volatile_store.put_all(dict.fromkeys(VOLATILE_KEYS, "") | volatile)
        return volatile

    def refresh_persistent_if_needed(self, trigger: PersistentRefreshTrigger) -> bool:
        """Loads the accepted rules on change; True if loaded: the stable prefix may have changed.

        Raises `FileAccessError` or `DiskFullError` if the file can't be read or written; its content is unchanged then.
        """
        asked = {_LOADED_ROOT: plain_text(trigger.project_root or ""), _LOADED_DIGEST: trigger.rules_digest}
        retained = self.persistent_store.snapshot()
        if all(retained.get(key) == value for key, value in asked.items()):
            return False
        rules = "" if trigger.project_root is None else self._load_rules(trigger.project_root)
        self.persistent_store.put_all({PROJECT_RULES: rules, **asked})
        return True


_PERSISTENT_FILE: Final = "persistent-context.json"
_MOST_SERVICES: Final = 256


class ContextRegistry:
    """The services of the most recently used owners and roots. Thread-safe.

    One service per owner and root in a process, up to 256: beyond that the least recently used is dropped with its
    volatile values. Its file stays.
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
        self._opened = lru_cache(_MOST_SERVICES)(self._open)
        # Excerpts of turns from earlier versions, which the deletion of a chat would no longer remove.
        for file in folder.glob("*/*execution-summary-cache.json*"):
            with suppress(OSError):
                file.unlink()

    def app_context(self, owner: str, root: str) -> AppContextService:
        """Returns the service of this owner and root; raises `FileAccessError` or `DiskFullError`."""
        with self._lock:  # `lru_cache` would let two threads create two services
            return self._opened(owner, root)

    def apply_context(
        self, owner: str, root: str, context: Mapping[str, object], language: Language
    ) -> ContextSnapshot:
        """Applies a request's context within a checked root; raises what `app_context` does."""
        app_context = self.app_context(owner, root)
        app_context.ensure_volatile_server_working_directory(self._directory, Path(root))
        values = {key: value for key, value in context.items() if key != PROJECT_ROOT}
        return app_context.update_volatile_from_request(values, language)

    def _open(self, owner: str, root: str) -> AppContextService:
        # Named by a hash: an owner's name or a root may contain any characters.
        identity = f"{len(owner)}:{owner}{root}".encode("utf-8", "surrogatepass")
        folder = self._folder / hashlib.sha256(identity).hexdigest()[:32]
        return AppContextService(
            FileContextStore(folder / _PERSISTENT_FILE, ContextScope.APP),
            MemoryContextStore(ContextScope.APP, PersistenceKind.VOLATILE),
            lambda asked_root: self._load_rules(owner, asked_root),
            directory=self._directory,
            policy=self._policy,
        )


def execution_tree(
    execution_id: str, user_message: str, request_context: ContextSnapshot, *, file_rules: str = ""
) -> MemoryContextStore:
    """Creates the volatile store of one turn, which later requests don't change."""
    store = MemoryContextStore(ContextScope.EXECUTION_TREE, PersistenceKind.VOLATILE)
    own = {EXECUTION_ID: execution_id, USER_MESSAGE: user_message, CURRENT_FILE_RULES: file_rules}
    store.put_all({**request_context, **own})
    return store
