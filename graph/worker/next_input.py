"""Estimates what the next call of a session would be sent, by the code that prepares a turn; nothing is stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool

from graph.core.attached import Attachment, content_of, with_attachments
from graph.core.long_file import sent_files
from graph.core.model_input import ModelInput
from graph.core.pin import BlockKind, ContextBlock, ContextRequest, ContextSource
from graph.core.snapshot import SessionSnapshot
from graph.model.caller import drop
from graph.node.llm import guard_of
from graph.node.state import ChatState, NodeDeps, TurnContext
from graph.store.database import Lease
from graph.store.project import ContextBlockStore
from graph.store.session import SessionRow
from graph.store.state import SessionState
from graph.store.turn_row import TurnRow
from graph.strategy.base import Strategy
from graph.strategy.strategies import Strategies
from graph.tool.registry import KnownTools, Schemas, mcp_schema
from graph.tool.tool_context import ProjectAccess
from graph.value.record import to_entry
from graph.value.view import NamedImage
from graph.worker.project_context import SessionContexts
from graph.worker.turn_blocks import TurnBlocks
from prompt.system.framing import Language

# Stands where the question will: a strategy's note before it isn't sent without one.
_QUESTION: Final = HumanMessage("?", id="next-question")
# While the endpoint decides the model and doesn't answer: with a name, nothing waits for its list.
_UNKNOWN_MODEL: Final = "unknown"
_NEVER: Final = datetime.fromtimestamp(0, UTC)


def unsaved_session(owner: str, compression_rate: float) -> SessionRow:
    """Returns the row of a session that the next message would create."""
    return SessionRow(session_id="", owner=owner, compression_rate=compression_rate)


class NextInputs:
    """The inputs of turns that haven't begun.

    Folds that are ready count as adopted, and what the guard would fold counts as it is. Of the question only its files
    are known; its words, turns looked up for it and lines of memory chosen by it aren't.
    """

    def __init__(
        self,
        deps: NodeDeps,
        strategies: Strategies,
        contexts: SessionContexts,
        known_tools: KnownTools,
        source: ContextSource,
        project_of: Callable[[str, str], ProjectAccess | None],
    ) -> None:
        self._deps = deps
        self._strategies = strategies
        self._contexts = contexts
        self._known_tools = known_tools
        self._project_of = project_of
        self._blocks = TurnBlocks(
            source, _UnkeptBlocks(deps.stores.database), deps.stores.calls, deps.models, self._tools, lambda *_: ""
        )

    def of(
        self, session: SessionRow, language: Language | None = None, files: Iterable[Attachment | NamedImage] = ()
    ) -> ModelInput:
        """Returns the input of a session's next turn; `language` is that of a session without words."""
        deps, strategy = self._deps, self._strategies.of(session.strategy)
        name = deps.models.known_name(session.model) or _UNKNOWN_MODEL
        session = replace(session, model=name)
        with deps.stores.database.reading():
            known = self._known(session, strategy, language)
            snapshot = self._snapshot(known, session, strategy)
            sent = self.sent_files(name, [*files], known.language)
            turn = self._turn(known, session, strategy, has_long=any(_is_long(file) for file in sent))
            state = _state(session, snapshot, _question(sent, known.language))
            guard = guard_of(deps, turn, state, name, self._offered(turn)[1])
            fit = guard.begin()
            if not strategy.sends_records:  # then only leaves out
                fit = guard.fit(fit, limit_tokens=deps.models.input_tokens(name))
        return fit.model_input

    def sent_files(
        self, model: str, files: Sequence[Attachment | NamedImage], language: Language
    ) -> list[Attachment | NamedImage]:
        """Returns the files as they would be sent: of long ones the beginning."""
        texts = [file for file in files if isinstance(file, Attachment)]
        window_tokens, most_chars = self._deps.models.window_tokens(model), self._deps.settings.message_chars
        sent = iter(sent_files(texts, window_tokens=window_tokens, most_chars=most_chars, language=language))
        return [next(sent) if isinstance(file, Attachment) else file for file in files]

    def _known(self, session: SessionRow, strategy: Strategy, language: Language | None) -> SessionState:
        stores = self._deps.stores
        if not session.session_id:
            return stores.unsaved_state(session, language)
        known = stores.state(session.session_id, whole_turns=strategy.whole_turns)
        return replace(known, default_language=language or known.default_language)

    def _snapshot(self, known: SessionState, session: SessionRow, strategy: Strategy) -> SessionSnapshot:
        """Returns the session's snapshot with the folds that its next turn will find ready."""
        worker = self._deps.fold_worker
        complete_turns = session.turn_count - session.is_open
        snapshot = worker.snapshot_of(known, complete_turns=complete_turns, rate=session.compression_rate)
        for spec in strategy.due_folds(snapshot.within(self._deps.models.input_tokens(session.model))):
            record = worker.prepared(worker.plan(session.session_id, spec, owner=session.owner, model=session.model))
            if record is not None:
                snapshot = snapshot.adopting(record)
            elif spec.is_waited:
                break
        return snapshot

    def _turn(self, known: SessionState, session: SessionRow, strategy: Strategy, *, has_long: bool) -> TurnContext:
        session_id, number, language = session.session_id, session.turn_count + 1, known.language
        turn = TurnContext(
            lease=Lease(session_id, "", 0),
            owner=session.owner,
            row=_row(session, number),
            state=known,
            strategy=strategy,
            emit=drop,
            stop=threading.Event(),
            give_up=threading.Event(),
            time_zone="",
            language=language,
            project=self._project_of(session.owner, session.project_root),
            tools_off=frozenset(session.tools_off),
            mcp_tools=self._deps.tools_of_servers(session.mcp_tools),
            pins=known.pins if strategy.sends_records else (),
            has_files=has_long or known.has_long_files,
        )
        request = ContextRequest(
            session_id=session_id,
            owner=session.owner,
            root=session.project_root,
            has_memory=session.has_memory,
            language=language,
            turn=number,
            message=_QUESTION,
            own=replace(known, row=session).own_block,
            context={} if session.project_root else self._contexts.apply_context(session_id, {}, language),
        )
        return self._blocks.added_to(turn, request)

    def _tools(self, turn: TurnContext) -> Sequence[BaseTool]:
        return self._offered(turn)[0]

    def _offered(self, turn: TurnContext) -> tuple[Sequence[BaseTool], Schemas]:
        tools, schemas = self._known_tools.offered(
            turn.language,
            has_past=turn.strategy.sends_records,
            has_project=turn.project is not None,
            has_files=turn.has_files,
        )
        offered = [pair for pair in zip(tools, schemas, strict=True) if turn.offers(pair[0].name)]
        return [tool for tool, _ in offered], [*(schema for _, schema in offered), *map(mcp_schema, turn.mcp_tools)]


