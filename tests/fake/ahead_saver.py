"""A saver of a server whose clock differs: the checkpoints that it writes have ids of another time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint

from graph.store.postgres.pooled_saver import Pool, PooledSaver

_TICKS_PER_SECOND = 10_000_000


class AheadSaver(PooledSaver):
    def __init__(self, pool: Pool, seconds: float) -> None:
        super().__init__(pool)
        self._ticks = int(seconds * _TICKS_PER_SECOND)
        self._moved: dict[str, str] = {}

    def put(self, config: RunnableConfig, checkpoint: Checkpoint, *rest: Any) -> RunnableConfig:  # noqa: ANN401  # handed on as it came
        self._moved[checkpoint["id"]] = _moved_id(checkpoint["id"], self._ticks)
        moved: Any = {**checkpoint, "id": self._moved[checkpoint["id"]]}
        return super().put(self._place(config), moved, *rest)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        super().put_writes(self._place(config), writes, task_id, task_path)

    def _place(self, config: RunnableConfig) -> RunnableConfig:
        place = config["configurable"]
        known = str(place.get("checkpoint_id") or "")
        return {**config, "configurable": {**place, "checkpoint_id": self._moved.get(known, known) or None}}


def _moved_id(checkpoint_id: str, ticks: int) -> str:
    """Moves the time within an id; the field of the version stands in its midst."""
    number = UUID(checkpoint_id).int
    time = ((number >> 80) << 12 | (number >> 64) & 0xFFF) + ticks
    rest = number & ((1 << 64) - 1)
    return str(UUID(int=(time >> 12) << 80 | 0x6000 << 64 | (time & 0xFFF) << 64 | rest))
