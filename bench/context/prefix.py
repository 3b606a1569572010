"""Folds asked for behind the chat itself, on its cached prefix, beside the same folds with their sources quoted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from bench.context.contenders import Meter, OurRun, full_history, play
from bench.context.script import ScriptedTurn
from bench.report import Requirement, percent, table
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


class View(NamedTuple):
    """The same chat with quoted folds, with folds in place, and with the full history."""

    answer_chars: int
    quoted: Meter
    in_place: Meter
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
    quoted, in_place, full = Meter(), Meter(), Meter()
    for meter in (quoted, in_place):
        run = OurRun(IntervalStrategy(Limits()), meter, is_in_place=meter is in_place)
        play(run.prepare, meter, script, lambda *_: None)
    play(full_history, full, script, lambda *_: None)
    return View(answer_chars, quoted, in_place, full)


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
