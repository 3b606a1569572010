"""Watches what the servers hold while they work: memory, and connections to the database."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import psycopg

_EVERY_SECONDS: Final = 2.0
_CONNECTIONS: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@dataclass
class Gauge:
    """The most that was seen so far.

    Attributes:
        memory: Megabytes (of 10^6 bytes) of all servers together.
        connections: To the database, of all servers together; one that does nothing counts.
    """

    process_ids: Sequence[int]
    database: str
    memory: float = 0.0
    connections: int = 0

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Looks every two seconds while the block runs, and once at its end."""
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
        await asyncio.to_thread(self._look)

    async def _watch(self) -> None:
        while True:
            await asyncio.to_thread(self._look)
            await asyncio.sleep(_EVERY_SECONDS)

    def _look(self) -> None:
        listed = ",".join(map(str, self.process_ids))
        sizes = subprocess.run(["ps", "-o", "rss=", "-p", listed], capture_output=True, check=True, text=True)  # noqa: S603, S607  # wherever the system has it
        self.memory = max(self.memory, sum(map(int, sizes.stdout.split())) * 1_024 / 1e6)
        with psycopg.connect(self.database) as connection:
            row = connection.execute(_CONNECTIONS).fetchone()
        self.connections = max(self.connections, row[0] if row else 0)
