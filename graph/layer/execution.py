"""The context of one turn, from its start to its end, and the line that is kept of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from graph.layer.context_key import CURRENT_FILE_RULES, EXECUTION_ID, USER_MESSAGE, VOLATILE_KEYS
from graph.layer.context_store import MemoryContextStore
from graph.layer.scope import ContextScope, ContextSnapshot, ContextStore, PersistenceKind

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
