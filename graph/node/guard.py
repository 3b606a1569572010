"""Keeps a model input below the guard's share of the window, whatever the strategy; knows nothing of model calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from graph.core.assembly import ModelInput
from graph.core.guard import cut_results, guard_order, shorten_verbatim, without_oldest_turn
from graph.core.record import HistoryEntry
from graph.event import Folded, FoldWaiting
from graph.node.context import NodeDeps, TurnContext
from graph.node.summary import state_update
from graph.node.working import working_messages
from graph.state import ChatState

_LOG = logging.getLogger(__name__)
Build = Callable[[Sequence[HistoryEntry], Sequence[AnyMessage]], ModelInput]


@dataclass(frozen=True)
class Fit:
    """What an input is built from, the input, and the update of the state if something was folded for it."""

    history: Sequence[HistoryEntry]
    messages: Sequence[AnyMessage]
    model_input: ModelInput
    update: dict[str, Any]


def begin_fit(deps: NodeDeps, runtime: Runtime[TurnContext], state: ChatState, build: Build) -> Fit:
    """Builds the input as the strategy wants it, whatever its size."""
    history, messages = state["summary_history"], working_messages(deps, runtime, state)
    return Fit(history, messages, build(history, messages), {})


def fit_input(
    deps: NodeDeps, runtime: Runtime[TurnContext], state: ChatState, build: Build, fit: Fit, *, limit_tokens: int
) -> Fit:
    """Makes an input smaller while it would reach the limit.

    In this order: word-for-word records go short for this call; everything before the open turn is folded into one
    record (a strategy that sends no records drops its oldest turns instead); tool results are cut, with a note.
    """
    # A correction is at most 2: far below the limit there's no need to read it.
    if fit.model_input.sent_tokens * 2 < limit_tokens:
        return fit
    correction = deps.stores.calls.correction(state["session_id"])

    def is_over(built: ModelInput) -> bool:
        return built.sent_tokens * correction >= limit_tokens

    history, messages, model_input, update = fit.history, list(fit.messages), fit.model_input, fit.update
    if is_over(model_input):
        model_input = build(shorten_verbatim(history), messages)
    if is_over(model_input) and runtime.context.strategy.sends_records:
        folded = _fold_further(deps, runtime, state, int(limit_tokens / correction))
        if folded:
            update, history = folded, folded["summary_history"]
            gone = {message.id for message in update["messages"]}
            messages = [message for message in messages if message.id not in gone]
            model_input = build(history, messages)
    while is_over(model_input) and not runtime.context.strategy.sends_records:
        fewer = without_oldest_turn(messages)
        if fewer is None:
            break
        messages = fewer
        model_input = build(history, messages)
    if is_over(model_input):
        excess = model_input.sent_tokens - int(limit_tokens / correction)
        model_input = build(shorten_verbatim(history), cut_results(messages, excess))
    return Fit(history, messages, model_input, update)


def _fold_further(deps: NodeDeps, runtime: Runtime[TurnContext], state: ChatState, limit_tokens: int) -> dict[str, Any]:
    """Folds all that comes before the open turn into one record; {} if it can't be smaller."""
    turn, session_id = runtime.context, state["session_id"]
    complete_turns, rate = turn.turn - 1, state["compression_rate"]
    standing = deps.summariser.standing(session_id, complete_turns=complete_turns, rate=rate)
    order = guard_order(standing, limit_tokens)
    if order is None:
        return {}
    may_wait = deps.summariser.may_wait(session_id)
    seconds = turn.fold_wait.rest_seconds(deps.settings.fold_wait_seconds) if may_wait else 0.0
    if seconds:
        runtime.stream_writer(FoldWaiting(order.turns))
    with turn.fold_wait.spend():
        record = deps.summariser.make_now(
            session_id, order, owner=turn.owner, model=turn.model, stop=turn.stop, wait_seconds=seconds
        )
    if record is None or not deps.stores.records.adopt(turn.hold, record.id):
        return {}
    runtime.stream_writer(Folded(record.id, record.turns, record.original_chars, record.summary_chars))
    _LOG.info("guard folded session=%s turns 1-%d", session_id, record.turns[-1])
    return state_update(deps.summariser.standing(session_id, complete_turns=complete_turns, rate=rate), state)
