"""A turn on the page beside a bare Streamlit chat, the opening of a chat, and tabs that nobody touches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext, Page

from bench.attack.watch import cpu_seconds, memory
from bench.browser import ENDING, SETTLED, WINDOW, Chat, Wire, opened_browser
from bench.page import BARE
from bench.report import Requirement, table
from bench.server import ROOT, App, model_settings, started
from bench.turn.counted import Turn, bound, kind_of, print_counted, records_of
from bench.turn.session import fill, settings_of
from bench.turn.statement import Counts, counting_at
from graph.server.settings import Settings
from tests.fake.port import free_port

MOST_OF_TURN = 45
MOST_OF_OPENING = 20
MAX_CPU_RATIO = 2.0
MOST_A_SECOND = 1  # for all idle tabs together
MAX_IDLE_SHARE = 0.01  # of a core, for ten of them or fewer
PACES = {"ask": "33 words a second", "now": "an answer at once"}  # Streamlit sends words that come at once together
TABS = (1, 10, 50)
_OPENED = "opened-session"
_OPENED_TURNS = 200
_IDLE = "idle-session-{}"
_IDLE_TURNS = 4  # so that there is a fold to be shown
_COUNTED_TURNS = 6
_OPENINGS = 3
_REST_SECONDS = 2.0  # the folds of a turn are made by then, and the page shows them
_SETTLE_SECONDS = 5.0
_PATIENCE_SECONDS = 300  # fifty tabs begin at once
_COUNT_SECONDS = 10.0
_CPU_SECONDS = 20.0


class Server(NamedTuple):
    """A server that is measured: its process and port, and where it is asked for its counts."""

    app: App
    count_port: int = 0


class Idle(NamedTuple):
    """What a server does for tabs that nobody touches: share of a core, MiB, statements a second."""

    share: float
    memory: float
    statements: float = 0.0


def measure(
    stack: ExitStack, folder: Path, url: str, *, rounds: int, tabs: Sequence[int], has_where: bool
) -> Iterator[Requirement]:
    """Measures the page in a browser, before servers of its own; `tabs` says how many idle ones."""
    print("filling the page's sessions", flush=True)
    settings = settings_of(folder / "page", url)
    fill(settings, [_OPENED], _OPENED_TURNS)
    fill(settings, map(_IDLE.format, range(tabs[-1])), _IDLE_TURNS)
    environment = model_settings(url)
    port = free_port()
    runner = ("bench.turn.statement", str(port))
    counted = {**environment, "PYTHONPATH": str(ROOT)}
    ours = Server(stack.enter_context(started(folder / "page", counted, runner=runner)), port)
    past = {"PAST_TURNS": "0", "PAST_TEXT": ""}
    bare = Server(stack.enter_context(started(folder / "bare", {**environment, **past}, script=BARE)))
    browser = stack.enter_context(opened_browser())
    yield from _measure_turns(browser, ours, bare, settings, rounds, has_where=has_where)
    yield from _measure_opening(browser, ours, has_where=has_where)
    yield from _measure_idle(browser, ours, bare, (0, *tabs), has_where=has_where)


def _measure_turns(
    browser: Browser, ours: Server, bare: Server, settings: Settings, rounds: int, *, has_where: bool
) -> Iterator[Requirement]:
    """Compares the CPU of turns on both pages, one by one, then counts turns of ours."""
    with ExitStack() as stack:
        chats = []
        for server, ending in ((bare, ""), (ours, ENDING)):
            wire = stack.enter_context(closing(Wire(server.app.port)))
            context = stack.enter_context(closing(browser.new_context(**WINDOW)))
            chats.append(Chat(context, wire, ending=ending))
        _, our_chat = chats
        for turn in (1, 2):  # with them a server reads modules, and the session has its title
            for chat in chats:
                chat.ask(_question(turn), turn)
        our_chat.page.wait_for_timeout(_REST_SECONDS * 1_000)
        turn = 3
        for pace, how in PACES.items():
            taken: dict[str, list[float]] = {"bare Streamlit": [], "ours": []}
            for turn in range(turn, turn + rounds):
                for chat, server, seconds in zip(chats, (bare, ours), taken.values(), strict=True):
                    before = cpu_seconds(server.app.process.pid)
                    _ask(chat, turn, pace)
                    seconds.append(cpu_seconds(server.app.process.pid) - before)
            yield _cpu(taken, how)
            turn += 1
        first, last = turn, turn + _COUNTED_TURNS - 1
        turns = [_counted(our_chat, ours, settings, turn) for turn in range(first, last + 1)]
        print_counted("a turn on the page", {f"turns {first} to {last}": turns}, has_where=has_where)
        yield bound("a turn on the page, median", median(turn.size for turn in turns), MOST_OF_TURN)


def _cpu(taken: Mapping[str, Sequence[float]], how: str) -> Requirement:
    theirs, ours = map(median, taken.values())
    print(f"the server's CPU of a turn on the page, {how}, medians")
    for title, seconds in taken.items():
        listed = " ".join(f"{each * 1_000:.0f}" for each in seconds)
        print(f"  {title:16} {median(seconds) * 1_000:6.0f} ms   by turns {listed}", flush=True)
    words = f"CPU beside the bare Streamlit chat, {how:20} ratio {ours / theirs:.2f} (at most {MAX_CPU_RATIO})"
    return ours / theirs <= MAX_CPU_RATIO, words


def _counted(chat: Chat, server: Server, settings: Settings, turn: int) -> Turn:
    before = records_of(settings)
    with counting_at(server.count_port) as counts:
        _ask(chat, turn)
    return Turn(kind_of(before, records_of(settings)), counts)


def _ask(chat: Chat, turn: int, pace: str = "ask") -> None:
    chat.ask(_question(turn, pace), turn)
    chat.page.wait_for_timeout(_REST_SECONDS * 1_000)


def _question(turn: int, pace: str = "ask") -> str:
    return f"{pace}-{turn} 지금까지의 일과 남은 예산을 알려 주세요."


def _measure_opening(browser: Browser, ours: Server, *, has_where: bool) -> Iterator[Requirement]:
    openings = []
    for _ in range(_OPENINGS):
        with closing(browser.new_context(**WINDOW)) as context, counting_at(ours.count_port) as counts:
            _begin(context, ours, f"/?session={_OPENED}").wait_for_selector(SETTLED)
            time.sleep(1)  # what is drawn once more behind the first sight
        openings.append(Turn("no fold", counts))
    title = f"a chat of {_OPENED_TURNS} turns"
    print_counted("opening on the page", {title: openings}, has_where=has_where)
    yield bound(f"opening {title}", max(opening.size for opening in openings), MOST_OF_OPENING)


def _begin(context: BrowserContext, server: Server, path: str) -> Page:
    """Opens a tab without waiting for what it shows."""
    page = context.new_page()
    page.set_default_timeout(_PATIENCE_SECONDS * 1_000)
    page.goto(f"http://127.0.0.1:{server.app.port}{path}", wait_until="commit")
    return page


def _measure_idle(
    browser: Browser, ours: Server, bare: Server, tabs: Sequence[int], *, has_where: bool
) -> Iterator[Requirement]:
    mine, counts = _idle(browser, ours, f"/?session={_IDLE}", tabs)
    theirs, _ = _idle(browser, bare, "/", tabs)
    head = ("idle tabs", "statements a second", "of a core", "MiB", "bare: of a core", "MiB")
    rows = (
        (
            str(number),
            f"{our.statements:.1f}",
            *(figure for each in (our, their) for figure in (f"{each.share:.2%}", f"{each.memory:.0f}")),
        )
        for number, our, their in zip(tabs, mine, theirs, strict=True)
    )
    print("\n".join(table(head, rows)), flush=True)
    if has_where:
        seconds = round(_COUNT_SECONDS)
        print_counted("idle tabs", {f"{tabs[-1]} tabs for {seconds} s": [Turn("no fold", counts)]}, has_where=True)
    for number, idle in list(zip(tabs, mine, strict=True))[1:]:
        words = f"{number:2} idle tabs, {idle.statements:.1f} statements a second in all (at most {MOST_A_SECOND})"
        yield idle.statements <= MOST_A_SECOND, words
        share, most = idle.share - mine[0].share, MAX_IDLE_SHARE * max(1.0, number / 10)
        yield share <= most, f"{number:2} idle tabs, {share:.4f} of a core (at most {most:.2f})"


def _idle(browser: Browser, server: Server, path: str, tabs: Sequence[int]) -> tuple[list[Idle], Counts]:
    """Opens more and more tabs, each on a session of its own; returns what was measured, and the counts of the last."""
    found, counts = [], Counts()
    process_id = server.app.process.pid
    with closing(browser.new_context(**WINDOW)) as context:
        for count in tabs:
            pages = [_begin(context, server, path.format(number)) for number in range(len(context.pages), count)]
            for page in pages:
                page.wait_for_selector(SETTLED)
            time.sleep(_SETTLE_SECONDS)
            if server.count_port:
                with counting_at(server.count_port) as counts:
                    time.sleep(_COUNT_SECONDS)
            before = cpu_seconds(process_id)
            time.sleep(_CPU_SECONDS)
            share = (cpu_seconds(process_id) - before) / _CPU_SECONDS
            found.append(Idle(share, memory(process_id), len(counts.statements) / _COUNT_SECONDS))
            idle = found[-1]
            print(f"  {count} tabs: {idle.share:.4f} of a core, {idle.statements:.1f} statements a second", flush=True)
    return found, counts
