"""Makes graph state agree with the archive and the record table, which are the only truth; runs no turn."""

from __future__ import annotations

import logging
import uuid
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from graph.builder import ChatGraph
from graph.core.close_turn import ClosedStatus, closing_messages, ending_of
from graph.core.language import session_language
from graph.core.turn import is_complete
from graph.error import NotADatabaseError, StoreError
from graph.record import to_entry
from graph.store.database import Lease
from graph.store.session import SessionRow
from graph.store.stores import Context, Stores
from graph.store.turn import TurnRow
from graph.strategy.base import first_turn
from graph.strategy.registry import Strategies

_LOG = logging.getLogger(__name__)
_LAST_NODE: Final = "llm_node"
Finding = Literal["same", "differs", "missing", "damaged"]


def config_of(session_id: str) -> RunnableConfig:
    """Returns LangGraph's configuration of a session; nothing secret may ever stand in it."""
    return {"configurable": {"thread_id": session_id}}


class StateRecovery:
    """Settles sessions between turns, under their lease."""

    def __init__(self, graph: ChatGraph, stores: Stores, strategies: Strategies) -> None:
        self._graph = graph
        self._strategies = strategies
        self._stores = stores
        self._rebuilt: set[str] = set()

    def reconcile(self, lease: Lease, session: SessionRow) -> None:
        """Ends what a crash left open and rebuilds the state if it isn't what the tables say.

        Records that begin behind a hole in the coverage give way first: their turns are raw until they're folded again.

        A pending task is never resumed: its answer, if it was given, is in the archive already, so the rebuilt state
        has it; and one that failed would only fail again.

        Args:
            lease: The session's lease.
            session: The session with the settings of the turn to come.
        """
        session_id = lease.session_id
        last = self._stores.turns.last(session_id)
        context = self._context(session)
        if context.left_out:
            self._stores.records.invalidate_from(lease, context.left_out[0].from_position)
        finding = self._compare(session, context)
        is_damaged = finding == "damaged"
        if last is not None and last.status == "running":
            self._end_interrupted(lease, last, owner=session.owner)
            finding = self._compare(session, self._context(session))
        if finding != "same":
            self.rebuild(session)
        (self._rebuilt.add if is_damaged else self._rebuilt.discard)(session_id)

    def was_rebuilt(self, session_id: str) -> bool:
        """Whether the newest settling found the session's checkpoint damaged; one that is gone was deleted."""
        return session_id in self._rebuilt

    def forget(self, session_id: str) -> None:
        """Drops what is remembered of a session that is deleted."""
        self._rebuilt.discard(session_id)

    def close(
        self,
        lease: Lease,
        turn: TurnRow,
        *,
        owner: str,
        status: ClosedStatus,
        code: str = "",
        detail: str = "",
        partial_text: str = "",
    ) -> None:
        """Completes a turn that can't go on, in the archive, in its row and in graph state, in this order.

        A turn whose answer is archived whole is finished, whatever went wrong behind it.
        """
        said = self._messages_of(turn)
        if is_complete(said):
            ending, code = ending_of(said, stop_requested=False)
            self._stores.turns.finish(lease, turn.number, ending, error_code=code)
        else:
            closing = closing_messages(
                said,
                status=status,
                code=code,
                partial_text=partial_text,
                language=session_language(self._stores.archive.opening(lease.session_id)),
                message_id=f"closed-{uuid.uuid4().hex}",
            )
            self._stores.archive.append(lease, owner=owner, turn=turn.number, attempt=turn.attempt, messages=closing)
            self._stores.turns.finish(
                lease, turn.number, status, error_code=code, error_detail=detail, partial_text=partial_text
            )
        try:
            self.rebuild(self._stores.sessions.get(lease.session_id, owner))
        except StoreError as error:
            # The turn is closed where it counts; the next one finds that the state disagrees, and rebuilds it.
            _LOG.warning("state of session=%s not rebuilt: %s", lease.session_id, error.code)

    def rebuild(self, session: SessionRow) -> None:
        """Makes the graph state of a session from the tables alone, whatever the checkpoints held."""
        session_id = session.session_id
        active, raw, _ = self._context(session)
        try:
            self._stores.checkpointer.delete_thread(session_id)
        except NotADatabaseError:
            _LOG.warning("checkpoints are damaged; their file is made anew")
            self._stores.checkpointer.renew()
        if not raw and not active:
            return
        values: dict[str, Any] = {
            "messages": [entry.message for entry in raw],
            "session_id": session_id,
            "summary_history": [to_entry(record) for record in active],
            "turn_count": session.turn_count,
            "compression_rate": session.compression_rate,
            "is_casual": False,
            "tool_rounds": 0,
        }
        self._graph.update_state(config_of(session_id), values, as_node=_LAST_NODE)
        _LOG.info("state of session=%s rebuilt from the tables", session_id)

    def _context(self, session: SessionRow) -> Context:
        """Returns what the state of a session holds: the active records, and those raw messages that can be sent."""
        strategy = self._strategies.of(session.strategy)
        return self._stores.context(session.session_id, from_turn=first_turn(strategy, session.turn_count))

    def _end_interrupted(self, lease: Lease, turn: TurnRow, *, owner: str) -> None:
        """A turn whose worker is gone: its answer counts if it was archived whole, else the turn is closed."""
        ending, code = ending_of(self._messages_of(turn), stop_requested=turn.stop_requested)
        self.close(
            lease,
            turn,
            owner=owner,
            status="failed" if ending == "finished" else ending,
            code=code,
            partial_text=turn.partial_text,
        )

    def _messages_of(self, turn: TurnRow) -> list[AnyMessage]:
        return [entry.message for entry in self._stores.archive.live_turns(turn.session_id, turn.number, turn.number)]

    def _compare(self, session: SessionRow, context: Context) -> Finding:
        """Compares the state with the messages that no record covers, word for word: a checkpoint may be forged."""
        session_id = session.session_id
        expected = {str(entry.message.id): entry.message for entry in context.raw}
        try:
            state = self._graph.get_state(config_of(session_id))
        except NotADatabaseError:
            _LOG.warning("checkpoint of session=%s can't be read; it is rebuilt", session_id)
            return "damaged"
        held = state.values.get("messages", [])
        if not held and expected:
            return "missing"
        if not isinstance(held, list) or not all(isinstance(message, BaseMessage) for message in held):
            return "damaged"
        if any(not _says_the_same(message, expected.get(str(message.id))) for message in held):
            _LOG.warning("checkpoint of session=%s says what nobody said; it is rebuilt", session_id)
            return "damaged"
        is_same = [str(message.id) for message in held] == list(expected) and not state.next
        return "same" if is_same else "differs"


def _says_the_same(held: AnyMessage, archived: AnyMessage | None) -> bool:
    """Whether a message in state says what the archive says under its id; one that isn't live says nothing wrong."""
    if archived is None:
        return True
    words = [(m.type, m.content, m.tool_calls if isinstance(m, AIMessage) else None) for m in (held, archived)]
    return words[0] == words[1]
