"""The node that calls the chat model, and the guard that keeps its input within the window."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.tool import tool_call
from langgraph.runtime import Runtime

from graph.core.model_input import ModelInput, SystemPart
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import LEFT_OUT, LOOKED_UP, MARK, extract_current_turn, image_parts, without_returned
from graph.fold.request import LastInput
from graph.fold.spec import FoldSpec
from graph.model.chunk import Answer
from graph.node.model_call import AnswerCall, tools_of
from graph.node.state import ChatState, NodeDeps, TurnContext, archive_messages, folded_event, snapshot_of
from graph.node.summary import state_update
from graph.strategy.fit import Fit, Fitting, Folded, left_out
from graph.tool.registry import mcp_schema, schema_text, schemas_of
from graph.value.error import ContextLengthError, ModelError, RejectedError, ToolsRefusedError
from graph.value.event import FoldWaiting, LeftOut
from prompt.system.chat import rounds_note
from prompt.system.framing import Language

_LOG = logging.getLogger(__name__)


class Guard:
    """Fits the input of one call below a limit.

    Attributes:
        update: What its folds change in the state.
        tools: The schemas to send.
        left_out: What of the input was left out, if a program asked.
    """

    def __init__(
        self,
        deps: NodeDeps,
        turn: TurnContext,
        state: ChatState,
        system: SystemPart,
        tools: Sequence[dict[str, Any]],
    ) -> None:
        self.update: dict[str, Any] = {}
        self.tools = tools
        self.left_out: tuple[str, ...] = ()
        self._deps = deps
        self._turn = turn
        self._state = state
        self._system = self._whole = system
        self._begun: ModelInput | None = None

    def begin(self) -> Fit:
        history, messages = self._state["summary_history"], self._working_messages()
        self._begun = self._turn.strategy.assemble(self._system, history, messages)
        return Fit(self._system, history, messages, self._begun)

    def fit(self, fit: Fit, *, limit_tokens: int) -> Fit:
        # The correction is at most 2, so an input below half of the limit needs no database query.
        if fit.model_input.sent_tokens * 2 < limit_tokens:
            return fit
        correction = self._deps.stores.state(self._state["session_id"]).calls.correction
        allowed_tokens = math.ceil(correction.sent_within(limit_tokens)) - 1
        if fit.model_input.sent_tokens > allowed_tokens:
            fit = self._without_ours(fit)
        if fit.model_input.sent_tokens <= allowed_tokens:
            return fit
        merged_tokens = self._deps.settings.merged_tokens
        strategy = self._turn.strategy
        fitting = Fitting(strategy.assemble, self._system, allowed_tokens=allowed_tokens, merged_tokens=merged_tokens)
        if not strategy.sends_records:
            return fitting.by_leaving_out(fit)

        def fold(spec: FoldSpec) -> Folded | None:
            snapshot = self._fold(spec)
            if snapshot is None:
                return None
            self.update = state_update(snapshot, self._state)
            raw_ids = {str(entry.message.id) for entry in snapshot.raw}
            history = self.update.get("summary_history", self._state["summary_history"])
            return Folded(snapshot, history, [m for m in fit.messages if str(m.id) in raw_ids])

        snapshot = snapshot_of(self._deps, self._turn, self._state)
        return fitting.by_folding(fit, snapshot, fold)

    def tell(self, fit: Fit) -> None:
        """Tells the program that asks what of its input isn't sent."""
        if self._turn.client is None:
            return
        whole = fit.model_input
        if whole is not self._begun:
            whole = self._turn.strategy.assemble(self._whole, fit.history, fit.messages)
        self.left_out = left_out(whole, fit.model_input)
        if self.left_out:
            self._turn.emit(LeftOut(self.left_out))

    def without_tools(self, fit: Fit, system: SystemPart) -> Fit:
        """Returns an input with the same turns for a model that takes no tools."""
        self.tools = ()
        self._whole = system
        return self._rebuilt(fit, system)

    def _without_ours(self, fit: Fit) -> Fit:
        """Returns an input without what the program didn't ask for: our tools, or turns looked up in their place.

        Tools that the open turn has called stay.
        """
        turn = self._turn
        if turn.client is None or self._state["tool_rounds"]:
            return fit
        self.tools = _own_tools(turn)
        system = _system(turn, self.tools, has_tools=False, is_last_round=False)
        if turn.volatile is not None:
            system = system.with_block(turn.volatile.within(0, turn.language))
        return self._rebuilt(fit, system)

    def _rebuilt(self, fit: Fit, system: SystemPart) -> Fit:
        self._system = system
        model_input = self._turn.strategy.assemble(system, fit.history, fit.messages)
        return Fit(system, fit.history, fit.messages, model_input)

    def _working_messages(self) -> list[AnyMessage]:
        """Returns the messages to build from, oldest first.

        Whole turns come from the archive, as folded ones left the state.
        """
        turn, messages = self._turn, list(self._state["messages"])
        if turn.strategy.whole_turns is None:
            return messages
        session_id, first = self._state["session_id"], max(1, turn.row.number - turn.strategy.whole_turns)
        begin = turn.state.row.context_from_position
        entries = self._deps.stores.archive.live_turns(session_id, first, turn.row.number - 1)
        held = {message.id: message for message in messages}  # with what their provider wants back
        earlier = [held.get(entry.message.id, entry.message) for entry in entries if entry.position > begin]
        return [*earlier, *extract_current_turn(messages)]

    def _fold(self, spec: FoldSpec) -> SessionSnapshot | None:
        turn, session_id, worker = self._turn, self._state["session_id"], self._deps.fold_worker
        limit_seconds = self._deps.settings.fold_wait_seconds
        seconds = turn.fold_wait.remaining_seconds(limit_seconds) if worker.may_wait(session_id) else 0.0
        if seconds:
            turn.emit(FoldWaiting(spec.turns))
        with turn.fold_wait.spend():
            record = worker.make_now(
                session_id, spec, owner=turn.owner, model=turn.row.model, stop=turn.stop, wait_seconds=seconds
            )
        if record is None or not self._deps.stores.records.adopt(turn.lease, record.id):
            return None
        turn.emit(folded_event(record))
        _LOG.info("guard folded session=%s turns %d-%d", session_id, record.turns[0], record.turns[-1])
        return snapshot_of(self._deps, turn, self._state)


