"""Measures how many arguments of later tool calls (tau-bench) each contender keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from bench.quality.contender import PICKED, Shorten, contenders, count_chars
from bench.quality.section import RATES, Section
from graph.core.turn import split_turns, text_of
from graph.fold.spec import BLOCK_TURNS

FILE: Final = "gpt-4o-airline-first40.json"
_LEAST_CHARS: Final = 2
_LEAST_KEPT: Final = 0.85
_LEAST_RATE: Final = 0.3
_METHOD: Final = """\
Data: tau-bench, English, the first {runs} airline runs of gpt-4o with their tool results as they came (JSON), without
system messages: {chars:,} characters. For each tool call, the turns before its own are folded in threes, as the product
does. Each value of its arguments (text and numbers, nested ones too, at least two characters) that stands in these
folded turns is needed: n = {needs}; "only there" are those that the raw turns before the call don't have: n = {only}.
It is kept if the shortened text has it. Both are plain string containment at word boundaries, with no extractor of
ours; letter case, underscores and line breaks don't matter. Weights and rules were chosen by the figures of the even
runs (n = {tuned}) alone, not by those of the odd ones (n = {rest})."""


@dataclass(frozen=True)
class Need:
    """An argument of a tool call whose value was said in a turn that is folded when the call is made.

    Attributes:
        folded_turns: How many turns are folded by then, a multiple of three.
        value: The normalised value.
        is_only_there: Whether the value isn't in the raw turns before the call too.
    """

    folded_turns: int
    value: str
    is_only_there: bool


@dataclass(frozen=True)
class Kept:
    """The shares of values that a contender keeps: of all, of those only there, of odd and of even runs."""

    everything: float
    only_there: float
    rest: float
    tuned: float


def read_runs(path: Path) -> list[list[AnyMessage]]:
    """Returns the conversations of a tau-bench file, without system messages.

    Raises:
        FileNotFoundError: The file isn't there.
    """
    runs = json.loads(path.read_text(encoding="utf-8"))
    return [[message for said in run["traj"] for message in _to_messages(said)] for run in runs]


def needs(messages: Sequence[AnyMessage]) -> Iterator[Need]:
    """Yields the arguments that a fold must keep, in order; one whose value was never said before is left out."""
    turns = split_turns(messages)
    for number, turn in enumerate(turns, start=1):
        folded_turns = (number - 1) // BLOCK_TURNS * BLOCK_TURNS
        folded = normalise("\n".join(text_of(message) for old in turns[:folded_turns] for message in old))
        raw = [text_of(message) for old in turns[folded_turns : number - 1] for message in old]
        for message in turn:
            if isinstance(message, AIMessage):
                now = normalise("\n".join(raw))
                for call in message.tool_calls:
                    for value in argument_values(call["args"]):
                        if has_value(folded, value):
                            yield Need(folded_turns, value, is_only_there=not has_value(now, value))
            raw.append(text_of(message))


def argument_values(arguments: object) -> Iterator[str]:
    """Yields the normalised text and number values of a call's arguments, nested ones too; no single characters."""
    if isinstance(arguments, Mapping):
        for value in arguments.values():
            yield from argument_values(value)
    elif isinstance(arguments, list):
        for value in arguments:
            yield from argument_values(value)
    elif isinstance(arguments, str | int | float) and not isinstance(arguments, bool):
        value = normalise(str(arguments)).strip()
        if len(value) >= _LEAST_CHARS:
            yield value


def has_value(text: str, value: str) -> bool:
    """Whether a normalised text has the value, not as a part of a longer word or number."""
    return re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", text) is not None


def normalise(text: str) -> str:
    """Returns a text in lower case, with single spaces and without underscores."""
    return " ".join(text.replace("_", " ").split()).casefold()


def measure(folder: Path) -> Section:
    """Measures all contenders.

    Args:
        folder: Has `tau-bench`.

    Raises:
        FileNotFoundError: The data isn't there.
    """
    runs = read_runs(folder / "tau-bench" / FILE)
    needed = [list(needs(run)) for run in runs]
    kept = {name: [_average(runs, needed, ways, rate) for rate in RATES] for name, ways in contenders().items()}
    method = _METHOD.format(
        runs=len(runs),
        chars=sum(map(count_chars, runs)),
        needs=sum(map(len, needed)),
        only=sum(need.is_only_there for each in needed for need in each),
        tuned=sum(map(len, needed[::2])),
        rest=sum(map(len, needed[1::2])),
    )
    share = kept[PICKED][RATES.index(_LEAST_RATE)].everything
    return Section(
        "Arguments of later tool calls that picked sentences keep",
        method,
        tuple(_table(kept)),
        ((share >= _LEAST_KEPT, f"arguments at {_LEAST_RATE}: picked sentences keep {share:.0%} (at least 85 %)"),),
        {name: tuple(each.everything for each in by_rate) for name, by_rate in kept.items()},
    )


def keep(
    runs: Sequence[Sequence[AnyMessage]], needed: Sequence[Sequence[Need]], shorten: Shorten, rate: float
) -> list[list[bool]]:
    """Returns for each run and each of its needs whether the shortened folded turns have the value."""
    kept: list[list[bool]] = []
    for run, wanted in zip(runs, needed, strict=True):
        turns = split_turns(run)

        @cache
        def shortened(folded_turns: int, turns: Sequence[Sequence[AnyMessage]] = tuple(turns)) -> str:
            return normalise(shorten([message for turn in turns[:folded_turns] for message in turn], rate))

        kept.append([has_value(shortened(need.folded_turns), need.value) for need in wanted])
    return kept


def _average(
    runs: Sequence[Sequence[AnyMessage]], needed: Sequence[Sequence[Need]], ways: Sequence[Shorten], rate: float
) -> Kept:
    rows = [_shares(needed, keep(runs, needed, way, rate)) for way in ways]
    return Kept(*(mean(column) for column in zip(*rows, strict=True)))


def _shares(needed: Sequence[Sequence[Need]], kept: Sequence[Sequence[bool]]) -> tuple[float, float, float, float]:
    only = [
        hit
        for wanted, hits in zip(needed, kept, strict=True)
        for need, hit in zip(wanted, hits, strict=True)
        if need.is_only_there
    ]
    flat = [[hit for hits in half for hit in hits] for half in (kept, kept[1::2], kept[::2])]
    everything, rest, tuned, scarce = (sum(hits) / max(1, len(hits)) for hits in (*flat, only))
    return everything, scarce, rest, tuned


def _table(kept: Mapping[str, Sequence[Kept]]) -> Iterator[str]:
    yield f"| kept at {' / '.join(map(str, RATES))} | all | only there | odd runs | even runs |"
    yield "|---|---:|---:|---:|---:|"
    for name, by_rate in kept.items():
        columns = zip(*((each.everything, each.only_there, each.rest, each.tuned) for each in by_rate), strict=True)
        cells = " | ".join(" / ".join(f"{share:.0%}" for share in column) for column in columns)
        yield f"| {f'**{name}**' if name == PICKED else name} | {cells} |"


def _to_messages(said: Mapping[str, Any]) -> Iterator[AnyMessage]:
    text = said.get("content") or ""
    if said["role"] == "user":
        yield HumanMessage(text)
    elif said["role"] == "tool":
        yield ToolMessage(text, tool_call_id=said["tool_call_id"])
    elif said["role"] == "assistant":
        calls = [
            {"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
            for call in said.get("tool_calls") or []
        ]
        yield AIMessage(text, tool_calls=calls)
