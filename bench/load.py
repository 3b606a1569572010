"""`make load`: a hundred programs and twenty pages on two servers with one Postgres, beside one of each alone.

    python -m bench.load [--programs 100] [--pages 20] [--turns 6] [--alone 30] [--write]

The users have pauses, as people have, and every chat is read back at the end. The endpoint behind the servers says how
long it took itself; the times are what is above that. `--write` puts the table into docs/scale.md and docs/scale.ko.md.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx2
import psycopg
from openai import AsyncOpenAI, OpenAIError
from playwright.async_api import Browser, Error, Page, async_playwright

from bench.browser import ENDING, FIELD, HAS_SETTLED, SEEN, SETTLED, WATCH, WINDOW, chromium
from bench.endpoint import ends_of, serving
from bench.report import table, verdict
from bench.server import ROOT, model_settings, started
from tests.fake.postgres import serve_postgres

SERVERS = 2
OWNER = "local"  # whose sessions the pages show, without a sign-in
_PAGE_TOKEN = "token-of-the-pages-0123456789"  # opens nothing but these servers
_PAUSE_SECONDS = 10.0
_ALONE_PAUSE_SECONDS = 2.0  # long enough for the folds of a turn to be made before the next one
_PATIENCE_SECONDS = 120
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
_TABLE = re.compile(r"(?<=<!-- make load -->\n).*?(?=<!-- /make load -->)", re.DOTALL)
# The guides that have the table, whose rows are named there, and their words for its columns.
_GUIDES = {"docs/scale.md": ("programs", "pages"), "docs/scale.ko.md": ("프로그램", "페이지")}


class Servers(NamedTuple):
    """The servers that are measured, all on one database; `tokens` has one for each program's user."""

    ports: Sequence[int]
    process_ids: Sequence[int]
    tokens: Sequence[str]
    database: str


class Stage(NamedTuple):
    """So many users, each of whom asks so many questions with such pauses between them."""

    name: str
    programs: int
    pages: int
    turns: int
    pause_seconds: float


class Sample(NamedTuple):
    """Milliseconds of one answer that were the product's own: until its first words, and until all of it was there."""

    first_words: float
    whole: float


class Figures(NamedTuple):
    """What a stage came to: samples of programs and pages, and the most memory (MB) and connections that were seen."""

    stage: Stage
    program: list[Sample]
    page: list[Sample]
    errors: list[str]
    lost: int
    seconds: float
    memory: float
    connections: int


class BrokenAnswerError(Exception):
    """An answer without its beginning or its end."""


