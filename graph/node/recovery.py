"""Makes graph state agree with the archive and the record table, which are the only truth."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from graph.core.turn import RETURNED, Closing, closing_messages, ending_of, is_complete, status_of, unanswered_calls
from graph.node.builder import ChatGraph
from graph.recognise.client_chain import EndedFingerprint
from graph.store.database import Lease
from graph.store.session import SessionRow
from graph.store.state import SessionState
from graph.store.stores import ChatStores
from graph.store.turn import TurnRow
from graph.strategy.strategies import Strategies
from graph.value.error import NotADatabaseError, StoreError
from graph.value.record import to_entry

_LOG = logging.getLogger(__name__)
# What LangGraph raises for a checkpoint that it can read but not interpret.
_UNREADABLE: Final = (NotADatabaseError, LookupError, TypeError, ValueError, AttributeError)


def config_of(session_id: str) -> RunnableConfig:
    """Returns LangGraph's configuration of a session; checkpoints keep it, so it must contain nothing secret."""
    return {"configurable": {"thread_id": session_id}}


class StateRecovery:
    """Reconciles sessions between turns, under their lease."""

    def __init__(self, graph: ChatGraph, stores: ChatStores, strategies: Strategies) -> None:
        self._graph = graph
        self._strategies = strategies
        self._stores = stores

    def reconcile(
        self, lease: Lease, session: SessionRow, *, keeps_waiting: bool = False, state: SessionState | None = None
    ) -> None:
        """Closes a turn that is left open, and rebuilds the state if it differs from the tables.

        Records behind a hole in the coverage are invalidated. A pending task is never resumed: if its answer was given,
        it is in the archive; if it failed, it would fail again. `keeps_waiting`: a turn that waits for a program or
        for the user's word stays open. `state` is the session's, as it was read under the lease.
        """
        session_id = lease.session_id
        context = state
        if context is None or context.whole_turns != self._strategies.of(session.strategy).whole_turns:
            context = self._context(session)
        last = context.last
        if context.left_out:
            self._stores.records.invalidate_from(lease, context.left_out[0].from_position)
        is_kept = keeps_waiting and last is not None and last.is_waiting
        if last is not None and last.is_open and not is_kept:
            self._end_interrupted(lease, last, owner=session.owner)
            context = self._context(session)
        asks = is_kept and last is not None and last.status == "asking"
        if not self._is_same(session_id, context, asks=asks):
            self.rebuild(session)

    def close(
        self,
        lease: Lease,
        turn: TurnRow,
        *,
        owner: str,
        status: Closing,
        code: str = "",
        detail: str = "",
        partial_text: str = "",
        fingerprint: EndedFingerprint | None = None,
    ) -> None:
        """Closes a turn that can't go on: in the archive, then in its row, then in graph state.

        A turn whose answer is archived completely ends as finished, whatever failed afterwards.
        """
        messages = self._messages_of(turn)
        if is_complete(messages):
            ending, code = ending_of(messages, stop_requested=False)
            self._stores.turns.finish(lease, turn.number, ending, error_code=code, fingerprint=fingerprint)
        else:
            closing = closing_messages(
                messages,
                status=status,
                code=code,
                partial_text=partial_text,
                language=self._stores.state(lease.session_id).language,
                message_id=f"closed-{uuid.uuid4().hex}",
                declined=[call["id"] for call in turn.asked_calls],
                had_begun=turn.status == "running" and not turn.client,
            )
            self._stores.archive.append(lease, owner=owner, turn=turn.number, attempt=turn.attempt, messages=closing)
            self._stores.turns.finish(
                lease,
                turn.number,
                status_of(status),
                error_code=code,
                error_detail=detail,
                partial_text=partial_text,
                fingerprint=fingerprint,
            )
        try:
            self.rebuild(self._stores.sessions.get(lease.session_id, owner))
        except StoreError as error:
            # The turn is closed in the tables; the next one finds that the state differs, and rebuilds it.
            _LOG.warning("state of session=%s not rebuilt: %s", lease.session_id, error.code)

    def rebuild(self, session: SessionRow) -> None:
        """Replaces the graph state by what the tables say; what a provider wants back with calls is retained."""
        session_id, context = session.session_id, self._context(session)
        active, raw, last = context.active, context.raw, context.last
        returned = self.returned(session_id)
        self._stores.checkpointer.delete_thread(session_id)
        if not raw and not active:
            return
        values: dict[str, Any] = {
            "messages": [_with_returned(entry.message, returned) for entry in raw],
            "session_id": session_id,
            "summary_history": [to_entry(record) for record in active],
            "turn_count": session.turn_count,
            "compression_rate": session.compression_rate,
            "is_casual": False,
            "tool_rounds": 0,
        }
        # A run ends behind either node, and the state must look as if one had ended; the word on calls that ask is
        # waited for before `tool_node`.
        asks = last is not None and last.status == "asking"
        node = "tool_node" if unanswered_calls(values["messages"]) and not asks else "llm_node"
        self._graph.update_state(config_of(session_id), values, as_node=node)
        _LOG.info("state of session=%s rebuilt from the tables", session_id)

    def returned(self, session_id: str) -> dict[str, dict[str, object]]:
        """Returns what the state has to be sent back, by the answer's id; the tables have none of it."""
        try:
            held = self._graph.get_state(config_of(session_id)).values.get("messages", [])
            values = {str(each.id): each.additional_kwargs.get(RETURNED) for each in held}
            return {name: value for name, value in values.items() if isinstance(value, dict)}
        except _UNREADABLE:
            return {}

    def _context(self, session: SessionRow) -> SessionState:
        return self._stores.state(session.session_id, whole_turns=self._strategies.of(session.strategy).whole_turns)

    def _end_interrupted(self, lease: Lease, turn: TurnRow, *, owner: str) -> None:
        """Closes a turn whose worker or program is gone, or that waits for the user's word.

        Without a complete answer it ends as failed or stopped.
        """
        if turn.is_waiting:
            self.close(lease, turn, owner=owner, status="stopped" if turn.stop_requested else "unanswered")
            return
        ending, code = ending_of(self._messages_of(turn), stop_requested=turn.stop_requested)
        status = "failed" if ending == "finished" else ending
        self.close(lease, turn, owner=owner, status=status, code=code, partial_text=turn.partial_text)

    def _messages_of(self, turn: TurnRow) -> list[AnyMessage]:
        return [entry.message for entry in self._stores.archive.live_turns(turn.session_id, turn.number, turn.number)]

    def _is_same(self, session_id: str, context: SessionState, *, asks: bool) -> bool:
        """Whether the state has exactly the raw messages, compared in full because a checkpoint may be forged.

        `asks`: and goes on with the tools, once the user has given his word.
        """
        try:
            state = self._graph.get_state(config_of(session_id))
        except _UNREADABLE as error:
            _LOG.warning("checkpoint of session=%s can't be read (%s)", session_id, type(error).__name__)
            return False
        held = state.values.get("messages", [])
        if not isinstance(held, list) or not all(isinstance(message, BaseMessage) for message in held):
            return False
        expected = [_words(entry.message) for entry in context.raw]
        return [_words(message) for message in held] == expected and state.next == (("tool_node",) if asks else ())


def _with_returned(message: AnyMessage, returned: Mapping[str, Mapping[str, object]]) -> AnyMessage:
    if (value := returned.get(str(message.id))) is None:
        return message
    kwargs = {**message.additional_kwargs, RETURNED: value}
    return message.model_copy(update={"additional_kwargs": kwargs})


def _words(message: AnyMessage) -> tuple[object, ...]:
    """Returns a message's id and everything of it that a model is sent."""
    return message.id, message.type, message.content, message.tool_calls if isinstance(message, AIMessage) else None
