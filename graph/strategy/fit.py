"""Makes a model input smaller until it's below its limit; what is folded for that, its caller makes and keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AnyMessage

from graph.core.fold_spec import FoldSpec
from graph.core.model_input import ModelInput
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import extract_current_turn
from graph.record import HistoryEntry
from graph.strategy.shrink import cut_results, guard_fold, shorten_verbatim, without_oldest

Build = Callable[[Sequence[HistoryEntry], Sequence[AnyMessage]], ModelInput]

_MAX_FOLDS: Final = 4
_LEAST_SHARE: Final = 20
_LEAST_TOKENS: Final = 40
_ENOUGH_TOKENS: Final = 200
_OPEN_TURN_SHARE: Final = 0.75
# A heading, line ends, and what rounding adds up to.
_SLACK_TOKENS: Final = 16


@dataclass(frozen=True)
class Fit:
    """What an input is built from, whole, and the input as it's sent."""

    history: Sequence[HistoryEntry]
    messages: Sequence[AnyMessage]
    model_input: ModelInput


@dataclass(frozen=True)
class Folded:
    """How the session stands after a fold, and what an input is built from then."""

    snapshot: SessionSnapshot
    history: Sequence[HistoryEntry]
    messages: Sequence[AnyMessage]


class Fitting:
    """Fits one input below a limit.

    Args:
        build: Makes the input of records and messages.
        allowed_tokens: The most that it may be, by our estimate.
        merged_tokens: The most that a merged record may be.
    """

    def __init__(self, build: Build, *, allowed_tokens: int, merged_tokens: int) -> None:
        self._build = build
        self._allowed_tokens = allowed_tokens
        self._merged_tokens = merged_tokens
        self._least_tokens = max(_LEAST_TOKENS, min(_ENOUGH_TOKENS, allowed_tokens // _LEAST_SHARE))

    def by_folding(self, begun: Fit, snapshot: SessionSnapshot, fold: Callable[[FoldSpec], Folded | None]) -> Fit:
        """Makes the input fit, as far as it can.

        In this order: word-for-word records go short for this call; results of the open turn are cut if it leaves no
        room for what was before; records are merged; the oldest raw turns are folded; results are cut; what is oldest
        is left out of this call.

        Args:
            begun: The input so far.
            snapshot: The session's snapshot.
            fold: Makes a fold and brings it into force; None if it couldn't be made.
        """
        history, messages = begun.history, begun.messages
        shown, cut_tokens = self._shown(history, messages, 0), 0
        if self._is_over(shown) and self._room(shown, messages) < 2 * self._least_tokens:
            cut_tokens = self._open_excess(shown, messages)
            shown = self._shown(history, messages, cut_tokens)
        for _ in range(_MAX_FOLDS):
            if not self._is_over(shown) or self._room(shown, messages) < 2 * self._least_tokens:
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
        if self._is_over(shown):
            shown = self._squeezed(history, messages, cut_tokens)
        return Fit(history, messages, shown)

    def by_leaving_out(self, begun: Fit) -> Fit:
        """Makes the input fit by leaving out its oldest turns, then by cutting results; nothing is folded."""
        history, messages, shown = begun.history, begun.messages, begun.model_input
        while self._is_over(shown) and (fewer := without_oldest((), messages)) is not None:
            messages = fewer[1]
            shown = self._build(history, messages)
        if self._is_over(shown):
            shown = self._build(history, cut_results(messages, self._excess(shown)))
        return Fit(history, messages, shown)

    def _squeezed(self, history: Sequence[HistoryEntry], messages: Sequence[AnyMessage], cut_tokens: int) -> ModelInput:
        """Builds the input with results cut and, if that's not enough, without what is oldest."""
        shown = self._shown(history, messages, cut_tokens)
        short = shorten_verbatim(history)
        cut = cut_results(_with_open_cut(messages, cut_tokens), self._excess(shown))
        shown = self._build(short, cut)
        while self._is_over(shown) and (fewer := without_oldest(short, cut)) is not None:
            short, cut = fewer
            shown = self._build(short, cut)
        return shown

    def _shown(self, history: Sequence[HistoryEntry], messages: Sequence[AnyMessage], cut_tokens: int) -> ModelInput:
        return self._build(shorten_verbatim(history), _with_open_cut(messages, cut_tokens))

    def _is_over(self, shown: ModelInput) -> bool:
        return shown.sent_tokens > self._allowed_tokens

    def _excess(self, shown: ModelInput) -> int:
        return shown.sent_tokens - self._allowed_tokens

    def _fixed(self, shown: ModelInput, messages: Sequence[AnyMessage]) -> int:
        """Returns the tokens of all that no fold makes smaller: the prompt, the tools and the open turn."""
        sizes = _sizes(shown)
        for message in extract_current_turn(messages):
            sizes.pop(str(message.id), None)
        return shown.sent_tokens - sum(sizes.values())

    def _room(self, shown: ModelInput, messages: Sequence[AnyMessage]) -> int:
        return self._allowed_tokens - self._fixed(shown, messages)

    def _open_excess(self, shown: ModelInput, messages: Sequence[AnyMessage]) -> int:
        return max(0, self._fixed(shown, messages) - int(self._allowed_tokens * _OPEN_TURN_SHARE))


def _sizes(shown: ModelInput) -> dict[str, int]:
    """Returns the tokens of each record and each message in the input, by its id."""
    return {item.id: item.tokens for item in shown.items if item.kind in ("record", "shortened", "message", "cut")}


def _with_open_cut(messages: Sequence[AnyMessage], cut_tokens: int) -> list[AnyMessage]:
    """Returns the messages with the results of the open turn cut by that many tokens."""
    opened = extract_current_turn(messages)
    return [*messages[: len(messages) - len(opened)], *cut_results(opened, cut_tokens)]
