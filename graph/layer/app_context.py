"""The context of one owner's work in one project root: rules that are kept, and what the requests say."""

from __future__ import annotations

import os.path
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, Protocol

from graph.core.text import plain_text
from prompt.system.framing import DEFAULT_RULES, Language, note_left_out

DEFAULT_SYSTEM_RULES: Final = "defaultSystemRules"
PROJECT_RULES: Final = "projectRules"
LAYER_SUMMARY: Final = "layerSummary"
PROJECT_MEMORY: Final = "projectMemory"
RECENT_EXECUTIONS: Final = "recentExecutions"

WORKING_DIRECTORY: Final = "workingDirectory"
PROJECT_ROOT: Final = "projectRoot"
CURRENT_FILE: Final = "currentFile"
CURRENT_FILE_RULES: Final = "currentFileRules"
SELECTION: Final = "selection"

EXECUTION_ID: Final = "executionId"
USER_MESSAGE: Final = "userMessage"

VOLATILE_KEYS: Final = (WORKING_DIRECTORY, PROJECT_ROOT, CURRENT_FILE, CURRENT_FILE_RULES, SELECTION)


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
