"""A turn through the service: its statements, and its CPU beside that of a bare LangGraph chat on the same endpoint."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from bench.endpoint import MODEL, summary_for
from bench.report import Requirement
from bench.store import SpeakingModel
from bench.turn.counted import Counted, Kind, Turn, bounds, print_counted
from bench.turn.session import Session, fill, question, settings_of
from graph.fold.review import SummaryDraft
from graph.model.caller import ModelCaller
from graph.model.factory import ChatModels
from graph.model.summariser import ExtractiveSummariser
from graph.server.settings import Settings
from graph.service import open_service
from tests.fake.scripted_model import ScriptedSummariser, scripted_models

MOST: dict[Kind, int] = {"no fold": 18, "makes a fold": 30, "takes a fold": 30}
MOST_LATER = 20  # without a fold, in a long session or behind blocks whose folds fail
MAX_CPU_RATIO = 1.5
_COUNTED_TURNS = 12
_DUE_TURNS = 9  # three blocks
_TITLE_SECONDS = 1.0  # a session has its title by then, which is asked for with its first turns
_PACE = "word"  # words that come at once are read together, or not, as the machine is busy
_ROUND_TURNS = 6  # two blocks of interval, so that each round has as many folds


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
        for _ in self._graph.stream({"messages": [HumanMessage(question(self._number, _PACE))]}, config):
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


def measure(folder: Path, url: str, *, turns: int, rounds: int, has_where: bool) -> Iterator[Requirement]:
    """Measures a service in this process; its long session has so many turns."""
    yield from _compare_cpu(folder, url, rounds)
    settings = settings_of(folder / "counted", url)
    counted = {**_count_short(settings), **_count_long(settings, turns)}
    print_counted("a turn through the service", counted, has_where=has_where)
    _, short, failing, long = counted.values()
    yield from bounds("a turn", short, MOST)
    yield from bounds(f"a turn at {turns}", long, {**MOST, "no fold": MOST_LATER})
    yield from bounds("three blocks whose folds fail", failing, {**MOST, "no fold": MOST_LATER})


def _count_short(settings: Settings) -> Counted:
    with open_service(settings) as service:
        session = Session(service, "short-session")
        first = session.counted()
        session.turn()
        time.sleep(_TITLE_SECONDS)
        turns = [session.counted() for _ in range(_COUNTED_TURNS)]
    failing = f"turn {_DUE_TURNS + 2}, three blocks whose folds fail"
    return {"turn 1": [first], f"turns 3 to {_COUNTED_TURNS + 2}": turns, failing: [_count_failing(settings)]}


def _count_failing(settings: Settings) -> Turn:
    """Counts a turn behind three blocks that are due, of which the oldest has failed before."""
    summariser = ScriptedSummariser()
    summariser.is_failing = True
    with open_service(settings, models=scripted_models(SpeakingModel(), summariser)) as service:
        session = Session(service, "failing-session")
        session.turn()
        session.name()
        service.sessions.configure("failing-session", strategy="window")
        for _ in range(_DUE_TURNS - 1):
            session.turn()
        service.sessions.configure("failing-session", strategy="interval")
        session.turn()
        return session.counted()


def _count_long(settings: Settings, turns: int) -> Counted:
    print(f"filling a session with {turns} turns", flush=True)
    fill(settings, ["long-session"], turns)
    with open_service(settings) as service:
        session = Session(service, "long-session")
        session.turn()
        last = turns + 1 + _COUNTED_TURNS
        return {f"turns {turns + 2} to {last}": [session.counted() for _ in range(_COUNTED_TURNS)]}


def _compare_cpu(folder: Path, url: str, rounds: int) -> Iterator[Requirement]:
    """Compares rounds of turns, one of each chat after the other: other load on the machine slows all alike."""
    chats: dict[str, Callable[[], None]] = {}
    with ExitStack() as stack:
        connection = stack.enter_context(closing(sqlite3.connect(folder / "bare.db", check_same_thread=False)))
        chats["bare LangGraph"] = BareChat(url, connection).turn
        for title, models in (("ours", None), ("ours, without the folds' calls", _without_fold_calls)):
            settings = settings_of(folder / title, url)
            opened = open_service(settings, models=models) if models else open_service(settings)
            chats[title] = Session(stack.enter_context(opened), "session", pace=_PACE).turn
        taken = {title: [] for title in chats}
        for _ in range(rounds + 1):
            for title, turn in chats.items():
                taken[title].append(_cpu_seconds(turn))
    print(f"CPU of a turn, turns {_ROUND_TURNS + 1} to {(rounds + 1) * _ROUND_TURNS}, medians of {rounds} rounds")
    # The first round reads modules and makes connections.
    medians = {title: median(seconds[1:]) for title, seconds in taken.items()}
    bare, *ours = medians.values()
    for title, seconds in medians.items():
        # The bare chat sends all of its history each time, so that it comes nearer with each round.
        ratios = [f"{mine / theirs:.2f}" for mine, theirs in zip(taken[title], taken["bare LangGraph"], strict=True)]
        print(f"  {title:32} {seconds * 1_000:6.1f} ms   by rounds {' '.join(ratios[1:])} x", flush=True)
    for title, seconds in zip(("the folds' calls included", "without them"), ours, strict=True):
        ratio = seconds / bare
        yield ratio <= MAX_CPU_RATIO, f"CPU beside LangGraph, {title:26} ratio {ratio:.2f} (at most {MAX_CPU_RATIO})"


def _cpu_seconds(turn: Callable[[], None]) -> float:
    """Returns what a turn takes, as the mean of a round."""
    began = time.process_time()
    for _ in range(_ROUND_TURNS):
        turn()
    return (time.process_time() - began) / _ROUND_TURNS
