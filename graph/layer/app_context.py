"""The context of one owner's work in one project root: rules that are kept, and what the requests say."""

from __future__ import annotations

import os.path
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graph.core.text import plain_text
from graph.layer.context_key import (
    DEFAULT_SYSTEM_RULES,
    PROJECT_ROOT,
    PROJECT_RULES,
    VOLATILE_KEYS,
    WORKING_DIRECTORY,
)
from graph.layer.request_context import RequestPolicy, apply_request
from graph.layer.scope import ContextSnapshot, ContextStore
from prompt.system.context_layer import DEFAULT_RULES
from prompt.system.framing import Language

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
        execution = ExecutionContext(turn_id, user_message, volatile, summaries)
        sent = PromptComposer("en", layer).parts(LLMTaskType.CHAT, service, execution=execution)

    Args:
        persistent_store: APP x PERSISTENT.
        volatile_store: APP x VOLATILE.
        load_rules: Returns the text of the rules that the owner agreed to in this root, "" for none.
        directory: The server's working directory, the first volatile value.
        policy: Whether a request is merged with what earlier ones said; see `apply_request`.

    Attributes:
        persistent_store: APP x PERSISTENT.
        volatile_store: APP x VOLATILE. All sessions of the owner in this root share it; what a turn is sent is the
            snapshot in its `ExecutionContext`, which no other request changes.
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
