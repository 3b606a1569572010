"""Folds asked for behind the chat itself, on its cached prefix, beside the same folds with their sources quoted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from bench.context.contenders import (
    CACHED_PRICE,
    SOURCE_TOKENS,
    Costs,
    Meter,
    OurRun,
    count_messages,
    count_tokens,
    full_history,
    play,
)
from bench.context.script import ScriptedTurn
from bench.report import Requirement, percent, table
from graph.core.model_input import History, Messages, ModelInput, SystemPart
from graph.fold.request import LastInput, SummaryRequest, price_in_place, price_quoted, request_in_place
from graph.fold.spec import FoldSpec
from graph.strategy.base import Limits
from graph.strategy.interval import IntervalStrategy

RESULT_TURNS = 50
_PAYS_UNTIL = {1_200: 38, 2_000: 38}
_BLOCK_TURNS = 3
_RESULT_CHARS = 10_000
_METHOD = (
    "With one model for chat and summaries and a provider's cache, the product asks for a fold behind the chat "
    "itself (`FOLD_IN_PLACE=auto`): the last input is then an unchanged prefix, at a tenth of the price; its "
    "answer and the instruction are new. Where a quote of the block is cheaper, and for merges, it quotes. The "
    "same script, costs with a cache and one model, in thousands of input tokens. The tools' schemas are counted "
    "nowhere."
)
_COLUMNS = (
    "answers;turns;quoted;in place;summaries' input, quoted / in place;cached share of the requests;"
    "pays from turn, quoted / in place"
).split(";")


@dataclass
class PrefixMeter(Meter):
    """Totals of a run whose folds are asked for in place where the product does so."""

    request: SummaryRequest | None = None  # in place, of the fold that is being made; None if it's quoted
    cached_tokens: int = 0  # the part of `summary_in_tokens` that the chat's call before had sent
    new_tokens: int = 0  # what the requests in place have behind that
    # At the end of each turn, so far: what the summaries' input costs, and the cached share of the requests in place.
    marks: list[tuple[float, float]] = field(default_factory=list)

    def summary(self, prompt: str, draft: str) -> None:
        """Counts one call of the summary model; `prompt` is what it would read if its source were quoted."""
        if self.request is None:
            super().summary(prompt, draft)
            return
        *prefix, answer, instruction = self.request.messages
        cached_tokens, new_tokens = count_messages(prefix), count_messages([answer, instruction])
        self.cached_tokens += cached_tokens
        self.new_tokens += new_tokens
        self.summary_in_tokens += cached_tokens + new_tokens
        self.summary_out_tokens += count_tokens(draft)

    def end_turn(self) -> None:
        super().end_turn()
        share = self.cached_tokens / max(1, self.cached_tokens + self.new_tokens)
        self.marks.append((self.summary_in_cost, share))

    @property
    def summary_in_cost(self) -> float:
        """What the summaries' input costs, in tokens at full price."""
        return self.summary_in_tokens - (1 - CACHED_PRICE) * self.cached_tokens

    @property
    def costs(self) -> Costs:
        """As `Meter.costs`; the prefix of a request in place is cached in the first of the three alone."""
        cached, small, plain = super().costs
        return cached - self.summary_in_tokens + self.summary_in_cost, small, plain


class _Remembered(IntervalStrategy):
    """The product's default strategy; remembers the last input that it built."""

    built: ModelInput

    def assemble(self, system: SystemPart, history: History, messages: Messages) -> ModelInput:
        self.built = super().assemble(system, history, messages)
        return self.built


class _PrefixRun(OurRun):
    """One session with the default strategy, whose folds may be asked for in place, or are all quoted."""

    meter: PrefixMeter

    def __init__(self, *, is_in_place: bool) -> None:
        self._remembered = _Remembered(Limits())
        super().__init__(self._remembered, PrefixMeter())
        self._is_in_place = is_in_place

    def _fold(self, spec: FoldSpec) -> None:
        self.meter.request = self._request_for(spec) if self._is_in_place else None
        super()._fold(spec)

    def _request_for(self, spec: FoldSpec) -> SummaryRequest | None:
        """Returns the request in place as `worker.last_inputs` chooses it with a cache."""
        answer = self._archive[-1].message
        if not isinstance(answer, AIMessage):
            return None
        last = LastInput("bench", self._remembered.built, (), answer)
        request = request_in_place(last, spec)
        if request is None or price_in_place(last, request) >= price_quoted(spec, SOURCE_TOKENS):
            return None
        return request


