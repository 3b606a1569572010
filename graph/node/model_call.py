"""A model call within a turn, and the row of what it was sent and what it cost."""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from functools import partial
from typing import Literal

from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime

from graph.core.model_input import InputItem, ModelInput
from graph.core.token import estimate_tokens, message_tokens, sum_tokens
from graph.core.turn import extract_current_turn
from graph.error import StoreError, TurnfoldError
from graph.event import AnswerRestarted, TokenDelta
from graph.model.caller import ChatRunnable
from graph.model.chunk import Answer, Usage
from graph.node.context import NodeDeps, TurnContext
from graph.state import ChatState
from graph.store.call import ModelCall
from graph.tool.registry import ToolContext
from graph.tool.tool_context import SideCall

_LOG = logging.getLogger(__name__)


class AnswerCall:
    """Calls the chat model in one run of the graph; each call leaves a row, also when it fails."""

    def __init__(self, deps: NodeDeps, runtime: Runtime[TurnContext], state: ChatState) -> None:
        self._deps = deps
        self._runtime = runtime
        self._state = state

    def __call__(self, model: ChatRunnable, model_input: ModelInput) -> Answer:
        """Streams the answer's text as events and returns the whole of it.

        Raises:
            ModelError: The call failed.
            TurnStoppedSignal: Stop was pressed.
        """
        deps, settings, write = self._deps, self._deps.settings, self._runtime.stream_writer
        began = time.monotonic()
        try:
            answer = deps.models.caller.call(
                model,
                model_input.messages,
                stop=self._runtime.context.stop,
                deadline_seconds=settings.model_deadline_seconds,
                attempts=settings.model_attempts,
                on_text=lambda text: write(TokenDelta(text)),
                on_restart=lambda: write(AnswerRestarted()),
            )
        except TurnfoldError as error:
            # Why the call failed matters more to the user than that its row couldn't be kept.
            with contextlib.suppress(StoreError):
                self._keep(model_input, None, seconds=time.monotonic() - began, error_code=error.code)
            raise
        self._keep(model_input, answer.usage, seconds=time.monotonic() - began)
        return answer

    def _keep(self, model_input: ModelInput, usage: Usage | None, *, seconds: float, error_code: str = "") -> None:
        keep_call(
            self._deps,
            self._runtime.context,
            model_input,
            usage,
            kind="answer",
            full_tokens=self._full_tokens(model_input),
            seconds=seconds,
            error_code=error_code,
        )

    def _full_tokens(self, model_input: ModelInput) -> int:
        """Estimates what the same call would have sent without any fold: every message of the session, whole."""
        beside = sum(item.tokens for item in model_input.items if item.kind == "tools")
        said = self._runtime.context.history_tokens + sum_tokens(extract_current_turn(self._state["messages"]))
        return estimate_tokens(self._deps.system.text) + said + beside


def keep_call(
    deps: NodeDeps,
    turn: TurnContext,
    model_input: ModelInput,
    usage: Usage | None,
    *,
    kind: Literal["answer", "reasoning"],
    full_tokens: int,
    seconds: float,
    error_code: str,
) -> None:
    """Writes the row of a call that has ended, well or not.

    Raises:
        StoreError: It couldn't be written.
    """
    row = ModelCall(
        id=f"call-{secrets.token_urlsafe(9)}",
        session_id=turn.lease.session_id,
        turn=turn.turn,
        attempt=turn.attempt,
        kind=kind,
        model=turn.model,
        manifest=tuple((item.kind, item.id, item.version, item.tokens) for item in model_input.items),
        input_hash=model_input.digest(),
        sent_tokens=model_input.sent_tokens,
        full_tokens=full_tokens,
        usage_input_tokens=usage.input_tokens if usage else None,
        usage_output_tokens=usage.output_tokens if usage else None,
        usage_cached_tokens=usage.cached_tokens if usage else None,
        seconds=seconds,
        error_code=error_code,
        created_at=deps.clock(),
    )
    deps.stores.calls.add(turn.lease, row, owner=turn.owner)


def tools_of(deps: NodeDeps, turn: TurnContext) -> list[BaseTool]:
    """Returns the tools that a turn is offered."""
    context = ToolContext(
        caller=deps.models.caller,
        model=deps.models.chat(turn.model),
        stop=turn.stop,
        time_zone=turn.time_zone,
        clock=deps.clock,
        deadline_seconds=deps.settings.tool_deadline_seconds,
        keep=partial(_keep_side_call, deps, turn),
    )
    return deps.tools(context)


def _keep_side_call(deps: NodeDeps, turn: TurnContext, side: SideCall) -> None:
    """Keeps the call of a model that a tool made: what it has found out counts more than a row that can't be kept."""
    prompt, given = side.messages
    items = (
        InputItem("system", "reasoning", 1, message_tokens(prompt)),
        InputItem("call", side.call_id, 1, message_tokens(given)),
    )
    sent = ModelInput(side.messages, items)
    try:
        keep_call(
            deps,
            turn,
            sent,
            side.usage,
            kind="reasoning",
            full_tokens=sent.sent_tokens,
            seconds=side.seconds,
            error_code=side.error_code,
        )
    except StoreError as error:
        _LOG.warning(
            "a tool's call in session=%s turn=%d was not kept: %s", turn.lease.session_id, turn.turn, error.code
        )
