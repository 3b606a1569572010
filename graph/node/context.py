"""What a run of the graph is told beside its state; never kept in a checkpoint, never a key in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool

from graph.core.model_input import SystemPart
from graph.event import Folded
from graph.model.factory import ChatModels
from graph.record import Record
from graph.settings import Settings
from graph.store.database import Lease
from graph.store.stores import Stores
from graph.strategy.base import Strategy
from graph.tool.registry import ToolContext

if TYPE_CHECKING:
    from graph.worker.fold_worker import FoldWorker


class WaitBudget:
    """How long a turn has waited for folds so far; all of its waits together keep to one limit."""

    def __init__(self) -> None:
        self._spent_seconds = 0.0

    def remaining_seconds(self, limit_seconds: float) -> float:
        """Returns how long the turn may still wait."""
        return max(0.0, limit_seconds - self._spent_seconds)

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Counts the time within as waited."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._spent_seconds += time.monotonic() - began


@dataclass(frozen=True)
class TurnContext:
    """One attempt of one turn.

    Attributes:
        lease: The lease of the session; every write of the turn is fenced by it.
        stop: Set when the user presses Stop or the server shuts down.
        time_zone: IANA name of the user's zone, "" for UTC.
        history_tokens: Our estimate for all live messages of the turns before this one.
        fold_wait: What the waits of summary_node and guard are counted on.
    """

    lease: Lease
    owner: str
    turn: int
    attempt: int
    model: str
    strategy: Strategy
    stop: threading.Event
    time_zone: str
    history_tokens: int
    fold_wait: WaitBudget = field(default_factory=WaitBudget)


@dataclass(frozen=True)
class NodeDeps:
    """What the nodes work with; the same objects in every run."""

    models: ChatModels
    fold_worker: FoldWorker
    tools: Callable[[ToolContext], list[BaseTool]]
    stores: Stores
    clock: Callable[[], datetime]
    settings: Settings
    system: SystemPart


def folded_event(record: Record) -> Folded:
    """Returns the event of a record that was adopted."""
    return Folded(record.id, record.turns, record.original_chars, record.summary_chars)
