"""One measurement: so many programs and pages at once on the same servers, and what it came to."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from playwright.async_api import Browser

from bench.load.chat import HeldChat, Pauses, Sample
from bench.load.gauge import Gauge
from bench.load.kept import count_lost
from bench.load.page import PageUser
from bench.load.program import Program, clients_of

OWNER: Final = "local"  # whose sessions the pages show, without a sign-in


@dataclass(frozen=True)
class Servers:
    """The servers that are measured, all on one database.

    Attributes:
        tokens: One a user, for the programs.
        page_token: Reads back what was said at the pages.
        database: The database's URL.
    """

    ports: Sequence[int]
    process_ids: Sequence[int]
    tokens: Sequence[str]
    page_token: str
    database: str


@dataclass(frozen=True)
class Stage:
    """What is measured: so many users, each of whom asks so many questions with such pauses between them."""

    name: str
    programs: int
    pages: int
    turns: int
    pause_seconds: float


@dataclass(frozen=True)
class Figures:
    """What a stage came to.

    Attributes:
        program: Of each answer to a program.
        page: Of each answer on a page.
        errors: What went wrong, each with its words.
        lost: Turns that the database hasn't as they were said.
        seconds: From the first question to the last answer, pauses included.
        memory: Megabytes of all servers at most.
        connections: To the database at most.
    """

    stage: Stage
    program: Sequence[Sample]
    page: Sequence[Sample]
    errors: Sequence[str]
    lost: int
    seconds: float
    memory: float
    connections: int

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return (len(self.program) + len(self.page)) / self.seconds


async def measure(stage: Stage, servers: Servers, browser: Browser) -> Figures:
    """Has all users of a stage do their work, then reads everything back."""
    programs = [HeldChat(f"{stage.name}u{number}", servers.tokens[number]) for number in range(stage.programs)]
    pages = [HeldChat(f"{stage.name}p{number}", servers.page_token) for number in range(stage.pages)]
    gauge = Gauge(servers.process_ids, servers.database)
    clients = clients_of(servers.ports)
    readers = [PageUser(browser, servers.ports[number % len(servers.ports)], chat) for number, chat in enumerate(pages)]
    for reader in readers:  # one after another, as one browser loads them all
        await reader.open()
    users: list[tuple[Program | PageUser, HeldChat]] = [
        *((Program(clients, number, chat), chat) for number, chat in enumerate(programs)),
        *zip(readers, pages, strict=True),
    ]
    began = time.perf_counter()
    async with gauge.watching():
        await asyncio.gather(*(user.hold(stage.turns, Pauses(chat.name, stage.pause_seconds)) for user, chat in users))
    seconds = time.perf_counter() - began
    for client in clients:
        await client.close()
    chats = [*programs, *pages]
    return Figures(
        stage,
        [sample for chat in programs for sample in chat.samples],
        [sample for chat in pages for sample in chat.samples],
        [error for chat in chats for error in chat.errors],
        await count_lost(chats, servers.ports[-1]),
        seconds,
        gauge.memory,
        gauge.connections,
    )


def percentile(share: float, values: Sequence[float]) -> float:
    """Returns the smallest value that at least so large a share of all of them doesn't pass; 0 without any."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)] if values else 0.0