def guard_of(
    deps: NodeDeps, turn: TurnContext, state: ChatState, name: str, offered: Sequence[dict[str, Any]]
) -> Guard:
    """Returns the guard of a call of this model, with the system part and the tools that it is sent."""
    has_tools = deps.models.takes_tools(name) or bool(turn.client and turn.client.tools)
    tools = offered if has_tools else []
    system = _system(turn, tools, has_tools=has_tools, is_last_round=_is_last_round(deps, state))
    return Guard(deps, turn, state, system, tools)


def _is_last_round(deps: NodeDeps, state: ChatState) -> bool:
    return state["tool_rounds"] >= deps.settings.tool_rounds


_SHORTER_SHARE: Final = 0.6
_LEAST_LONG_TOKENS: Final = 2_000  # of an input that is refused for its length without a word of it


class LlmNode:
    """Builds the model input, streams one answer, and archives it before it enters the state."""

    def __init__(self, deps: NodeDeps) -> None:
        self._deps = deps
        self._sizes: dict[str, int] = {}  # of inputs, by the model that their length is no problem for
        self._schemas: dict[tuple[Language, tuple[str, ...]], list[dict[str, Any]]] = {}

    def __call__(self, state: ChatState, *, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        turn, deps = runtime.context, self._deps
        call = AnswerCall(deps, turn, state)
        name = deps.models.resolve(turn.row.model)
        guard = guard_of(deps, turn, state, name, self._offered(turn))
        fit = guard.fit(guard.begin(), limit_tokens=deps.models.input_tokens(turn.row.model))
        try:
            answer = self._answer(turn, state, call, guard, fit)
        except ToolsRefusedError:
            if not guard.tools or _own_tools(turn):
                raise  # a program decides what becomes of its own tools
            fit = guard.without_tools(
                fit, _system(turn, [], has_tools=False, is_last_round=_is_last_round(deps, state))
            )
            answer = deps.models.tool_choice.ask_without_tools(
                name, partial(self._answer, turn, state, call, guard, fit)
            )
        message = _with_ids_of_its_own(_runnable_calls(answer.message), state["messages"])
        is_first = not any(isinstance(each, AIMessage) for each in extract_current_turn(state["messages"]))
        if turn.looked_up and is_first and "recall" not in guard.left_out:
            message.additional_kwargs[LOOKED_UP] = [*turn.looked_up]
        if guard.left_out:
            message.additional_kwargs[LEFT_OUT] = [*guard.left_out]
        archive_messages(deps, turn, [without_returned(message)])
        if call.answered is not None and not message.tool_calls:
            self._remember(turn, name, call.answered, guard.tools, message)
        return {**guard.update, "messages": [*guard.update.get("messages", []), message]}

    def _answer(self, turn: TurnContext, state: ChatState, call: AnswerCall, guard: Guard, fit: Fit) -> Answer:
        """Makes the call, and once more with a shorter input if the provider finds it too long, in whatever words."""
        deps = self._deps
        name = deps.models.resolve(turn.row.model)
        choice = _choice(turn, state, is_last_round=_is_last_round(deps, state))

        def ask(fit: Fit) -> Answer:
            guard.tell(fit)
            tools, model_input = guard.tools, fit.model_input
            model = deps.models.chat(name, thinking=turn.thinking)
            if tools and choice != "none":
                asked = model.bind_tools(tools)
                return call(asked.bind(tool_choice=choice) if choice else asked, model_input)
            return deps.models.tool_choice.answer_without_calls(name, model, tools, model_input, call)

        # What a program sent goes whole or not at all; other inputs may be larger than a window that is only guessed.
        reported_tokens = deps.models.reported_window_tokens(name)
        window_tokens = deps.models.window_tokens(name) if turn.before else reported_tokens
        _check_window(fit.model_input, window_tokens)
        sent_tokens = fit.model_input.sent_tokens
        try:
            answer = ask(fit)
        except (ContextLengthError, RejectedError) as error:
            is_told = isinstance(error, ContextLengthError)
            if not is_told and not self._may_be_too_long(turn, name, error, sent_tokens):
                raise
            if call.is_heard and not turn.supports_restart:
                raise  # what a program was sent can't be taken back
            # The provider counts more tokens than we estimate, or has just told us its window: retry once with a
            # shorter input.
            refused_tokens = deps.stores.state(state["session_id"]).calls.correction.tokens(sent_tokens)
            limit_tokens = min(deps.models.input_tokens(turn.row.model), int(refused_tokens * _SHORTER_SHARE))
            fit = guard.fit(fit, limit_tokens=limit_tokens)
            if fit.model_input.sent_tokens >= sent_tokens:
                raise
            try:
                answer = ask(fit)
            except RejectedError:
                self._sizes[name] = sent_tokens
                raise
            if refused_tokens > _LEAST_LONG_TOKENS and deps.models.reported_window_tokens(name) == reported_tokens:
                deps.models.learn_window(name, refused_tokens)
        else:
            self._sizes[name] = max(sent_tokens, self._sizes.get(name, 0))
        return answer

    def _may_be_too_long(self, turn: TurnContext, name: str, error: ModelError, sent_tokens: int) -> bool:
        """Whether a refusal of no known kind may be of the length: of an input longer than any that was answered."""
        given = turn.client.sampling if turn.client else {}
        is_of_a_parameter = any(parameter in error.detail for parameter in given)
        longest_tokens = max(_LEAST_LONG_TOKENS, self._sizes.get(name, 0))
        return type(error) is RejectedError and sent_tokens > longest_tokens and not is_of_a_parameter

    def _remember(
        self, turn: TurnContext, name: str, sent: ModelInput, tools: Sequence[dict[str, Any]], answer: AIMessage
    ) -> None:
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
        return [*self._schemas[key], *map(mcp_schema, turn.mcp_tools), *_own_tools(turn)]


def _own_tools(turn: TurnContext) -> list[dict[str, Any]]:
    """Returns the tools of the program that asks."""
    return [dict(tool) for tool in turn.client.tools] if turn.client else []


def _system(turn: TurnContext, tools: Sequence[dict[str, Any]], *, has_tools: bool, is_last_round: bool) -> SystemPart:
    return replace(
        turn.system_for(has_tools=has_tools),
        tool_schema=schema_text(tools),
        note=rounds_note(turn.language) if is_last_round else "",
    )


def _check_window(model_input: ModelInput, window_tokens: int | None) -> None:
    """Refuses an input whose prompt and question alone fill the window: some servers cut its beginning silently.

    Raises `ContextLengthError` for an input that is as large as the window.
    """
    if window_tokens is not None and model_input.sent_tokens >= window_tokens:
        detail = f"≈{model_input.sent_tokens} ≥ {window_tokens}"
        raise ContextLengthError(detail)


def _choice(turn: TurnContext, state: ChatState, *, is_last_round: bool) -> str | Mapping[str, Any] | None:
    """Returns the `tool_choice` of a call; None leaves it to the endpoint.

    A required call of our tools is required of the first answer only, so that the model can answer with the result.
    """
    asks_for_tools = turn.client is not None and bool(turn.client.tools or turn.client.tool_choice)
    if is_last_round or (state["is_casual"] and not asks_for_tools):
        return "none"
    choice = turn.client.tool_choice if turn.client else None
    is_ours = choice is not None and choice not in ("none", "auto") and not turn.is_demand
    return None if is_ours and state["tool_rounds"] else choice


def _with_ids_of_its_own(message: AIMessage, earlier: Sequence[AnyMessage]) -> AIMessage:
    """Gives calls a new id if an earlier call has theirs: some servers number the calls of each answer from 0."""
    used = {call["id"] for past in earlier if isinstance(past, AIMessage) for call in past.tool_calls}
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