class _UnkeptBlocks(ContextBlockStore):
    """Returns a session's blocks, and keeps none."""

    def keep(
        self,
        lease: Lease,  # noqa: ARG002  # as the store has it
        kind: BlockKind,
        text: str,
        *,
        owner: str,  # noqa: ARG002  # as the store has it
        lost_tokens: int = 0,  # noqa: ARG002  # as the store has it
    ) -> ContextBlock | None:
        return ContextBlock(kind, 0, text) if text else None


def _is_long(file: Attachment | NamedImage) -> bool:
    return isinstance(file, Attachment) and file.sent_lines > 0


def _question(files: Sequence[Attachment | NamedImage], language: Language) -> HumanMessage:
    texts = [file for file in files if isinstance(file, Attachment)]
    images = [file for file in files if isinstance(file, NamedImage)]
    return HumanMessage(content_of(with_attachments(_QUESTION.text, texts, language), images), id=_QUESTION.id)


def _state(session: SessionRow, snapshot: SessionSnapshot, question: HumanMessage) -> ChatState:
    return {
        "messages": [*(entry.message for entry in snapshot.raw), question],
        "session_id": session.session_id,
        "summary_history": [to_entry(record) for record in snapshot.active],
        "turn_count": session.turn_count + 1,
        "compression_rate": session.compression_rate,
        "is_casual": False,
        "tool_rounds": 0,
    }


def _row(session: SessionRow, number: int) -> TurnRow:
    return TurnRow(
        session_id=session.session_id,
        number=number,
        attempt=1,
        status="running",
        user_message_id=str(_QUESTION.id),
        model=session.model,
        is_casual=False,
        partial_text="",
        stop_requested=False,
        error_code="",
        error_detail="",
        started_at=_NEVER,
        finished_at=None,
        history_tokens=0,
        client="",
        is_imported=False,
    )
