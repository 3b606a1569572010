"""Hands an attempt of a turn to a worker, with all that it needs to know of its session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from langchain_core.messages import AnyMessage

from graph.core.pin import ContextRequest
from graph.core.text import plain_text
from graph.core.turn import RETURNED
from graph.node.state import TurnContext
from graph.recognise.client_chain import OpenFingerprint
from graph.recognise.decide import Decision
from graph.server.metrics import Metrics
from graph.service.access import Choices, SessionAccess
from graph.service.program_input import cleaned_options
from graph.store.database import Lease
from graph.store.state import SessionState
from graph.store.turn import TurnRow
from graph.tool.registry import mcp_text, mcp_tools, read_mcp
from graph.value.mcp import ToolInfo
from graph.value.view import TurnOptions
from graph.worker.project_context import SessionContexts
from graph.worker.project_turns import ProjectTurns
from graph.worker.title_maker import TitleMaker
from graph.worker.turn_log import TurnLog, TurnMeter, answers_in, steps_in
from graph.worker.turn_runner import Job
from graph.worker.vector_worker import VectorWorker


class TurnStarter:
    """Starts the turns of one owner's sessions."""

    def __init__(
        self,
        access: SessionAccess,
        choices: Choices,
        *,
        contexts: SessionContexts,
        project_turns: ProjectTurns | None,
        titles: TitleMaker | None,
        vectors: VectorWorker | None,
        metrics: Metrics,
    ) -> None:
        self._owner = access.owner
        self._stores = access.stores
        self._runner = access.runner
        self._choices = choices
        self._contexts = contexts
        self._project_turns = project_turns
        self._titles = titles
        self._vectors = vectors
        self._metrics = metrics

    def start(
        self,
        lease: Lease,
        turn: TurnRow,
        state: SessionState,
        options: TurnOptions,
        decision: Decision | None,
        *,
        messages: Sequence[AnyMessage] = (),
        resumed: Sequence[AnyMessage] = (),
        words: Mapping[str, bool] = MappingProxyType({}),
    ) -> None:
        """Hands an attempt to a worker, which releases the lease and the slot at its end.

        `messages` are those with which it begins; `resumed` are those of the attempt before a program answered its
        calls, or before the user gave his word on them.
        """
        session_id, session = lease.session_id, state.row
        before = [*messages, *resumed]
        log = TurnLog(
            turn.number,
            turn.attempt,
            text="\n\n".join(answers_in(before)),
            steps=tuple(step for step in steps_in(before) if step.status != "running"),
            thoughts=self._stores.turns.thoughts(session_id, turn.number) if resumed else "",
            thought_seconds=turn.thought_seconds,
        )
        log.watch(TurnMeter(self._metrics).hear)
        if self._titles is not None:
            log.watch(partial(self._titles.hear, session))
        if self._vectors is not None:
            log.watch(partial(self._vectors.hear, session))
        strategy, projects = self._choices.strategies.of(session.strategy), self._project_turns
        language, raw = state.language, [entry.message for entry in state.raw]
        asked = next((message for message in reversed(raw) if message.id == turn.user_message_id), None)
        if asked is None:  # folded already
            asked = self._stores.archive.get(session_id, turn.user_message_id).message
        mcp_tools = self._mcp_tools(lease, state, options, is_resumed=bool(resumed))
        context = TurnContext(
            lease=lease,
            owner=self._owner,
            row=turn,
            state=state,
            strategy=strategy,
            emit=log.append,
            stop=log.stop,
            give_up=self._runner.give_up,
            time_zone=options.time_zone,
            language=language,
            project=None if projects is None else projects.access(self._owner, session.project_root),
            client=None if options.client is None else cleaned_options(options.client),
            is_resumed=bool(resumed),
            tools_off=frozenset(session.tools_off),
            pins=state.pins if strategy.sends_records else (),
            thinking=session.thinking,
            mcp_tools=mcp_tools,
            mcp_allowed=frozenset(session.mcp_allowed),
            words=words,
            has_files=state.has_long_files,
        )
        values = {plain_text(key): plain_text(value) for key, value in options.context.items()}
        holds_on = not session.project_root and (decision is None or decision.is_own)
        request = ContextRequest(
            session_id=session_id,
            owner=self._owner,
            root=session.project_root,
            has_memory=session.has_memory,
            language=language,
            turn=turn.number,
            message=asked,
            own=state.own_block,
            # Without a project, what earlier requests said of the context holds on, unless another person said it.
            context=self._contexts.apply_context(session_id, values, language) if holds_on else values,
        )
        # What a provider wants back with its calls is in no table, neither for the copies of earlier ones.
        kwargs = {str(message.id): message.additional_kwargs for message in messages}
        returned = {message_id: each[RETURNED] for message_id, each in kwargs.items() if RETURNED in each}
        self._runner.submit(Job(log, context, request, returned, fingerprint_of(decision)))

    def _mcp_tools(
        self, lease: Lease, state: SessionState, options: TurnOptions, *, is_resumed: bool
    ) -> tuple[ToolInfo, ...]:
        """Returns the MCP tools that a turn is offered: those of its session, or of its beginning if it is resumed."""
        begun = state.blocks.get("mcp")
        text = begun.text if begun else ""
        chosen = mcp_tools(state.row.mcp_tools) if not is_resumed else read_mcp(text) if text else ()
        offered = self._choices.mcp_offered(chosen, options.client)
        if not is_resumed and mcp_text(offered) != text:
            self._stores.blocks.keep(lease, "mcp", mcp_text(offered), owner=self._owner)
        return offered


def fingerprint_of(decision: Decision | None) -> OpenFingerprint | None:
    return decision.fingerprint if decision else None
