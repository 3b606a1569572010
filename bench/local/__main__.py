"""`make bench-local`: twenty turns with a real model on a server with one slot; writes docs/bench-local.md."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final, Literal

from bench.local.proxy import Call, Proxy, counting_proxy
from bench.local.script import MESSAGES
from bench.local.served import WINDOW_TOKENS, NoLocalModelError, install, served_model
from bench.report import Requirement, table, verdict, write_page
from bench.server import ROOT
from graph.fold.spec import should_summarize
from graph.server.settings import Settings
from graph.service import ChatService, open_service
from graph.value.event import FoldWaiting, TokenDelta, TurnFinished

Mode = Literal["auto", "always", "never"]
Pace = Literal["with pauses", "beside folds", "writing on"]

# Writing on, no fold is made before the end, so how they are asked for makes no difference.
_RUNS: Final[tuple[tuple[Pace, Mode], ...]] = (
    ("with pauses", "auto"),
    ("with pauses", "always"),
    ("with pauses", "never"),
    ("beside folds", "auto"),
    ("writing on", "auto"),
)
_MOST_TOKENS: Final = 7_757
_MOST_MEDIAN: Final = 1.5
_MOST_TIMES: Final = 3.0
_PATIENCE_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Turn:
    """One turn as its user has seen it.

    Attributes:
        first_seconds: From the message to the first word of the answer.
        evaluated: Prompt tokens that the server read for it.
        cached: Prompt tokens that it had already.
        is_beside_fold: The message was sent while a fold, a repair or a title was being made.
        has_waited: The turn said that it waits for a fold.
    """

    first_seconds: float
    evaluated: int
    cached: int
    is_beside_fold: bool
    has_waited: bool


@dataclass
class Run:
    """One chat."""

    mode: Mode
    pace: Pace
    turns: list[Turn] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    folds: int = 0
    records: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def evaluated(self) -> int:
        return sum(call.evaluated or 0 for call in self.calls)

    def firsts(self, *, beside_fold: bool) -> list[float]:
        """The seconds to the first word of the turns, but for the first, whose prompt nothing has read before."""
        return [turn.first_seconds for turn in self.turns[1:] if turn.is_beside_fold == beside_fold]


def main() -> int:
    try:
        python = install()
    except NoLocalModelError as error:
        print(f"not measured: {error}")
        return 1
    runs = []
    for pace, mode in _RUNS:
        with served_model(python) as address, counting_proxy(address) as proxy:
            runs.append(_run(proxy, mode, pace))
        _say(runs[-1])
    requirements = list(_requirements(runs))
    write_page(ROOT / "docs" / "bench-local.md", _page(runs), requirements)
    return verdict(requirements)


def _run(proxy: Proxy, mode: Mode, pace: Pace) -> Run:
    run = Run(mode, pace)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, open_service(_settings(proxy, mode, Path(folder))) as service:
        session_id = "moving"
        for number, message in enumerate(MESSAGES, start=1):
            if number > 1 and (pace == "writing on" or (pace == "beside folds" and should_summarize(number))):
                _wait_for_background(service, session_id, proxy)
            else:
                _wait_until_idle(service, session_id, proxy)
            run.turns.append(_turn(service, session_id, proxy, message))
        _wait_until_idle(service, session_id, proxy)
        run.records = [f"{record.turns[0]}-{record.turns[-1]} {record.outcome}" for record in service.folds.records(session_id)]
        run.folds = service.folds.statistics(session_id).record_count
    run.calls, run.seconds = list(proxy.calls), time.monotonic() - began
    return run


def _settings(proxy: Proxy, mode: Mode, folder: Path) -> Settings:
    return Settings(
        _env_file=None,
        openai_base_url=proxy.url,
        openai_api_key=None,
        chat_model="smollm2",
        turnfold_data_dir=folder,
        model_window_tokens=WINDOW_TOKENS,
        model_deadline_seconds=600,
        fold_deadline_seconds=600,
        fold_in_place=mode,
    )


def _turn(service: ChatService, session_id: str, proxy: Proxy, message: str) -> Turn:
    is_beside = _is_busy(proxy)
    before, began = len(proxy.calls), time.monotonic()
    first_at, has_waited, last = None, False, None
    service.turns.send(session_id, message)
    for event in service.turns.follow(session_id):
        if isinstance(event, TokenDelta) and first_at is None:
            first_at = time.monotonic()
        has_waited = has_waited or isinstance(event, FoldWaiting)
        last = event
    if not isinstance(last, TurnFinished):
        print(f"  a turn ended by {last}")
    calls = [call for call in proxy.calls[before:] if call.kind == "chat"]
    return Turn(
        (first_at or time.monotonic()) - began,
        sum(call.evaluated or 0 for call in calls),
        sum(call.cached or 0 for call in calls),
        is_beside,
        has_waited,
    )


def _wait_until_idle(service: ChatService, session_id: str, proxy: Proxy) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    engine = service._engine
    while time.monotonic() < until:
        is_idle = engine.fold_worker.is_idle(session_id) and (engine.titles is None or engine.titles.is_idle(session_id))
        if is_idle and not proxy.running("summary", "title", "chat"):
            return
        threading.Event().wait(0.05)


def _wait_for_background(service: ChatService, session_id: str, proxy: Proxy) -> None:
    """Waits until a fold or a title is being made, if one is due: that is when the next message comes."""
    engine = service._engine
    until = time.monotonic() + 3.0
    while time.monotonic() < until and not _is_busy(proxy):
        if engine.fold_worker.is_idle(session_id) and engine.titles.is_idle(session_id):
            return
        threading.Event().wait(0.02)
    threading.Event().wait(0.5)


def _is_busy(proxy: Proxy) -> bool:
    """Whether a fold or a title is being made: between two turns every call is for one of them."""
    return proxy.running("summary", "title", "chat")


def _say(run: Run) -> None:
    print(f"{run.pace}, {run.mode}: {run.evaluated} tokens evaluated, {run.folds} folds, {run.seconds:.0f} s", flush=True)
    for number, turn in enumerate(run.turns, start=1):
        beside = " beside a fold" if turn.is_beside_fold else ""
        waited = " waited" if turn.has_waited else ""
        print(f"  {number:2} {turn.first_seconds:6.1f} s  {turn.evaluated:5} + {turn.cached:5}{beside}{waited}", flush=True)
    print("  " + "; ".join(run.records))
    usual = median(run.firsts(beside_fold=False) or [1.0])
    print("  beside a fold, times the median of the others: " + ", ".join(f"{each / usual:.1f}" for each in run.firsts(beside_fold=True)))
    for kind in ("chat", "summary", "title"):
        calls = [call for call in run.calls if call.kind == kind]
        stopped = sum(not call.is_whole for call in calls)
        print(f"  {kind}: {len(calls)} calls, {stopped} stopped, {sum(call.evaluated or 0 for call in calls)} tokens")


def _requirements(runs: Iterable[Run]) -> Iterator[Requirement]:
    for run in runs:
        if run.mode == "never":
            continue
        name = f"`{run.mode}`, {run.pace}"
        yield run.evaluated <= _MOST_TOKENS, f"{name}: {run.evaluated:,} tokens evaluated, at most {_MOST_TOKENS:,}"
        ordinary, beside = run.firsts(beside_fold=False), run.firsts(beside_fold=True)
        if beside and ordinary:
            usual = median(ordinary)
            typical, worst = median(beside) / usual, max(beside) / usual
            yield typical <= _MOST_MEDIAN, (
                f"{name}: {len(beside)} messages sent beside a fold or a title had their first word after {typical:.1f} "
                f"times the median of the others, at most {_MOST_MEDIAN}"
            )
            yield worst <= _MOST_TIMES, f"{name}: the slowest of them after {worst:.1f} times, at most {_MOST_TIMES}"


def _page(runs: Iterable[Run]) -> Iterator[str]:
    introduction = (Path(__file__).with_name("introduction.md")).read_text(encoding="utf-8").rstrip()
    yield from introduction.splitlines()
    yield ""
    head = "pace;`FOLD_IN_PLACE`;evaluated in all;chat;folds;title;calls stopped;folds adopted;cached share;s".split(";")
    yield from table(head, map(_figures, runs), left=2)
    yield ""
    yield "First word, in seconds: median and slowest."
    yield ""
    yield from table(["pace", "`FOLD_IN_PLACE`", "ordinary turns", "sent beside a fold", "of these"], map(_firsts, runs), left=2)
    yield ""


def _figures(run: Run) -> list[str]:
    def evaluated(kind: str) -> int:
        return sum(call.evaluated or 0 for call in run.calls if call.kind == kind)

    cached = sum(call.cached or 0 for call in run.calls)
    return [
        run.pace,
        f"`{run.mode}`",
        f"{run.evaluated:,}",
        *(f"{evaluated(kind):,}" for kind in ("chat", "summary", "title")),
        str(sum(not call.is_whole for call in run.calls)),
        str(run.folds),
        f"{cached / max(1, cached + run.evaluated):.0%}",
        f"{run.seconds:.0f}",
    ]


def _firsts(run: Run) -> list[str]:
    def both(seconds: list[float]) -> str:
        return f"{median(seconds):.1f} / {max(seconds):.1f}" if seconds else "–"

    beside = run.firsts(beside_fold=True)
    return [run.pace, f"`{run.mode}`", both(run.firsts(beside_fold=False)), both(beside), str(len(beside))]


if __name__ == "__main__":
    sys.exit(main())
