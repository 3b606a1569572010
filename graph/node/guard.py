"""Keeps a model input below the guard's share of the window, whatever the strategy; knows nothing of model calls."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from graph.core.fold_spec import FoldSpec
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import extract_current_turn
from graph.event import Folded, FoldWaiting
from graph.node.context import NodeDeps, TurnContext
from graph.node.summary import state_update
from graph.state import ChatState
from graph.strategy import fit as core
from graph.strategy.fit import Build, Fit, Fitting

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class FittedInput(Fit):
    """An input, and the update of the state if something was folded for it."""

    update: dict[str, Any] = field(default_factory=dict)


def working_messages(deps: NodeDeps, runtime: Runtime[TurnContext], state: ChatState) -> list[AnyMessage]:
    """Returns the messages to build from, oldest first.

    Turns that another strategy folded have left the state: one that sends whole turns gets them from the archive.
    """
    turn, messages = runtime.context, list(state["messages"])
    if turn.strategy.whole_turns is None:
        return messages
    session_id, first = state["session_id"], max(1, turn.turn - turn.strategy.whole_turns)
    begin = deps.stores.sessions.context_begin(session_id)
    said = deps.stores.archive.live_turns(session_id, first, turn.turn - 1)
    return [*(entry.message for entry in said if entry.position > begin), *extract_current_turn(messages)]


def begin_fit(deps: NodeDeps, runtime: Runtime[TurnContext], state: ChatState, build: Build) -> FittedInput:
    """Builds the input as the strategy wants it, whatever its size."""
    history, messages = state["summary_history"], working_messages(deps, runtime, state)
    return FittedInput(history, messages, build(history, messages))


def fit_input(
    deps: NodeDeps,
    runtime: Runtime[TurnContext],
    state: ChatState,
    build: Build,
    fit: FittedInput,
    *,
    limit_tokens: int,
) -> FittedInput:
    """Makes an input smaller if it would reach the limit, see `core.fit.Fitting`."""
    # A correction is at most 2: far below the limit there's no need to read it.
    if fit.model_input.sent_tokens * 2 < limit_tokens:
        return fit
    allowed_tokens = math.ceil(limit_tokens / deps.stores.calls.correction(state["session_id"])) - 1
    if fit.model_input.sent_tokens <= allowed_tokens:
        return fit
    fitting = Fitting(build, allowed_tokens=allowed_tokens, merged_tokens=deps.settings.merged_tokens)
    if not runtime.context.strategy.sends_records:
        fitted = fitting.by_leaving_out(fit)
        return FittedInput(fitted.history, fitted.messages, fitted.model_input, fit.update)
    updates = [fit.update]

    def fold(spec: FoldSpec) -> core.Folded | None:
        snapshot = _fold(deps, runtime, state, spec)
        if snapshot is None:
            return None
        updates.append(state_update(snapshot, state))
        raw_ids = {str(entry.message.id) for entry in snapshot.raw}
        history = updates[-1].get("summary_history", state["summary_history"])
        return core.Folded(snapshot, history, [m for m in fit.messages if str(m.id) in raw_ids])

    fitted = fitting.by_folding(fit, _snapshot(deps, runtime, state), fold)
    return FittedInput(fitted.history, fitted.messages, fitted.model_input, updates[-1])


def _snapshot(deps: NodeDeps, runtime: Runtime[TurnContext], state: ChatState) -> SessionSnapshot:
    complete_turns, rate = runtime.context.turn - 1, state["compression_rate"]
    return deps.fold_worker.snapshot(state["session_id"], complete_turns=complete_turns, rate=rate)


def _fold(deps: NodeDeps, runtime: Runtime[TurnContext], state: ChatState, spec: FoldSpec) -> SessionSnapshot | None:
    """Makes a fold, brings it into force and returns how the session stands then; None if it couldn't be made."""
    turn, session_id = runtime.context, state["session_id"]
    may_wait = deps.fold_worker.may_wait(session_id)
    seconds = turn.fold_wait.rest_seconds(deps.settings.fold_wait_seconds) if may_wait else 0.0
    if seconds:
        runtime.stream_writer(FoldWaiting(spec.turns))
    with turn.fold_wait.spend():
        record = deps.fold_worker.make_now(
            session_id, spec, owner=turn.owner, model=turn.model, stop=turn.stop, wait_seconds=seconds
        )
    if record is None or not deps.stores.records.adopt(turn.lease, record.id):
        return None
    runtime.stream_writer(Folded(record.id, record.turns, record.original_chars, record.summary_chars))
    _LOG.info("guard folded session=%s turns %d-%d", session_id, record.turns[0], record.turns[-1])
    return _snapshot(deps, runtime, state)
