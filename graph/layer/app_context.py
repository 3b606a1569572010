"""The context of one owner's work in one project root: rules that are kept, and what the requests say."""

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


class ContextStore(ABC):
    """The values of one scope and kind, by key, in the order in which they were put. Safe to use from any thread.

    Attributes:
        scope: What the values belong to.
        persistence_kind: How long they hold.
    """

    scope: ContextScope
    persistence_kind: PersistenceKind

    @abstractmethod
    def snapshot(self) -> ContextSnapshot:
        """Returns the values as they are now, read-only; later changes don't reach what was returned."""

    def put(self, key: str, value: str) -> None:
        """Sets one value."""
        self.put_all({key: value})

    @abstractmethod
    def put_all(self, entries: ContextSnapshot) -> None:
        """Sets several values at once: a snapshot has all of them or none."""

    @abstractmethod
    def clear(self) -> None:
        """Removes all values."""


class MemoryContextStore(ContextStore):
    """A store that ends with its process.

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
        """Returns the values as they are now."""
        with self._lock:
            return MappingProxyType(self._entries.copy())

    def put_all(self, entries: ContextSnapshot) -> None:
        """Sets several values at once."""
        plain = {key: plain_text(value) for key, value in entries.items()}
        with self._lock:
            self._entries.update(plain)

    def clear(self) -> None:
        """Removes all values."""
        with self._lock:
            self._entries.clear()


class FileContextStore(ContextStore):
    """A persistent store: one JSON object of texts, UTF-8, replaced whole with each change.

    Opening it creates its folder and deletes what a killed writer left. Each change reads the file anew under the
    file's lock, so that no process loses what another one put. A file that isn't such an object is renamed to
    `<name>.damaged-<hash of its bytes>`, and the store begins anew.

    Args:
        path: The file; it is created by the first change.
        scope: What the values belong to.

    Raises:
        FileAccessError: The file can't be read, written or locked; also raised by every method.
        DiskFullError: There is no room left; also raised by every method that changes something.
    """

    persistence_kind = PersistenceKind.PERSISTENT

    def __init__(self, path: Path, scope: ContextScope) -> None:
        self.scope = scope
        self._path = path
        with locked(path):
            self._read_or_begin_anew()

    def snapshot(self) -> ContextSnapshot:
        """Returns the values as they are on the disk now."""
        data = read_whole(self._path)
        entries = {} if data is None else _parse(data)
        if entries is None:
            with locked(self._path):
                entries = self._read_or_begin_anew()
        return MappingProxyType(entries)

    def put_all(self, entries: ContextSnapshot) -> None:
        """Sets several values at once."""
        plain = {plain_text(key): plain_text(value) for key, value in entries.items()}
        with locked(self._path):
            self._write({**self._read_or_begin_anew(), **plain})

    def clear(self) -> None:
        """Removes all values."""
        with locked(self._path):
            if self._read_or_begin_anew():
                self._write({})

    def _write(self, entries: ContextSnapshot) -> None:
        write_whole(self._path, json.dumps(entries, ensure_ascii=False, indent=1).encode())

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


RequestPolicy = Literal["merge", "request"]

SELECTION_CHARS: Final = 8_000
PATH_CHARS: Final = 4_096
_PATHS: Final = (PROJECT_ROOT, CURRENT_FILE)


def apply_request(
    stored: ContextSnapshot, request: Mapping[str, object], *, policy: RequestPolicy, language: Language
) -> dict[str, str]:
    """Returns the volatile values of a request.

    A strict allow-list: of a request `currentFile`, `selection` and `projectRoot` are taken, each a text; every other
    key is dropped, the server's own `workingDirectory` too. Relative paths are resolved against the server's directory,
    if that is among the stored values, by their letters alone: nothing is looked up on the disk. A path over 4,096
    characters is dropped, as its beginning would name another file. A selection has at most 8,000 characters, the note
    of what was cut included. A blank `currentFile` or `selection` takes back an earlier one; a blank `projectRoot` says
    nothing.

    Args:
        stored: The values so far; in a project the server's `workingDirectory` and `projectRoot` among them.
        request: What the caller says.
        policy: "merge" keeps what earlier requests said and this one doesn't; "request" doesn't. A selection isn't
            kept for another file.
        language: Of the note.
    """
    said = _accepted(request, stored.get(WORKING_DIRECTORY, ""), language)
    kept = {key: stored.get(key, "") for key in (WORKING_DIRECTORY, PROJECT_ROOT)}
    if policy == "merge":
        kept[CURRENT_FILE] = stored.get(CURRENT_FILE, "")
        if said.get(CURRENT_FILE, kept[CURRENT_FILE]) == kept[CURRENT_FILE]:
            kept[SELECTION] = stored.get(SELECTION, "")
    return {key: value for key, value in {**kept, **said}.items() if value}


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
    kept_chars = SELECTION_CHARS - len(longest_note)
    return selection[:kept_chars] + note_left_out(len(selection) - kept_chars, len(selection), language)


LoadRules = Callable[[str], str]

# Kept beside the rules, and not sent: what they were loaded for.
_LOADED_ROOT: Final = "loadedRoot"
_LOADED_DIGEST: Final = "loadedDigest"


@dataclass(frozen=True)
class PersistentRefreshTrigger:
    """What the persistent context depends on; it is renewed when one of these differs from the last time.

    Attributes:
        project_root: The root as the server knows it, None for no project.
        rules_digest: The hash of the rules that the owner agreed to in this root, "" if there are none.
    """

    project_root: str | None
    rules_digest: str = ""


class AppContextService:
    """Seed 001's entry to the APP scope; one for each owner and project root. Safe to use from any thread.

    At each request::

        service.ensure_volatile_server_working_directory(directory, root)
        volatile = service.update_volatile_from_request({"currentFile": "src/app.py", "selection": "def main():"})
        service.refresh_persistent_if_needed(PersistentRefreshTrigger(root, agreed.digest))
        execution = execution_tree(turn_id, user_message, volatile)
        sent = PromptComposer("en", layer).parts(LLMTaskType.CHAT, service, execution=execution)

    Args:
        persistent_store: APP x PERSISTENT.
        volatile_store: APP x VOLATILE.
        load_rules: Returns the text of the rules that the owner agreed to in this root, "" for none.
        directory: The server's working directory, the first volatile value.
        policy: Whether a request is merged with what earlier ones said; see `apply_request`.

    Attributes:
        persistent_store: APP x PERSISTENT.
        volatile_store: APP x VOLATILE. All sessions of the owner in this root share it; a turn is sent the values of
            its own `execution_tree`.
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
        """Returns the persistent and the volatile values that a prompt may have, in the order of their keys.

        The product's default rules are always among the persistent ones. They aren't in the file, which serves sessions
        of both languages.

        Raises:
            FileAccessError: The persistent file can't be read.
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
        """Sets `workingDirectory` and `projectRoot` to the server's; called at each request, before what it says.

        Args:
            directory: The server's working directory.
            root: The project root of the session; the working directory if None.
        """
        absolute = plain_text(os.path.abspath(directory))  # noqa: PTH100  # `absolute` keeps ".."
        own_root = absolute if root is None else plain_text(str(root))
        with self._lock:
            self._server = {WORKING_DIRECTORY: absolute, PROJECT_ROOT: own_root}
            self.volatile_store.put_all(self._server)

    def update_volatile_from_request(self, context: Mapping[str, object], language: Language = "ko") -> ContextSnapshot:
        """Takes over what a request says of its context and returns the volatile values that hold for it.

        Args:
            context: Keys and values as the caller sent them; `apply_request` says which are taken. A `projectRoot`
                must have been checked against the allow-list of roots before.
            language: Of the note of what was cut.
        """
        with self._lock:
            # The server's own values: those in the store may be of another request, which is served just now.
            stored = {**self.volatile_store.snapshot(), **self._server}
            volatile = apply_request(stored, context, policy=self._policy, language=language)
            # In one step, so that no prompt is composed of half a request.
            self.volatile_store.put_all(dict.fromkeys(VOLATILE_KEYS, "") | volatile)
        return volatile

    def refresh_persistent_if_needed(self, trigger: PersistentRefreshTrigger) -> bool:
        """Loads the agreed rules if the root or their hash isn't the one that they were last loaded for.

        Returns:
            Whether they were loaded, so that the stable front may be another one from now on.

        Raises:
            FileAccessError: The persistent file can't be read or written; what it held stays.
            DiskFullError: There is no room left; what it held stays.
        """
        asked = {_LOADED_ROOT: plain_text(trigger.project_root or ""), _LOADED_DIGEST: trigger.rules_digest}
        kept = self.persistent_store.snapshot()
        if all(kept.get(key) == value for key, value in asked.items()):
            return False
        rules = "" if trigger.project_root is None else self._load_rules(trigger.project_root)
        self.persistent_store.put_all({PROJECT_RULES: rules, **asked})
        return True


_PERSISTENT_FILE: Final = "persistent-context.json"
_MOST_SERVICES: Final = 256


class ContextRegistry:
    """The services of the owners and roots that were last asked for. Safe to use from any thread.

    One process has one service for an owner and a root, up to 256 of them: beyond that the one that was asked for the
    longest time ago is forgotten with its volatile values. Its file stays.

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
        self._opened = lru_cache(_MOST_SERVICES)(self._open)
        # Lines of turns that earlier versions kept: no deletion of a chat would remove them any more.
        for file in folder.glob("*/*execution-summary-cache.json*"):
            with suppress(OSError):
                file.unlink()

    def app_context(self, owner: str, root: str) -> AppContextService:
        """Returns the one service of this owner and root.

        Raises:
            FileAccessError: Its folder or file can't be read, written or locked.
            DiskFullError: There is no room left for its folder.
        """
        with self._lock:  # two threads at once would get two services
            return self._opened(owner, root)

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

    def _open(self, owner: str, root: str) -> AppContextService:
        # A folder named by a hash: an owner's name or a root may hold anything.
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
    """Makes the volatile store of one turn, EXECUTION_TREE x VOLATILE; later requests don't change it.

    Args:
        execution_id: The turn's id.
        user_message: The user's words.
        request_context: The volatile values of its request, from `update_volatile_from_request`.
        file_rules: The rules whose patterns match the current file.
    """
    store = MemoryContextStore(ContextScope.EXECUTION_TREE, PersistenceKind.VOLATILE)
    own = {EXECUTION_ID: execution_id, USER_MESSAGE: user_message, CURRENT_FILE_RULES: file_rules}
    store.put_all({**request_context, **own})
    return store
