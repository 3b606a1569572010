"""Has the messages of sessions embedded in the background, for hybrid search; no turn waits for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from graph.model.embedder import Embedder
from graph.model.spending import Spending
from graph.node.job_queue import JobQueue
from graph.store.session import SessionRow
from graph.store.vector import VectorStore
from graph.value.error import StoreError, TurnStoppedSignal
from graph.value.event import LAST_EVENTS, Event, TurnStarted

_LOG = logging.getLogger(__name__)
_BATCH: Final = 32
_MAX_THREADS: Final = 2
_DEADLINE_SECONDS: Final = 60.0


class VectorWorker:
    """Embeds what a session has said since its last turn, then its older messages, batch by batch.

    A failure ends that until the session's next turn. Where the embedding model shares the chat's server and that has
    one slot, the calls give way to turns as folds do.

    Args:
        gives_way: Returns True if that is so.
        quiet_seconds: How long they wait after a turn then; see `JobQueue`.

    Usage:
        >>> log.watch(partial(vectors.hear, session))
    """

    def __init__(
        self,
        vectors: VectorStore,
        embedder: Embedder,
        spending: Spending,
        *,
        gives_way: Callable[[], bool],
        quiet_seconds: float = 0.0,
    ) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._spending = spending
        self._gives_way = gives_way
        self._queue = JobQueue(
            "vector", max_threads=_MAX_THREADS, quiet_seconds=lambda: quiet_seconds if gives_way() else 0.0
        )

    def hear(self, session: SessionRow, event: Event) -> None:
        """Takes the next event of a turn of a session."""
        session_id = session.session_id
        if isinstance(event, TurnStarted) and self._gives_way():
            self._queue.hold(session_id)
        if isinstance(event, LAST_EVENTS):
            self._queue.put((session_id, True), "vectors", partial(self._fill, session_id, session.owner))
            self._queue.release(session_id)

    def is_idle(self, session_id: str) -> bool:
        """Whether nothing of this session is queued or being embedded here."""
        return self._queue.is_idle(session_id)

    def close(self) -> None:
        """Ends the calls that are being made, and waits for the threads."""
        self._queue.close()

    def _fill(self, session_id: str, owner: str, stop: threading.Event) -> bool:
        try:
            while not stop.is_set() and self._fill_batch(session_id, owner, stop):
                pass
        except TurnStoppedSignal:
            _LOG.info("vectors of session=%s give way, or end with the server", session_id)
        except StoreError as error:
            _LOG.warning("vectors of session=%s not kept: %s", session_id, error.code)
        return True

    def _fill_batch(self, session_id: str, owner: str, stop: threading.Event) -> bool:
        """Embeds some messages; returns False if there are none left, or the endpoint fails."""
        batch = self._vectors.missing(session_id, self._embedder.model, limit=_BATCH)
        vectors = {message.position: b"" for message in batch if not message.text}
        asked = [message for message in batch if message.text]
        if asked:
            began = time.monotonic()
            texts = [message.text for message in asked]
            embedded = self._embedder.embed(texts, deadline_seconds=_DEADLINE_SECONDS, stop=stop)
            if embedded is None:
                return False
            seconds = time.monotonic() - began
            self._spending.add(owner, "embedding", input_tokens=embedded.tokens, output_tokens=0, seconds=seconds)
            vectors |= dict(zip((message.position for message in asked), embedded.vectors, strict=True))
        self._vectors.keep(session_id, self._embedder.model, vectors)
        return bool(batch)
