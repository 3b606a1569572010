"""The node that calls the chat model; knows nothing of what the input is made of or how a call is ended."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.runtime import Runtime

from graph.core.close_turn import MARK
from graph.core.model_input import ModelInput
from graph.core.token import estimate_tokens, sum_tokens
from graph.core.turn import extract_current_turn
from graph.error import ContextLengthError, StoreError, TurnfoldError
from graph.event import AnswerRestarted, TokenDelta
from graph.model.caller import ChatRunnable
from graph.model.chunk import Answer, Usage
from graph.node.context import Node, NodeDeps, TurnContext
from graph.node.guard import begin_fit, fit_input
from graph.node.side_call import keep_side_call
from graph.node.tool_choice import ToolChoice
from graph.record import HistoryEntry
from graph.state import ChatState
from graph.store.call import ModelCall
from graph.strategy.fit import Build
from graph.tool.registry import ToolContext
from prompt.system.chat import TOOL_ROUNDS_NOTE

_SHORTER_SHARE: Final = 0.6


def make_llm_node(deps: NodeDeps) -> Node:
    """Returns `llm_node`: builds the model input, streams one answer, and archives it before state has it."""
    tool_choice = ToolChoice()
    known: dict[tuple[str, ...], list[dict[str, Any]]] = {}

    def offered(turn: TurnContext) -> list[dict[str, Any]]:
        tools = deps.tools(tool_context(deps, turn))
        names = tuple(tool.name for tool in tools)
        # Rendered once: schemas are the same from call to call, or the provider's cached prefix would be worth nothing.
        if names not in known:
            known[names] = [convert_to_openai_tool(tool) for tool in tools]
        return known[names]

    def llm_node(state: ChatState, *, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        turn = runtime.context
        is_last_round = state["tool_rounds"] >= deps.settings.tool_rounds
        tools = offered(turn)
        may_call = bool(tools) and not (state["is_casual"] or is_last_round)
        schema = tool_schema(tools)
        note = TOOL_ROUNDS_NOTE if is_last_round else ""

        def build(history: Sequence[HistoryEntry], messages: Sequence[AnyMessage]) -> ModelInput:
            return turn.strategy.assemble(deps.system, history, messages, tool_schema=schema, note=note)

        def ask(model_input: ModelInput) -> Answer:
            model, call = deps.models.chat(turn.model), partial(_call, deps, runtime, state)
            if may_call:
                return call(model.bind_tools(tools), model_input)
            return tool_choice.answer_without_calls(deps.models.resolve(turn.model), model, tools, model_input, call)

        answer, update = _answer(deps, runtime, ask, build, state)
        message = _with_ids_of_its_own(_runnable_calls(answer.message), state["messages"])
        deps.stores.archive.append(
            turn.lease, owner=turn.owner, turn=turn.turn, attempt=turn.attempt, messages=[message]
        )
        return {**update, "messages": [*update.get("messages", []), message]}

    return llm_node


def _answer(
    deps: NodeDeps,
    runtime: Runtime[TurnContext],
    ask: Callable[[ModelInput], Answer],
    build: Build,
    state: ChatState,
) -> tuple[Answer, dict[str, Any]]:
    """Calls the model below the guard's limit; if the provider finds the input too long all the same, folds once more.

    Raises:
        ModelError: The call failed.
    """
    limit = deps.models.input_tokens(runtime.context.model)
    fit = fit_input(deps, runtime, state, build, begin_fit(deps, runtime, state, build), limit_tokens=limit)
    try:
        return ask(fit.model_input), fit.update
    except ContextLengthError:
        sent_tokens = fit.model_input.sent_tokens
        correction = deps.stores.calls.correction(state["session_id"])
        limit = min(limit, int(sent_tokens * correction * _SHORTER_SHARE))
        fit = fit_input(deps, runtime, state, build, fit, limit_tokens=limit)
        if fit.model_input.sent_tokens >= sent_tokens:
            raise
        return ask(fit.model_input), fit.update


def tool_context(deps: NodeDeps, turn: TurnContext) -> ToolContext:
    """Returns what the tools of this run may use."""
    return ToolContext(
        caller=deps.models.caller,
        model=deps.models.chat(turn.model),
        stop=turn.stop,
        time_zone=turn.time_zone,
        clock=deps.clock,
        deadline_seconds=deps.settings.tool_deadline_seconds,
        keep=partial(keep_side_call, deps, turn),
    )


def tool_schema(tools: Sequence[Mapping[str, Any]]) -> str:
    """Renders the tools' schemas as the JSON that goes beside the messages; "" for none."""
    return json.dumps(tools, ensure_ascii=False) if tools else ""


