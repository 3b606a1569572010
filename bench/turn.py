"""`make bench-turn`: what a turn costs besides the model: statements, transactions, CPU, and what idle tabs cost.

    python -m bench.turn [--turns 1000] [--rounds 7] [--where]

The statements are those to the product's own tables: LangGraph's and the watchers' (partial text, stop, lease) aren't
counted. The CPU is beside that of a bare LangGraph chat over the same endpoint. `--where` lists what the statements
come from.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from bench.endpoint import MODEL, serving, summary_for
from bench.report import Requirement, table, verdict
from bench.server import model_settings
from bench.statement import Counts, by_asker, by_caller, counting
from bench.store import SpeakingModel
from graph.fold.review import SummaryDraft
from graph.model.caller import ModelCaller
from graph.model.factory import ChatModels
from graph.model.summariser import ExtractiveSummariser
from graph.server.settings import Settings
from graph.service import ChatService, open_service
from graph.value.event import TurnFinished
from tests.fake.rows import read_rows
from tests.fake.scripted_model import ScriptedSummariser, scripted_models

MOST = {"no fold": 18, "makes a fold": 30, "takes a fold": 30}
MOST_LONG = 20
MOST_FAILING = 20
MAX_CPU_RATIO = 1.5
LONG = "long-session"
SHORT = "short-session"
FAILING = "failing-session"
_COUNTED_TURNS = 12
_DUE_TURNS = 9  # three blocks
_ROUND_TURNS = 6  # two blocks of interval, so that each round has as many folds
_TITLE_SECONDS = 1.0  # a session has its title by then, which is asked for with its first turns
_PATIENCE_SECONDS = 60


class Turn(NamedTuple):
    """One turn that was counted; `kind` tells what it had to do with folds."""

    kind: str
    counts: Counts


class Talk:
    """Runs turns in a session of a service, each until all that it has caused is done."""

    def __init__(self, service: ChatService, session_id: str) -> None:
        self._service = service
        self._session_id = session_id
        self._number = 0

    def turn(self) -> None:
        """Runs the next turn with its folds."""
        self._number += 1
        self._service.turns.send(self._session_id, _question(self._number), wait_seconds=_PATIENCE_SECONDS)
        ending = list(self._service.turns.follow(self._session_id, timeout_seconds=_PATIENCE_SECONDS))[-1]
        if not isinstance(ending, TurnFinished):
            sys.exit(f"turn {self._number} of {self._session_id} ended as {type(ending).__name__}")
        while not self._service._engine.fold_worker.is_idle(self._session_id):
            time.sleep(0.001)

    def counted(self) -> Turn:
        """Counts the next turn."""
        made, taken = self._records()
        with counting() as counts:
            self.turn()
        now_made, now_taken = self._records()
        kind = "takes a fold" if now_taken > taken else "makes a fold" if now_made > made else "no fold"
        return Turn(kind, counts)

    def _records(self) -> tuple[int, int]:
        """Returns how many records were made, and how many of them were ever taken."""
        query = "SELECT count(*), count(adopted_at) FROM record WHERE session_id = ? AND status = 'COMPLETED'"
        ((made, taken),) = read_rows(self._service.settings, query, self._session_id)
        return made, taken


class BareChat:
    """The shortest LangGraph chat with a memory that its documentation gives."""

    def __init__(self, url: str, connection: sqlite3.Connection) -> None:
        model = ChatOpenAI(model=MODEL, base_url=url, api_key="sk-bench")
        self._number = 0

        def answer(state: MessagesState) -> dict[str, list[AnyMessage]]:
            chunks = model.stream(state["messages"])
            whole = next(chunks)
            for chunk in chunks:
                whole += chunk
            return {"messages": [whole]}

        builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
        self._graph = builder.compile(checkpointer=SqliteSaver(connection))

    def turn(self) -> None:
        self._number += 1
        config = {"configurable": {"thread_id": "bare"}}
        for _ in self._graph.stream({"messages": [HumanMessage(_question(self._number))]}, config):
            pass


class ReadySummariser(ExtractiveSummariser):
    """Has the endpoint's summary at once, without a call."""

    name = MODEL

    def summarise(self, messages: Sequence[AnyMessage], target_chars: int, **_: Any) -> SummaryDraft:
        text = summary_for(" ".join(message.text for message in messages), target_chars)
        return SummaryDraft(text, 100, 500, is_usage=True)