class View(NamedTuple):
    """The same chat with quoted folds, with folds in place, and with the full history."""

    answer_chars: int
    quoted: PrefixMeter
    in_place: PrefixMeter
    full: Meter

    def costs_after(self, turns: int) -> tuple[float, float]:
        """Returns the costs with a cache and one model after so many turns: quoted, and in place."""
        quoted, in_place = (meter.costs_by_turn[turns - 1][0] for meter in (self.quoted, self.in_place))
        return quoted, in_place

    def pays_from(self, meter: Meter) -> int:
        """Returns the turn from which on the whole chat has cost less than with the full history, for good."""
        pairs = zip(meter.costs_by_turn, self.full.costs_by_turn, strict=True)
        return max((turn for turn, (costs, full) in enumerate(pairs, start=1) if costs[0] > full[0]), default=0) + 1

    def row(self, answers: str, turns: int) -> tuple[str, ...]:
        quoted, in_place = self.costs_after(turns)
        (quoted_cost, _), (in_place_cost, share) = self.quoted.marks[turns - 1], self.in_place.marks[turns - 1]
        return (
            answers,
            f"{turns:,}",
            f"{quoted / 1_000:,.1f}",
            f"{in_place / 1_000:,.1f}",
            f"{quoted_cost / 1_000:,.1f} / {in_place_cost / 1_000:,.1f}",
            percent(share),
            f"{self.pays_from(self.quoted)} / {self.pays_from(self.in_place)}",
        )


def view(script: Sequence[ScriptedTurn], answer_chars: int) -> View:
    """Plays a script with quoted folds, with folds in place, and with the full history."""
    runs = [_PrefixRun(is_in_place=is_in_place) for is_in_place in (False, True)]
    for run in runs:
        play(run.prepare, run.meter, script, lambda *_: None)
    full = Meter()
    play(full_history, full, script, lambda *_: None)
    return View(answer_chars, *(run.meter for run in runs), full)


def with_results(script: Sequence[ScriptedTurn]) -> list[ScriptedTurn]:
    """Returns the script with a long tool result in the second turn of each block."""
    return [_with_result(turn) if turn.number % _BLOCK_TURNS == _BLOCK_TURNS - 1 else turn for turn in script]


def _with_result(turn: ScriptedTurn) -> ScriptedTurn:
    number, (question, *_, answer) = turn.number, turn.messages
    call = tool_call(name="read_report", args={"number": number}, id=f"r{number}")
    rows = (
        f"Row {row} of report {number}: {row * number % 997} units, checked in week {row % 52}." for row in range(999)
    )
    said: list[AnyMessage] = [
        question,
        AIMessage("", tool_calls=[call], id=f"k{number}r"),
        ToolMessage("\n".join(rows)[:_RESULT_CHARS], tool_call_id=f"r{number}", id=f"t{number}r"),
        answer,
    ]
    return replace(turn, messages=tuple(said))


def check(views: Sequence[View], long_results: View, checkpoints: Sequence[int]) -> Iterator[Requirement]:
    for one in views:
        size = f"{one.answer_chars:,} characters"
        for turns in checkpoints:
            quoted, in_place = one.costs_after(turns)
            yield in_place < quoted, f"{size}, {turns:,} turns: in place {in_place:,.0f}, quoted {quoted:,.0f}"
        if until := _PAYS_UNTIL.get(one.answer_chars):
            turn = one.pays_from(one.in_place)
            yield (
                turn <= until,
                f"{size}: folding in place pays from turn {turn} on (quoted: {one.pays_from(one.quoted)})",
            )
    share = long_results.in_place.summary_in_cost / long_results.quoted.summary_in_cost
    yield (
        share <= 1 / 2,
        f"tool results of {_RESULT_CHARS:,} characters: the summaries' input costs {share:.0%} of quoted",
    )


def section(views: Sequence[View], long_results: View, checkpoints: Sequence[int]) -> Iterator[str]:
    """Yields the lines of the page about folds in place."""
    yield from ("## Folds in place", "", _METHOD, "")
    rows = [one.row(f"{one.answer_chars:,} characters", turns) for one in views for turns in checkpoints]
    answers = f"{long_results.answer_chars:,} characters, a tool result of {_RESULT_CHARS:,} in each block"
    yield from table(_COLUMNS, [*rows, long_results.row(answers, RESULT_TURNS)])
