"""Asks an OpenAI-compatible endpoint for the vectors of texts."""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graph.core.text import estimate_tokens
from graph.model.caller import ModelCaller
from graph.server.settings import Settings
from graph.value.error import BadResponseError, ContextLengthError, ModelError, RejectedError

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

QUERY_SECONDS: Final = 2.0
"""How long a search waits for the vector of its query."""

_LOG = logging.getLogger(__name__)
# Texts are cut to so much, and to less if the model takes less: many take 512 tokens.
_TEXT_CHARS: Final = (1_000, 500, 250)
# After a failure: a search would otherwise wait for an endpoint that is away each time.
_REST_SECONDS: Final = 60.0


class Embedded(NamedTuple):
    """Vectors in the order of their texts, as little-endian float32 of length 1, and the tokens that they cost."""

    vectors: list[bytes]
    tokens: int


class Embedder:
    """The embedding model of the settings.

    Args:
        model: Its name at the endpoint.
        caller: Makes the calls.
        connect: Returns the connection pool.
        url: The endpoint.
        key: Its key; a local server takes any.
        clock: Monotonic time in seconds.
    """

    def __init__(  # the settings of an endpoint
        self,
        model: str,
        caller: ModelCaller,
        connect: Callable[[], httpx2.AsyncClient],
        *,
        url: str,
        key: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self._caller = caller
        self._connect = connect
        self._url = url
        self._key = key
        self._clock = clock
        self._failed_at: float | None = None
        self._most: int | None = None  # texts at once
        self._most_chars = _TEXT_CHARS[0]

    def embed(
        self, texts: Sequence[str], *, deadline_seconds: float, stop: threading.Event | None = None
    ) -> Embedded | None:
        """Returns the vectors of some texts that aren't empty; None if the endpoint fails, or did a minute ago.

        Raises:
            TurnStoppedSignal: `stop` was set, or the caller is being closed.
        """
        if self._failed_at is not None and self._clock() < self._failed_at + _REST_SECONDS:
            return None
        size = self._most or max(1, len(texts))
        try:
            parts = [
                self._embed_part(texts[at : at + size], deadline_seconds, stop) for at in range(0, len(texts), size)
            ]
        except ModelError as failure:
            if self._failed_at is None:
                _LOG.warning("embedding model %s: %s; search goes on without vectors", self.model, failure.code)
            self._failed_at = self._clock()
            return None
        if self._failed_at is not None:
            _LOG.info("embedding model %s answers again", self.model)
        self._failed_at = None
        return _joined(parts)

    def _embed_part(self, texts: Sequence[str], deadline_seconds: float, stop: threading.Event | None) -> Embedded:
        """Embeds texts; in halves if so many are refused, and cut shorter if one alone is, from then on.

        Raises:
            ModelError: One text is refused at any length, or the endpoint failed.
        """
        try:
            return self._ask([text[: self._most_chars] for text in texts], deadline_seconds, stop)
        except (ContextLengthError, RejectedError):
            if len(texts) > 1:
                size, was_chars = (len(texts) + 1) // 2, self._most_chars
                halves = [self._embed_part(part, deadline_seconds, stop) for part in (texts[:size], texts[size:])]
                if self._most_chars == was_chars and (self._most is None or size < self._most):
                    _LOG.warning("embedding model %s is asked for %d texts at once from now on", self.model, size)
                    self._most = size
                return _joined(halves)
            shorter = [chars for chars in _TEXT_CHARS if chars < min(self._most_chars, len(texts[0]))]
            if not shorter:
                raise
            known_chars, self._most_chars = self._most_chars, shorter[0]
            try:
                return self._embed_part(texts, deadline_seconds, stop)
            except ModelError:
                self._most_chars = known_chars
                raise

    def _ask(self, texts: Sequence[str], deadline_seconds: float, stop: threading.Event | None) -> Embedded:
        body = {"model": self.model, "input": list(texts)}
        client = self._client
        answer = self._caller.run(
            lambda: client.post("/embeddings", cast_to=object, body=body), deadline_seconds=deadline_seconds, stop=stop
        )
        if not isinstance(answer, Mapping):
            raise BadResponseError
        usage = answer.get("usage")
        tokens = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
        vectors = _vectors_of(answer, len(texts))
        return Embedded(vectors, tokens if isinstance(tokens, int) and tokens > 0 else sum(map(estimate_tokens, texts)))

    @cached_property
    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI  # noqa: PLC0415  # slow to import, and the offline model never needs it

        return AsyncOpenAI(
            api_key=self._key, base_url=self._url, max_retries=0, timeout=None, http_client=self._connect()
        )


def _joined(parts: Sequence[Embedded]) -> Embedded:
    return Embedded([vector for part in parts for vector in part.vectors], sum(part.tokens for part in parts))


def numbers_of(vector: bytes) -> Sequence[float]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def embedder_of(
    settings: Settings,
    caller: ModelCaller,
    connect: Callable[[], httpx2.AsyncClient],
    *,
    url: str,
    key: str,
    no_key: str,
) -> Embedder | None:
    """Returns the embedder of the settings, None without `EMBEDDING_MODEL`.

    The chat's key is for the chat's endpoint alone: another one gets its own key or none.
    """
    if settings.embedding_model is None:
        return None
    if settings.embedding_base_url is not None:
        url, key = settings.embedding_base_url, no_key
    if settings.embedding_api_key is not None:
        key = settings.embedding_api_key.get_secret_value()
    return Embedder(settings.embedding_model, caller, connect, url=url, key=key)


def _vectors_of(answer: Mapping[str, Any], count: int) -> list[bytes]:
    """Returns the vectors of an answer; raises `BadResponseError` unless each text has one, all of the same size."""
    import numpy as np  # noqa: PLC0415  # takes a tenth of a second, and only hybrid search needs it

    items = answer.get("data")
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise BadResponseError
    if all(isinstance(item.get("index"), int) for item in items):
        items = sorted(items, key=lambda item: int(item["index"]))
    try:
        matrix = np.asarray([item.get("embedding") for item in items], dtype=np.float64)
    except (TypeError, ValueError):
        raise BadResponseError from None
    if matrix.ndim != 2 or matrix.shape[0] != count or not matrix.shape[1] or not np.isfinite(matrix).all():  # noqa: PLR2004  # rows and columns
        raise BadResponseError
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = (matrix / np.where(lengths > 0, lengths, 1)).astype("<f4")
    return [row.tobytes() for row in unit]
