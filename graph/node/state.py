"""The graph's state, which LangGraph keeps between steps, and the context of one run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage
from langchain_core.tools import BaseTool
from langgraph.graph.message import add_messages

from graph.core.ledger import LEDGER_TOKENS
from graph.core.model_input import SystemPart, system_part
from graph.core.pin import ContextBlock, Pin
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import RECALL_TOOL
from graph.mcp.servers import McpServers
from graph.model.factory import ChatModels
from graph.model.spending import Spending
from graph.node.fold_worker import FoldWorker
from graph.server.settings import Settings
from graph.store.call import ModelCall
from graph.store.database import Lease, outlast
from graph.store.state import SessionState
from graph.store.stores import ChatStores
from graph.store.turn import TurnRow
from graph.strategy.base import Strategy
from graph.tool.registry import ToolContext, mcp_tools
from graph.tool.tool_context import ProjectAccess
from graph.value.client import ClientOptions
from graph.value.event import Event, Folded
from graph.value.mcp import ToolInfo
from graph.value.record import HistoryEntry, Record
from graph.value.view import Thinking
from prompt.system.framing import Language


class ChatState(TypedDict):
    """State of one session: messages and plain JSON, as the strict serializer refuses anything else.

    `messages` are the raw turns and the open one; `summary_history` the active records, oldest first.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    session_id: str
    summary_history: list[HistoryEntry]
    turn_count: int
    compression_rate: float
    is_casual: bool
    tool_rounds: int


@dataclass
class WaitBudget:
    """Sums up how long a turn has waited for folds, so that one limit covers all its waits."""

    spent_seconds: float = 0.0

    def remaining_seconds(self, limit_seconds: float) -> float:
        return max(0.0, limit_seconds - self.spent_seconds)

    @contextmanager
    def spend(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.spent_seconds += time.monotonic() - began


@dataclass(frozen=True)
class TurnContext:
    """One attempt of one turn.

    Attributes:
        state: The session as the attempt begins.
        tell: Takes the turn's events in the thread of the node; LangGraph's `stream_writer` runs each node in a thread
            of its own and hands every word through two more.
        give_up: Set when the server, which shuts down, waits no longer for a database that is away.
        time_zone: IANA name, "" for UTC.
        client: What the program that asks adds to the turn; None for the page.
        is_resumed: The turn goes on behind a program's answers to its calls.
        thinking: How much the model is to think, "" for its own measure.
        looked_up: Turns set before the question for a model that can't call `recall`.
        ledger_tokens: The room for the ledger's lines.
        mcp_tools: Tools of MCP servers offered in this turn, by server and name.
        mcp_allowed: Those whose calls the user has allowed in this chat, by `allowance_of`.
        has_files: Whether the chat has long files, of which only the beginning is sent.
        words: The user's word on calls that waited for it, by id: whether they may be made.
        tools_off: Tools of ours that a program has replaced by its own of the same name, in this session for good.
    """

    lease: Lease
    owner: str
    row: TurnRow
    state: SessionState
    strategy: Strategy
    emit: Callable[[Event], None]
    stop: threading.Event
    give_up: threading.Event
    time_zone: str
    language: Language
    fold_wait: WaitBudget = field(default_factory=WaitBudget)
    own: ContextBlock | None = None
    front: ContextBlock | None = None
    client_block: ContextBlock | None = None
    volatile: ContextBlock | None = None
    before: ContextBlock | None = None
    project: ProjectAccess | None = None
    client: ClientOptions | None = None
    is_resumed: bool = False
    tools_off: frozenset[str] = frozenset()
    pins: tuple[Pin, ...] = ()
    ledger_tokens: int = LEDGER_TOKENS
    thinking: Thinking = ""
    looked_up: tuple[int, ...] = ()
    mcp_tools: tuple[ToolInfo, ...] = ()
    mcp_allowed: frozenset[str] = frozenset()
    words: Mapping[str, bool] = field(default_factory=dict)
    has_files: bool = False

    @property
    def system(self) -> SystemPart:
        """The part of every input of this turn that nobody said."""
        return self.system_for(has_tools=True)

    def system_for(self, *, has_tools: bool) -> SystemPart:
        """Returns `system`; for a model without tools, one that doesn't speak of them."""
        can_recall = self.strategy.sends_records and has_tools and self.offers(RECALL_TOOL)
        prompt = system_part(self.language, can_recall=can_recall)
        return replace(
            prompt,
            own=self.own,
            front=self.front,
            client=self.client_block,
            volatile=self.volatile,
            before=self.before,
            pins=self.pins,
            struck=self.state.row.strikes,
            ledger_tokens=self.ledger_tokens,
        )

    @property
    def client_tools(self) -> frozenset[str]:
        return self.client.tool_names if self.client else frozenset()

    @property
    def supports_restart(self) -> bool:
        """Whether words that were sent can be taken back: the page and some programs are told so."""
        return self.client is None or self.client.supports_restart

    def offers(self, name: str) -> bool:
        return self.allows(name) and not self.is_demand

    @property
    def is_demand(self) -> bool:
        return self.client is not None and self.client.is_demand

    def allows(self, name: str) -> bool:
        allowed = self.client.allowed_tools if self.client else None
        return name not in self.tools_off | self.client_tools and (allowed is None or name in allowed)


@dataclass(frozen=True, kw_only=True)
class NodeDeps:
    models: ChatModels
    fold_worker: FoldWorker
    tools: Callable[[ToolContext], list[BaseTool]]
    stores: ChatStores
    clock: Callable[[], datetime]
    settings: Settings
    spending: Spending
    mcp: McpServers

    def tools_of_servers(self, stored: Sequence[Mapping[str, Any]]) -> tuple[ToolInfo, ...]:
        """Returns a chat's MCP tools from their fields; those of servers that aren't here any more are left out."""
        names = self.mcp.names()
        return tuple(tool for tool in mcp_tools(stored) if tool.server in names)


def archive_messages(
    deps: NodeDeps,
    turn: TurnContext,
    messages: Sequence[AnyMessage],
    *,
    whole_texts: Mapping[str, str] = MappingProxyType({}),
    images: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Archives what the turn has said; waits while the database is away, as it was said to the user already.

    See `Archive.append`.
    """
    append = partial(deps.stores.archive.append, turn.lease, owner=turn.owner, turn=turn.row.number)
    append = partial(append, whole_texts=whole_texts, images=images)
    entries = outlast(partial(append, attempt=turn.row.attempt, messages=messages), turn.give_up)
    deps.stores.carry(turn.lease.session_id, lambda state: state.said(entries))


def keep_call(deps: NodeDeps, turn: TurnContext, call: ModelCall) -> ModelCall:
    """Stores a finished call of a model; returns it with its ordinal."""
    stored = deps.stores.calls.add(turn.lease, call, owner=turn.owner)
    deps.stores.carry(turn.lease.session_id, lambda state: state.called(stored))
    return stored


def snapshot_of(
    deps: NodeDeps, turn: TurnContext, state: ChatState, known: SessionState | None = None
) -> SessionSnapshot:
    """Returns the turn's session as it is `known`, else as it is now."""
    if known is None:
        known = deps.stores.state(state["session_id"], whole_turns=turn.strategy.whole_turns)
    return deps.fold_worker.snapshot_of(
        known,
        complete_turns=turn.row.number - 1,
        rate=state["compression_rate"],
        time_zone=turn.time_zone,
    )


def folded_event(record: Record) -> Folded:
    return Folded(record.id, record.turns, record.original_chars, record.summary_chars)
