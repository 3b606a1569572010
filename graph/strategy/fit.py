"""Shrinks a model input below its limit; the caller makes and stores the necessary folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from graph.core.ledger import lines_of
from graph.core.model_input import CONTEXT, CUT, History, Messages, ModelInput, SystemPart
from graph.core.pin import PIN, read_name
from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens
from graph.core.turn import extract_current_turn
from graph.fold.spec import FoldSpec
from graph.strategy.shrink import cut_results, guard_fold, shorten_verbatim, without_oldest, without_oldest_round

Assemble = Callable[[SystemPart, History, Messages], ModelInput]

_MAX_FOLDS: Final = 4
_LEAST_SHARE: Final = 20
_LEAST_TOKENS: Final = 40
_ENOUGH_TOKENS: Final = 200
_OPEN_TURN_SHARE: Final = 0.75
_MOST_FOLDED_INPUTS: Final = 2
# A heading, line ends, and the sum of rounding errors.
_SLACK_TOKENS: Final = 16


@dataclass(frozen=True)
class Fit:
    system: SystemPart
    history: History
    messages: Messages
    model_input: ModelInput


@dataclass(frozen=True)
class Folded:
    snapshot: SessionSnapshot
    history: History
    messages: Messages


class Fitting:
    """Fits an input below `allowed_tokens`, estimated."""

    def __init__(self, assemble: Assemble, system: SystemPart, *, allowed_tokens: int, merged_tokens: int) -> None:
        self._assemble = assemble
        self._system = system
        self._allowed_tokens = allowed_tokens
        self._merged_tokens = merged_tokens
        self._language = system.language
        self._least_tokens = max(_LEAST_TOKENS, min(_ENOUGH_TOKENS, allowed_tokens // _LEAST_SHARE))

    def by_folding(self, fit: Fit, snapshot: SessionSnapshot, fold: Callable[[FoldSpec], Folded | None]) -> Fit:
        """Shrinks the input as far as possible, with folds; `fold` makes and activates one, or returns None.

        In this order: verbatim records are shortened for this call; tool results of the open turn are cut if it leaves
        no room for earlier turns; records are merged; the oldest raw turns are folded; all tool results are cut; the
        oldest records and turns are left out of this call; last come the cuts of `_least`. An excess of more than two
        inputs isn't folded while the user waits, as the fold would retain nothing useful.
        """
        history, messages = fit.history, fit.messages
        shown, cut_tokens = self._shown(history, messages, 0), 0
        if self._excess(shown) > 0 and not self._has_room(shown, messages):
            cut_tokens = max(0, _fixed_tokens(shown, messages) - int(self._allowed_tokens * _OPEN_TURN_SHARE))
            shown = self._shown(history, messages, cut_tokens)
        if self._excess(shown) > _MOST_FOLDED_INPUTS * self._allowed_tokens:
            shown = self._without_oldest(history, self._with_open_cut(messages, cut_tokens)).model_input
        for _ in range(_MAX_FOLDS):
            if self._excess(shown) <= 0 or not self._has_room(shown, messages):
                break
            spec = guard_fold(
                snapshot,
                _sizes(shown),
                self._excess(shown) + _SLACK_TOKENS,
                merged_tokens=self._merged_tokens,
                least_tokens=self._least_tokens,
            )
            folded = None if spec is None else fold(spec)
            if folded is None:
                break
            snapshot, history, messages = folded.snapshot, folded.history, folded.messages
            shown = self._shown(history, messages, cut_tokens)
        if self._excess(shown) > 0:
            cut = cut_results(self._with_open_cut(messages, cut_tokens), self._excess(shown), self._language)
            shown = self._least(self._without_oldest(shorten_verbatim(history, self._language), cut))
        return Fit(self._system, history, messages, shown)

    def by_leaving_out(self, fit: Fit) -> Fit:
        """Shrinks an input without records: oldest turns, then tool results, then the cuts of `_least`."""
        fewer = self._without_oldest((), fit.messages)
        shown = fewer.model_input
        if self._excess(shown) > 0:
            cut = cut_results(fewer.messages, self._excess(shown), self._language)
            shown = self._least(self._built(self._system, (), cut))
        return Fit(self._system, fit.history, fit.messages, shown)

    def _least(self, fit: Fit) -> ModelInput:
        """Cuts an input that has no records and no earlier turns left.

        In this order: the oldest pins; the rest of tool results; the oldest calls of the open turn; the ledger; lines
        of the context blocks, first those of the turn's block. What a program sent stays whole: an input that is too
        long with it is for the caller to refuse.
        """
        for shrink in (self._without_pins, self._without_results, self._without_rounds, self._with_cut_blocks):
            if self._excess(fit.model_input) <= 0:
                break
            fit = shrink(fit)
        return fit.model_input

    def _without_pins(self, fit: Fit) -> Fit:
        sizes = {item.id: item.tokens for item in fit.model_input.items if item.kind == PIN}
        excess = self._excess(fit.model_input)
        retained = list(fit.system.pins)
        for pin in fit.system.pins:
            if excess <= 0:
                break
            retained.remove(pin)
            excess -= sizes.get(pin.message_id, 0)
        return self._built(replace(fit.system, pins=tuple(retained)), fit.history, fit.messages)

    def _without_results(self, fit: Fit) -> Fit:
        while (excess := self._excess(fit.model_input)) > 0:
            cut = cut_results(fit.messages, excess, self._language, least_chars=0)
            if cut == fit.messages:
                break
            fit = self._built(fit.system, fit.history, cut)
        return fit

    def _without_rounds(self, fit: Fit) -> Fit:
        while self._excess(fit.model_input) > 0 and (fewer := without_oldest_round(fit.messages)) is not None:
            fit = self._built(fit.system, fit.history, fewer)
        return fit

    def _with_cut_blocks(self, fit: Fit) -> Fit:
        fit = self._built(replace(fit.system, ledger_tokens=0), fit.history, fit.messages)
        for block in (self._system.volatile, self._system.front, self._system.own, self._system.client):
            excess = self._excess(fit.model_input)
            if block is not None and excess > 0:
                least = block.within(estimate_tokens(block.text) - excess - _SLACK_TOKENS, self._language)
                fit = self._built(fit.system.with_block(least), fit.history, fit.messages)
        return fit

    def _built(self, system: SystemPart, history: History, messages: Messages) -> Fit:
        return Fit(system, history, messages, self._assemble(system, history, messages))

    def _without_oldest(self, history: History, messages: Messages) -> Fit:
        fit = self._built(self._system, history, messages)
        while (excess := self._excess(fit.model_input)) > 0:
            fewer = without_oldest(fit.history, fit.messages, _sizes(fit.model_input), excess)
            if fewer is None:
                break
            left = lines_of(history[: len(history) - len(fewer[0])])
            fit = self._built(replace(self._system, ledger=tuple(left)), *fewer)
        return fit

    def _shown(self, history: History, messages: Messages, cut_tokens: int) -> ModelInput:
        shortened = shorten_verbatim(history, self._language)
        return self._assemble(self._system, shortened, self._with_open_cut(messages, cut_tokens))

    def _with_open_cut(self, messages: Messages, cut_tokens: int) -> Messages:
        opened = extract_current_turn(messages)
        return [*messages[: len(messages) - len(opened)], *cut_results(opened, cut_tokens, self._language)]

    def _excess(self, shown: ModelInput) -> int:
        return shown.sent_tokens - self._allowed_tokens

    def _has_room(self, shown: ModelInput, messages: Messages) -> bool:
        return self._allowed_tokens - _fixed_tokens(shown, messages) >= 2 * self._least_tokens


def left_out(whole: ModelInput, sent: ModelInput) -> tuple[str, ...]:
    """Names the parts that an input lacks of the whole one, or has only in part."""
    opened = {str(message.id) for message in extract_current_turn(whole.messages)}
    sent_ids = {("message" if item.kind == CUT else item.kind, item.id) for item in sent.items}
    missing = [item for item in whole.items if item.kind != CONTEXT and (item.kind, item.id) not in sent_ids]
    kinds = {"results" if item.id in opened else item.kind for item in missing}
    kinds |= {"results" for item in sent.items if item.kind == CUT}
    blocks = (read_name(item.id) for item in sent.items if item.kind == CONTEXT)
    kinds |= {kind for kind, sent_lines in blocks if sent_lines is not None}
    return tuple(part for kind, part in _PARTS.items() if kind in kinds)


# By the kind of the block, in the order in which they are left out.
_PARTS: Final = {
    "tools": "server_tools",
    "volatile": "recall",
    "results": "tool_results",
    "record": "records",
    "message": "turns",
    "pin": "pins",
    "front": "project",
    "own": "instructions",
    "client": "system",
}


def _sizes(shown: ModelInput) -> dict[str, int]:
    return {item.id: item.tokens for item in shown.items if item.kind in ("record", "shortened", "message", "cut")}


def _fixed_tokens(shown: ModelInput, messages: Messages) -> int:
    sizes = _sizes(shown)
    for message in extract_current_turn(messages):
        sizes.pop(str(message.id), None)
    return shown.sent_tokens - sum(sizes.values())