@dataclass
class Chat:
    """One user's chat as its user knows it.

    Attributes:
        name: No other chat's.
        token: What reads the chat back.
        session_ids: What it is called on the servers; more than one is a mistake of theirs.
        said: Each question, and what the stored answer has to end with.
    """

    name: str
    token: str
    session_ids: set[str] = field(default_factory=set)
    said: list[tuple[str, str]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def question(self, turn: int) -> str:
        return f"load-{self.name}t{turn} 지금까지의 일과 남은 예산을 정리해 주세요."

    def note(self, turn: int, text: str, first_words: float, whole: float) -> None:
        """Takes the milliseconds from the question to the sights of its answer less those that the endpoint took."""
        begin, end = (re.search(rf"{word}(\d+)", text) for word in ends_of(self.question(turn)))
        if begin is None or end is None:
            raise BrokenAnswerError(text[-80:])
        self.samples.append(Sample(first_words - int(begin[1]), whole - int(end[1])))

    def lost(self, sessions: Sequence[Sequence[tuple[str, str]]]) -> int:
        """Counts turns that are missing, other than they were shown, doubled, or there without having been asked for.

        A turn that failed may be there or not, and a chat that goes on without it is a branch: so turns aren't compared
        by their positions, and only a chat without an error has to be one session.

        Args:
            sessions: The questions and answers of each of its sessions, as they are stored.
        """
        stored = [turn for turns in sessions for turn in turns]
        missing = sum(
            not any(asked == q and text.endswith(ending) for q, text in stored) for asked, ending in self.said
        )
        branches = sessions if self.errors else [stored]
        doubled = sum(len(turns) - len({question for question, _ in turns}) for turns in branches)
        strange = sum(not question.startswith(f"load-{self.name}t") for question, _ in stored)
        return missing + doubled + strange


class Program:
    """A user's program, which sends its whole chat to one server and the other by turns."""

    def __init__(self, servers: Sequence[AsyncOpenAI], number: int, chat: Chat) -> None:
        self._servers = servers
        self._number = number
        self._messages: list[dict[str, str]] = []
        self.chat = chat

    async def ask(self, turn: int) -> None:
        question = self.chat.question(turn)
        pieces, first_words = [], 0.0
        began = time.perf_counter()
        answered = await self._servers[(self._number + turn) % SERVERS].chat.completions.with_raw_response.create(
            model="turnfold",
            messages=[*self._messages, {"role": "user", "content": question}],
            stream=True,
            extra_headers={"Authorization": f"Bearer {self.chat.token}"},
        )
        async for chunk in answered.parse():
            if chunk.choices and (piece := chunk.choices[0].delta.content):
                first_words = first_words or time.perf_counter()
                pieces.append(piece)
        ended, text = time.perf_counter(), "".join(pieces)
        self.chat.session_ids.add(answered.headers["X-Turnfold-Session"])
        self.chat.note(turn, text, (first_words - began) * 1_000, (ended - began) * 1_000)
        self.chat.said.append((question, text))
        self._messages += [{"role": "user", "content": question}, {"role": "assistant", "content": text}]


class Reader:
    """A user at the page, in a window of his own."""

    def __init__(self, page: Page, chat: Chat) -> None:
        self._page = page
        self.chat = chat

    async def ask(self, turn: int) -> None:
        page, question = self._page, self.chat.question(turn)
        begin, end = ends_of(question)
        await page.evaluate(WATCH, [question, begin, end, ENDING.format(turn=turn)])
        await page.fill(FIELD, question)
        await page.press(FIELD, "Enter")
        await page.wait_for_function(HAS_SETTLED)
        seen = await page.evaluate(SEEN)
        text = await page.inner_text(f".st-key-turn_{turn}")
        self.chat.session_ids |= {*parse_qs(urlsplit(page.url).query)["session"]}
        self.chat.note(turn, text, seen["words"], seen["settled"])
        self.chat.said.append((question, text[text.index(end) :].split()[0]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--alone", type=int, default=30, help="how many turns the one user has")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    stages = (
        # A server's first answers take longer: it reads modules, and makes connections.
        Stage("warm", 1, SERVERS, SERVERS, 0.0),
        Stage("a", 1, 0, options.alone, _ALONE_PAUSE_SECONDS),
        Stage("b", 0, 1, options.alone, _ALONE_PAUSE_SECONDS),
        Stage("c", options.programs, 0, options.turns, _PAUSE_SECONDS),
        Stage("d", options.programs, options.pages, options.turns, _PAUSE_SECONDS),
    )
    with _serving(options.programs) as servers:
        figures = asyncio.run(_measure_all(stages, servers))[1:]
    for guide in _GUIDES if options.write else ():
        _write(ROOT / guide, _table(figures, guide))
    print("\n".join(_table(figures, "docs/scale.md")))
    errors, lost = sum(len(each.errors) for each in figures), sum(each.lost for each in figures)
    return verdict([(not errors, f"{errors} errors"), (not lost, f"{lost} turns lost or doubled")])


@contextmanager
def _serving(programs: int) -> Iterator[Servers]:
    """Runs a database, the endpoint and the servers while the block runs."""
    tokens = [f"token-of-user-number-{number:04}" for number in range(programs)]
    listed = [f"user{number}:user{number}:{token}" for number, token in enumerate(tokens)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-load-")))
        database = stack.enter_context(serve_postgres()).make_database()
        # A summary of the length that is asked for: about a third of three turns.
        endpoint = stack.enter_context(serving(summary_seconds=0.5))
        settings = {
            **model_settings(endpoint.url),
            "CHAT_DATABASE_URL": database,
            "TURNFOLD_DATA_DIR": str(folder / "data"),
            "TURNFOLD_OWNER": OWNER,
            "CHAT_API_TOKENS": ",".join([*listed, f"pages:{OWNER}:{_PAGE_TOKEN}"]),
            "CONCURRENT_TURNS": "1000",
        }
        apps = [stack.enter_context(started(folder / f"server{number}", settings)) for number in range(SERVERS)]
        yield Servers([app.port for app in apps], [app.process.pid for app in apps], tokens, database)


async def _measure_all(stages: Sequence[Stage], servers: Servers) -> list[Figures]:
    figures = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**chromium())
        for stage in stages:
            print(f"{stage.programs} programs, {stage.pages} pages, {stage.turns} turns each", flush=True)
            figures.append(await _measure(stage, servers, browser))
            for error in figures[-1].errors[:5]:
                print(f"  {error}", flush=True)
        await browser.close()
    return figures


async def _measure(stage: Stage, servers: Servers, browser: Browser) -> Figures:
    """Has all users of a stage do their work, then reads everything back."""
    programs = [Chat(f"{stage.name}u{number}", servers.tokens[number]) for number in range(stage.programs)]
    pages = [Chat(f"{stage.name}p{number}", _PAGE_TOKEN) for number in range(stage.pages)]
    clients = [
        AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="-", max_retries=0, timeout=_PATIENCE_SECONDS)
        for port in servers.ports
    ]
    users: list[Program | Reader] = [Program(clients, number, chat) for number, chat in enumerate(programs)]
    windows = []
    for number, chat in enumerate(pages):  # one after another, as one browser loads them all
        windows.append(await browser.new_context(**WINDOW))
        page = await windows[-1].new_page()
        page.set_default_timeout(_PATIENCE_SECONDS * 1_000)
        try:
            await page.goto(f"http://127.0.0.1:{servers.ports[number % SERVERS]}/")
            await page.wait_for_selector(SETTLED)
            users.append(Reader(page, chat))
        except Error as error:
            chat.errors.append(f"{type(error).__name__}: {error}")
    seen = [(0.0, 0)]
    began = time.perf_counter()
    async with _watching(servers, seen):
        await asyncio.gather(*(_hold(user, stage) for user in users))
    seconds = time.perf_counter() - began
    for opened in (*clients, *windows):
        await opened.close()
    chats = [*programs, *pages]
    return Figures(
        stage,
        [sample for chat in programs for sample in chat.samples],
        [sample for chat in pages for sample in chat.samples],
        [error for chat in chats for error in chat.errors],
        await _count_lost(chats, servers.ports[-1]),
        seconds,
        max(memory for memory, _ in seen),
        max(connections for _, connections in seen),
    )


async def _hold(user: Program | Reader, stage: Stage) -> None:
    """Has a user's questions answered with his pauses; one that fails isn't asked again, and ends a page."""
    pauses = random.Random(user.chat.name)
    await asyncio.sleep(pauses.uniform(0, stage.pause_seconds))
    for turn in range(1, stage.turns + 1):
        try:
            await user.ask(turn)
        except (OpenAIError, Error, BrokenAnswerError) as error:
            user.chat.errors.append(f"{type(error).__name__}: {error}")
            if isinstance(user, Reader):
                return
        await asyncio.sleep(pauses.uniform(0.5, 1.5) * stage.pause_seconds)


@asynccontextmanager
async def _watching(servers: Servers, seen: list[tuple[float, int]]) -> AsyncIterator[None]:
    """Looks every two seconds while the block runs, and at its end, what memory and connections the servers hold."""

    def look() -> None:
        listed = ",".join(map(str, servers.process_ids))
        sizes = subprocess.run(["ps", "-o", "rss=", "-p", listed], capture_output=True, check=True, text=True)
        with psycopg.connect(servers.database) as connection:
            (connections,) = connection.execute(_CONNECTIONS).fetchone()
        seen.append((sum(map(int, sizes.stdout.split())) * 1_024 / 1e6, connections))

    async def watch() -> None:
        while True:
            await asyncio.to_thread(look)
            await asyncio.sleep(2)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
    await asyncio.to_thread(look)


async def _count_lost(chats: Sequence[Chat], port: int) -> int:
    """Reads all chats back from a server; any has them all."""
    lost = 0
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
        for chat in chats:
            sessions = []
            for session_id in chat.session_ids:
                answer = await client.get(
                    f"/sessions/{session_id}/turns?last=1000", headers={"Authorization": f"Bearer {chat.token}"}
                )
                turns = answer.raise_for_status().json()["turns"]
                sessions.append([(turn["user_text"], turn["answer_text"]) for turn in turns])
            lost += chat.lost(sessions)
    return lost


def _table(figures: Sequence[Figures], guide: str) -> list[str]:
    """Returns the figures as a table, a stage a column; the first two are of one program and of one page."""
    programs, pages = _GUIDES[guide]
    heads = [
        ", ".join(f"{word}: {count}" for word, count in ((programs, each.programs), (pages, each.pages)) if count)
        for each in (one.stage for one in figures)
    ]
    rows = _TABLE.search((ROOT / guide).read_text(encoding="utf-8"))[0].splitlines()[2:]
    names = [row.split("|")[1].strip() for row in rows]
    columns = [list(_column(number, figures)) for number in range(len(figures))]
    return list(table(["", *heads], zip(names, *columns, strict=True)))


def _write(path: Path, lines: Sequence[str]) -> None:
    whole = "".join(f"{line}\n" for line in lines)
    path.write_text(_TABLE.sub(lambda _: whole, path.read_text(encoding="utf-8")), encoding="utf-8")


def _column(number: int, figures: Sequence[Figures]) -> Iterator[str]:
    each = figures[number]
    answers = len(each.program) + len(each.page)
    yield from (str(answers), str(len(each.errors)), str(each.lost), f"{answers / each.seconds:.1f}")
    for samples, of_one in ((each.program, figures[0].program), (each.page, figures[1].page)):
        sights = [[*column] for column in zip(*samples, strict=True)]
        ones = [[*column] for column in zip(*of_one, strict=True)]
        yield from (f"{_percentile(0.5, sight):,.0f} / {_percentile(0.99, sight):,.0f}" for sight in sights)
        if sights and ones:
            pairs = zip(sights, ones, strict=True)
            yield " / ".join(f"{_percentile(0.99, sight) / _percentile(0.99, one):.1f}" for sight, one in pairs)
        else:
            yield from ("–",) * (3 - len(sights))
    yield from (str(each.connections), f"{each.memory:.0f}")
    # What each program or page needs that the stage before hadn't; a stage adds one kind alone.
    if number < 2:
        yield "–"
        return
    before, grown = figures[number - 1].stage, each.memory - figures[number - 1].memory
    counts = (each.stage.programs - before.programs, each.stage.pages - before.pages)
    yield " / ".join(f"{grown / more:.1f}" if more > 0 else "–" for more in counts)


def _percentile(share: float, values: Sequence[float]) -> float:
    """Returns the smallest value that at least so large a share of all of them doesn't pass."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


if __name__ == "__main__":
    sys.exit(main())
