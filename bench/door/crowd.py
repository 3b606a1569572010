"""Many streams through the door that stay open until their upstream ends them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final

from anyio.from_thread import start_blocking_portal
from openai import AsyncOpenAI

from bench.door.program import question
from bench.page.endpoint import SLOW, ends_of

_POLL_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 300.0


class Crowd:
    """Streams of several programs, read by one event loop; see `opened`."""

    def __init__(self, url: str, keys: Sequence[str]) -> None:
        self._clients = [AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=600) for key in keys]
        self._begun_count = 0
        self._streams: list[Future[bool]] = []

    @contextmanager
    def opened(self, count: int) -> Iterator[None]:
        """Opens so many streams, as many for each program, and waits for the first words of each.

        Raises:
            TimeoutError: Not all of them came in time.
            OpenAIError: A stream was refused or broke off.
        """
        with start_blocking_portal() as portal:
            self._streams = [
                portal.start_task_soon(self._read, self._clients[number % len(self._clients)], f"{SLOW}{number}")
                for number in range(count)
            ]
            self._wait_for_words(count)
            yield

    def whole_count(self) -> int:
        """Waits for all streams, and returns how many had all of their answer and its end.

        Raises:
            OpenAIError: A stream broke off.
        """
        return sum(stream.result(_PATIENCE_SECONDS) for stream in self._streams)

    def _wait_for_words(self, count: int) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._begun_count < count:
            for stream in self._streams:
                if stream.done():
                    stream.result()
            if time.monotonic() > deadline:
                missing = f"{count - self._begun_count} of {count} streams have no words yet"
                raise TimeoutError(missing)
            time.sleep(_POLL_SECONDS)

    async def _read(self, client: AsyncOpenAI, name: str) -> bool:
        begin, end = ends_of(name)
        pieces: list[str] = []
        reason = None
        stream = await client.chat.completions.create(
            model="bench-model", messages=[question(f"{name} Tell me all of it.")], stream=True
        )
        async for chunk in stream:
            for choice in chunk.choices:
                if piece := choice.delta.content:
                    self._begun_count += not pieces
                    pieces.append(piece)
                reason = choice.finish_reason
        text = "".join(pieces)
        return reason == "stop" and text.startswith(begin) and text.endswith(end)
