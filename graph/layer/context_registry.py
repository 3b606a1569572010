"""Finds the context of each owner and project root, and keeps each one's files in a folder of its own."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from graph.layer.app_context import AppContextService
from graph.layer.context_key import PROJECT_ROOT
from graph.layer.context_store import MemoryContextStore
from graph.layer.execution import MOST_SUMMARIES
from graph.layer.file_context_store import FileContextStore
from graph.layer.request_context import RequestPolicy
from graph.layer.scope import ContextScope, ContextSnapshot, PersistenceKind
from prompt.system.framing import Language

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
