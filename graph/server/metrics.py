"""Metrics of the server for Prometheus. Labels have few fixed values, never an owner, a session or a text."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from sqlalchemy import Engine, QueuePool, event
from sqlalchemy.pool import ConnectionPoolEntry

TurnEnd = Literal["finished", "requires_action", "asking", "stopped", "failed"]
CallKind = Literal["answer", "reasoning", "summary", "aside", "title", "embedding"]
ErrorStage = Literal["turn", "call", "fold", "limit"]
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_TRANSACTION_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30)
_BEGAN: Final = "turnfold_began"


class Metrics:
    """Metrics of one server, in a separate registry.

    Usage:
        >>> metrics = Metrics()
        >>> metrics.turn_ended("finished", seconds=2.1)
        >>> b'turnfold_turns_total{end="finished"} 1.0' in metrics.render()
        True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._turns = self._counter("turns", "Attempts of turns that ended, by how they did.", "end")
        self._folds = self._counter("folds", "Folds that were made, by their outcome.", "outcome")
        self._tokens = self._counter(
            "tokens", "Tokens of model calls: as reported, or else estimated.", "kind", "direction"
        )
        self._errors = self._counter("errors", "Failures, by where they showed and their code.", "place", "code")
        self._turn_seconds = self._histogram("turn_seconds", "From a turn's begin to its end.")
        self._first_word_seconds = self._histogram("first_word_seconds", "From a turn's begin to its first word.")
        self._fold_seconds = self._histogram("fold_seconds", "How long it took to make a fold.")
        self._call_seconds = self._histogram("model_call_seconds", "How long model calls took.", "kind")
        self._database_seconds = self._histogram(
            "database_seconds", "How long transactions took, their commit included.", buckets=_TRANSACTION_SECONDS
        )
        self._connections = Gauge(
            "turnfold_pool_connections", "Connections of a pool.", ["pool", "state"], registry=self._registry
        )

    def turn_ended(self, end: TurnEnd, *, seconds: float, error_code: str = "") -> None:
        self._turns.labels(end).inc()
        self._turn_seconds.observe(seconds)
        if error_code:
            self.failed("turn", error_code)

    def first_word(self, seconds: float) -> None:
        self._first_word_seconds.observe(seconds)

    def fold_ended(self, outcome: str, *, seconds: float, error_code: str = "") -> None:
        self._folds.labels(outcome).inc()
        self._fold_seconds.observe(seconds)
        if error_code:
            self.failed("fold", error_code)

    def called(self, kind: CallKind, *, input_tokens: int, output_tokens: int, seconds: float) -> None:
        """Counts a finished model call, or all calls of one fold."""
        self._tokens.labels(kind, "in").inc(input_tokens)
        self._tokens.labels(kind, "out").inc(output_tokens)
        self._call_seconds.labels(kind).observe(seconds)

    def failed(self, stage: ErrorStage, code: str) -> None:
        self._errors.labels(stage, code).inc()

    def watch(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Adds a gauge that is read at each scrape."""
        Gauge(f"turnfold_{name}", meaning, registry=self._registry).set_function(read)

    def watch_pool(self, pool: str, read: Mapping[str, Callable[[], float]]) -> None:
        for state, count in read.items():
            self._connections.labels(pool, state).set_function(count)

    def watch_database(self, engine: Engine) -> None:
        """Measures the transactions of an engine, and adds gauges of its pool."""
        pool = engine.pool
        # A connection is checked out for each transaction, and returned after its commit.
        event.listen(pool, "checkout", _note_begin)
        event.listen(pool, "checkin", self._note_end)
        if isinstance(pool, QueuePool):
            self.watch_pool("database", {"in_use": pool.checkedout, "idle": pool.checkedin})

    def render(self) -> bytes:
        return generate_latest(self._registry)

    def _note_end(self, _: object, connection: ConnectionPoolEntry) -> None:
        if (began := connection.info.pop(_BEGAN, None)) is not None:
            self._database_seconds.observe(time.monotonic() - began)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"turnfold_{name}", meaning, labels, registry=self._registry)

    def _histogram(self, name: str, meaning: str, *labels: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
        return Histogram(f"turnfold_{name}", meaning, labels, registry=self._registry, buckets=buckets)


def _note_begin(_: object, connection: ConnectionPoolEntry, *_more: object) -> None:
    connection.info[_BEGAN] = time.monotonic()