class ModelsWithoutFolds(ChatModels):
    """The endpoint's chat model, and a summariser that calls nobody."""

    def summariser(self, _: str) -> ReadySummariser:
        return ReadySummariser()


@contextmanager
def _without_fold_calls(settings: Settings) -> Iterator[ChatModels]:
    with ModelCaller() as caller:
        models = ModelsWithoutFolds(settings, caller)
        try:
            yield models
        finally:
            models.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.turn")
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--where", action="store_true", help="list what the statements come from")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-bench-")))
        url = stack.enter_context(serving()).url
        return verdict(_measure_service(folder, url, options.turns, options.rounds, has_where=options.where))


def _measure_service(folder: Path, url: str, turns: int, rounds: int, *, has_where: bool) -> Iterator[Requirement]:
    settings = _settings(folder, url)
    with open_service(settings) as service:
        short = Talk(service, SHORT)
        counted = {"the first turn": [short.counted()]}
        short.turn()
        time.sleep(_TITLE_SECONDS)
        counted[f"turns 3 to {_COUNTED_TURNS + 2}"] = [short.counted() for _ in range(_COUNTED_TURNS)]
    counted[f"{_DUE_TURNS + 2} turns, three blocks whose folds fail"] = [_failing(settings)]
    print(f"filling a session with {turns} turns", flush=True)
    fill(settings, LONG, turns)
    with open_service(settings) as service:
        long = Talk(service, LONG)
        long.turn()
        counted[f"{turns} turns"] = [long.counted() for _ in range(_COUNTED_TURNS)]
    print("\n".join(_table(counted)), flush=True)
    if has_where:
        print("\n".join(_where(counted)), flush=True)
    first, short_turns, failing, long_turns = counted.values()
    yield from _bounds("a turn", short_turns, MOST)
    yield from _bounds(f"at {turns} turns", long_turns, {**MOST, "no fold": MOST_LONG})
    yield _bound("three blocks whose folds fail", failing, MOST_FAILING)
    yield from _compare_cpu(folder, url, rounds)


def _settings(folder: Path, url: str) -> Settings:
    values = {name.lower(): value for name, value in model_settings(url).items()}
    return Settings(_env_file=None, turnfold_data_dir=folder / "data", **values)


def fill(settings: Settings, session_id: str, turns: int) -> None:
    """Writes a session by turns of the product, with a chat model and a summariser that run in this process."""
    with open_service(settings, models=scripted_models(SpeakingModel(), ExtractiveSummariser())) as service:
        talk = Talk(service, session_id)
        for _ in range(turns):
            talk.turn()
        service.sessions.rename(session_id, session_id)  # or each turn looks whether it can have a title now


def _failing(settings: Settings) -> Turn:
    """Counts a turn behind three blocks that are due, of which the oldest has failed before."""
    summariser = ScriptedSummariser()
    summariser.is_failing = True
    with open_service(settings, models=scripted_models(SpeakingModel(), summariser)) as service:
        talk = Talk(service, FAILING)
        talk.turn()
        service.sessions.rename(FAILING, FAILING)
        service.sessions.configure(FAILING, strategy="window")
        for _ in range(_DUE_TURNS - 1):
            talk.turn()
        service.sessions.configure(FAILING, strategy="interval")
        talk.turn()
        return talk.counted()


def _table(counted: dict[str, list[Turn]]) -> Iterator[str]:
    head = ("a turn through the service", "turns", "statements", "most", "of them writes", "transactions", "writing")
    yield from table(head, _rows(counted))


