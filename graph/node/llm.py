"""The node that calls the chat model."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.tool import tool_call
from langgraph.runtime import Runtime

from graph.core.close_turn import MARK
from graph.core.in_place import LastInput
from graph.core.model_input import ModelInput
from graph.core.turn import image_parts
from graph.model.chunk import Answer
from graph.model_error import ContextLengthError
from graph.node.context import NodeDeps, TurnContext, archive_messages
from graph.node.guard import Guard
from graph.node.model_call import AnswerCall, tools_of
from graph.state import ChatState
from graph.tool.known_tools import schema_text, schemas_of
from prompt.system.chat import rounds_note
from prompt.system.framing import Language

_SHORTER_SHARE: Final = 0.6


class LlmNode:
    """Builds the model input, streams one answer, and archives it before it enters the state."""

    def __init__(self, deps: NodeDeps) -> None:
        self._deps = deps
        self._schemas: dict[tuple[Language, tuple[str, ...]], list[dict[str, Any]]] = {}

    def __call__(self, state: ChatState, *, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        """Returns the update of the state: the answer, and what the guard's folds change."""
        turn, deps = runtime.context, self._deps
        is_last_round = state["tool_rounds"] >= deps.settings.tool_rounds
        tools = self._offered(turn)
        system = replace(
            turn.system,
            tool_schema=schema_text(tools),
            note=rounds_note(turn.language) if is_last_round else "",
        )
        call = AnswerCall(deps, turn, state)

        name = deps.models.resolve(turn.row.model)
        choice = _choice(turn, state, is_last_round=is_last_round)

        def ask(model_input: ModelInput) -> Answer:
            model = deps.models.chat(name)
            if tools and choice != "none":
                asked = model.bind_tools(tools)
                return call(asked.bind(tool_choice=choice) if choice else asked, model_input)
            return deps.models.tool_choice.answer_without_calls(name, model, tools, model_input, call)

        guard = Guard(deps, turn, state, system)
        limit_tokens = deps.models.input_tokens(turn.row.model)
        fit = guard.fit(guard.begin(), limit_tokens=limit_tokens)
        _check_window(fit.model_input, deps.models.told_window_tokens(name))
        try:
            answer = ask(fit.model_input)
        except ContextLengthError:
            if call.is_heard and not turn.hears_restarts:
                raise  # what a program was sent can't be taken back
            # The provider counts more tokens than we estimate: retry once with a shorter input.
            sent_tokens = fit.model_input.sent_tokens
            refused_tokens = int(sent_tokens * deps.stores.calls.correction(state["session_id"]) * _SHORTER_SHARE)
            fit = guard.fit(fit, limit_tokens=min(limit_tokens, refused_tokens))
            if fit.model_input.sent_tokens >= sent_tokens:
                raise
            answer = ask(fit.model_input)
        message = _with_ids_of_its_own(_runnable_calls(answer.message), state["messages"])
        archive_messages(deps, turn, [message])
        if call.answered is not None and not message.tool_calls:
            self._remember(turn, name, call.answered, tools, message)
        return {**guard.update, "messages": [*guard.update.get("messages", []), message]}

    def _remember(
        self, turn: TurnContext, name: str, sent: ModelInput, tools: Sequence[dict[str, Any]], answer: AIMessage
    ) -> None:
        """Remembers what was sent and answered, as folds may be asked for behind it; images are kept in no memory."""
        if turn.strategy.sends_records and not any(map(image_parts, sent.messages)):
            had_tools = any(item.kind == "tools" for item in sent.items)
            last = LastInput(name, sent, tuple(tools) if had_tools else (), answer)
            self._deps.fold_worker.remember(turn.lease.session_id, last)

    def _offered(self, turn: TurnContext) -> list[dict[str, Any]]:
        """Returns the schemas of the tools, the same all through a session, as they are part of the cached prefix."""
        tools = tools_of(self._deps, turn)
        key = turn.language, tuple(tool.name for tool in tools)
        if key not in self._schemas:
            self._schemas[key] = schemas_of(tools)
        return [*self._schemas[key], *(dict(tool) for tool in turn.client.tools)] if turn.client else self._schemas[key]


def _check_window(model_input: ModelInput, window_tokens: int | None) -> None:
    """Refuses an input whose prompt and question alone fill the window: some servers cut its beginning without a word.

    Raises:
        ContextLengthError: It is as large as the window or larger.
    """
    if window_tokens is not None and model_input.sent_tokens >= window_tokens:
        detail = f"≈{model_input.sent_tokens} ≥ {window_tokens}"
        raise ContextLengthError(detail)


def _choice(turn: TurnContext, state: ChatState, *, is_last_round: bool) -> str | Mapping[str, Any] | None:
    """Returns the `tool_choice` of a call; None leaves it to the endpoint.

    A call that a program demands is demanded of the first answer alone, or the model could never say what came of it.
    """
    asks_for_tools = turn.client is not None and bool(turn.client.tools or turn.client.tool_choice)
    if is_last_round or (state["is_casual"] and not asks_for_tools):
        return "none"
    choice = turn.client.tool_choice if turn.client else None
    is_demand = choice is not None and choice not in ("none", "auto")
    return None if is_demand and state["tool_rounds"] else choice


def _with_ids_of_its_own(message: AIMessage, earlier: Sequence[AnyMessage]) -> AIMessage:
    """Gives calls a new id if an earlier call has theirs: some servers number the calls of each answer from 0."""
    used = {call["id"] for said in earlier if isinstance(said, AIMessage) for call in said.tool_calls}
    names = {call["id"]: f"call-{uuid.uuid4().hex}" for call in message.tool_calls if call["id"] in used}
    if not names:
        return message
    calls = [{**call, "id": names.get(call["id"], call["id"])} for call in message.tool_calls]
    kwargs = dict(message.additional_kwargs)
    if MARK in kwargs:
        unreadable = [names.get(call_id, call_id) for call_id in kwargs[MARK]["unreadable_calls"]]
        kwargs[MARK] = {"unreadable_calls": unreadable}
    return message.model_copy(update={"tool_calls": calls, "additional_kwargs": kwargs})


def _runnable_calls(message: AIMessage) -> AIMessage:
    """Marks calls with unreadable arguments, so that `tool_node` answers them with an error and never runs them."""
    bad = message.invalid_tool_calls
    if not bad:
        return message
    marked = [tool_call(name=call["name"] or "", args={}, id=call["id"]) for call in bad]
    kwargs = {**message.additional_kwargs, MARK: {"unreadable_calls": [call["id"] for call in bad]}}
    update = {"tool_calls": [*message.tool_calls, *marked], "invalid_tool_calls": [], "additional_kwargs": kwargs}
    return message.model_copy(update=update)