def _call(
    deps: NodeDeps,
    runtime: Runtime[TurnContext],
    state: ChatState,
    model: ChatRunnable,
    model_input: ModelInput,
) -> Answer:
    """Makes the call and keeps a row of what was sent and what it cost, also when it fails."""
    began = time.monotonic()
    try:
        answer = deps.models.caller.call(
            model,
            model_input.messages,
            stop=runtime.context.stop,
            deadline_seconds=deps.settings.model_deadline_seconds,
            attempts=deps.settings.model_attempts,
            on_text=lambda text: runtime.stream_writer(TokenDelta(text)),
            on_restart=lambda: runtime.stream_writer(AnswerRestarted()),
        )
    except TurnfoldError as error:
        row = _call_row(deps, runtime.context, model_input, state, None, seconds=time.monotonic() - began)
        # Why the call failed matters more to the user than that its row couldn't be kept.
        with contextlib.suppress(StoreError):
            deps.stores.calls.add(
                runtime.context.lease, replace(row, error_code=error.code), owner=runtime.context.owner
            )
        raise
    row = _call_row(deps, runtime.context, model_input, state, answer.usage, seconds=time.monotonic() - began)
    deps.stores.calls.add(runtime.context.lease, row, owner=runtime.context.owner)
    return answer


def _call_row(
    deps: NodeDeps,
    turn: TurnContext,
    model_input: ModelInput,
    state: ChatState,
    usage: Usage | None,
    *,
    seconds: float,
) -> ModelCall:
    return ModelCall(
        id=f"call-{secrets.token_urlsafe(9)}",
        session_id=state["session_id"],
        turn=turn.turn,
        attempt=turn.attempt,
        kind="answer",
        model=turn.model,
        manifest=tuple((item.kind, item.id, item.version, item.tokens) for item in model_input.items),
        input_hash=model_input.digest(),
        sent_tokens=model_input.sent_tokens,
        full_tokens=_full_tokens(deps, turn, model_input, state),
        usage_input_tokens=usage.input_tokens if usage else None,
        usage_output_tokens=usage.output_tokens if usage else None,
        usage_cached_tokens=usage.cached_tokens if usage else None,
        seconds=seconds,
        error_code="",
        created_at=deps.clock(),
    )


def _full_tokens(deps: NodeDeps, turn: TurnContext, model_input: ModelInput, state: ChatState) -> int:
    """Estimates what the same call would have sent without any fold: every message of the session, whole."""
    beside = sum(item.tokens for item in model_input.items if item.kind == "tools")
    return (
        estimate_tokens(deps.system.text)
        + turn.history_tokens
        + sum_tokens(extract_current_turn(state["messages"]))
        + beside
    )


def _with_ids_of_its_own(message: AIMessage, earlier: Sequence[AnyMessage]) -> AIMessage:
    """Renames calls whose id an earlier one has: some servers number the calls of each answer from 0."""
    used = {call["id"] for said in earlier if isinstance(said, AIMessage) for call in said.tool_calls}
    names = {call["id"]: f"call-{uuid.uuid4().hex}" for call in message.tool_calls if call["id"] in used}
    if not names:
        return message
    calls = [{**call, "id": names.get(call["id"], call["id"])} for call in message.tool_calls]
    mark = message.additional_kwargs.get(MARK, {})
    unreadable = [names.get(call_id, call_id) for call_id in mark.get("unreadable_calls", ())]
    kwargs = {**message.additional_kwargs, **({MARK: {**mark, "unreadable_calls": unreadable}} if mark else {})}
    return message.model_copy(update={"tool_calls": calls, "additional_kwargs": kwargs})


def _runnable_calls(message: AIMessage) -> AIMessage:
    """Turns calls with unreadable arguments into marked ones that `tool_node` answers with an error, never runs."""
    if not message.invalid_tool_calls:
        return message
    bad = [call for call in message.invalid_tool_calls if call.get("id")]
    calls = [
        *message.tool_calls,
        *({"name": c["name"] or "", "args": {}, "id": c["id"], "type": "tool_call"} for c in bad),
    ]
    mark = {MARK: {"unreadable_calls": [call["id"] for call in bad]}}
    return message.model_copy(
        update={
            "tool_calls": calls,
            "invalid_tool_calls": [],
            "additional_kwargs": {**message.additional_kwargs, **mark},
        }
    )