def _rows(counted: dict[str, list[Turn]]) -> Iterator[Sequence[str]]:
    for title, turns in counted.items():
        for kind, counts in _kinds(turns).items():
            sizes = [len(each.statements) for each in counts]
            changes = [len(each.statements) - each.by("verb")["SELECT"] for each in counts]
            transactions = [each.transactions for each in counts]
            writing = [each.writing for each in counts]
            figures = map(f"{{:.0f}}".format, map(median, (changes, transactions, writing)))
            yield f"{title}, {kind}", str(len(counts)), f"{median(sizes):.0f}", str(max(sizes)), *figures


def _kinds(turns: Sequence[Turn]) -> dict[str, list[Counts]]:
    return {kind: found for kind in MOST if (found := [turn.counts for turn in turns if turn.kind == kind])}


def _where(counted: dict[str, list[Turn]]) -> Iterator[str]:
    for title, turns in counted.items():
        for kind, counts in _kinds(turns).items():
            statements = [statement for each in counts for statement in each.statements]
            times = len(counts)
            yield f"\n## {title}, {kind}: {len(statements) / times:.1f} statements a turn"
            for name in ("thread", "verb"):
                found = sum((each.by(name) for each in counts), start=Counts().by(name))
                yield f"by {name}: " + ", ".join(f"{word} {count / times:.1f}" for word, count in found.most_common())
            yield "\nwho asked, and whom:"
            yield from by_asker(statements, times)
            yield "\nwhich store, and who asked it:"
            yield from by_caller(statements, times)


def _bounds(title: str, turns: Sequence[Turn], most: dict[str, int]) -> Iterator[Requirement]:
    for kind in _kinds(turns):
        yield _bound(f"{title}, {kind}", [turn for turn in turns if turn.kind == kind], most[kind])


def _bound(title: str, turns: Sequence[Turn], most: int) -> Requirement:
    count = max(len(turn.counts.statements) for turn in turns)
    return count <= most, f"{title:40} {count:4} statements (at most {most})"


def _compare_cpu(folder: Path, url: str, rounds: int) -> Iterator[Requirement]:
    """Compares rounds of turns, one of each chat after the other: other load on the machine slows all alike."""
    with ExitStack() as stack:
        connection = sqlite3.connect(folder / "bare.db", check_same_thread=False)
        bare = BareChat(url, stack.enter_context(closing(connection)))
        ours = Talk(stack.enter_context(open_service(_settings(folder / "cpu", url))), SHORT)
        models = _without_fold_calls
        without = Talk(stack.enter_context(open_service(_settings(folder / "without", url), models=models)), SHORT)
        taken: dict[Any, list[float]] = {chat: [] for chat in (bare, ours, without)}
        for _ in range(rounds + 1):
            for chat, seconds in taken.items():
                seconds.append(_cpu_seconds(chat.turn) / _ROUND_TURNS)
    # The first round reads modules and makes connections.
    bare_seconds, our_seconds, without_seconds = (median(seconds[1:]) for seconds in taken.values())
    turns = f"turns {_ROUND_TURNS + 1} to {(rounds + 1) * _ROUND_TURNS}"
    print(f"CPU of a turn, {turns}, medians of {rounds} rounds")
    for title, seconds in (
        ("bare LangGraph", bare_seconds),
        ("ours", our_seconds),
        ("ours, without the folds' calls", without_seconds),
    ):
        print(f"  {title:32} {seconds * 1_000:6.1f} ms   {seconds / bare_seconds:.2f} x", flush=True)
    for title, seconds in (("the folds' calls included", our_seconds), ("without them", without_seconds)):
        ratio = seconds / bare_seconds
        yield ratio <= MAX_CPU_RATIO, f"CPU beside LangGraph, {title:26} ratio {ratio:.2f} (at most {MAX_CPU_RATIO})"


def _cpu_seconds(turn: Callable[[], None]) -> float:
    began = time.process_time()
    for _ in range(_ROUND_TURNS):
        turn()
    return time.process_time() - began


def _question(number: int) -> str:
    return f"now-{number} 다음 단계와 남은 예산을 정리해 주세요. ({number})"


if __name__ == "__main__":
    sys.exit(main())
