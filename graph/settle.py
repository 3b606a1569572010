"""Makes graph state agree with the archive and the record table, which are the only truth; runs no turn."""

from __future__ import annotations

import logging
import uuid
from typing import Any, Final, Literal

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig

from graph.builder import ChatGraph
from graph.core.closing import ClosedStatus, closing_messages, ending_of
from graph.core.record import to_entry
from graph.core.token import measure
from graph.core.turn import is_complete
from graph.error import StoreError
from graph.store.hold import Hold
from graph.store.opening import Stores
from graph.store.turn import TurnRow

_LOG = logging.getLogger(__name__)
_LAST_NODE: Final = "llm_node"


def config_of(session_id: str) -> RunnableConfig:
    """Returns LangGraph's configuration of a session; nothing secret may ever stand in it."""
    return {"configurable": {"thread_id": session_id}}


class Settler:
    """Settles sessions between turns, under their lease."""

    def __init__(self, graph: ChatGraph, stores: Stores) -> None:
        self._graph = graph
        self._stores = stores

    def settle(self, hold: Hold, *, owner: str, language: Literal["ko", "en"]) -> None:
        """Ends what a crash left open and rebuilds the state if it isn't what the tables say.

        A pending task is never resumed: its answer, if it was given, is in the archive already, so the rebuilt state
        has it; and one that failed would only fail again.
        """
        last = self._stores.turns.last(hold.session_id)
        if last is not None and last.status == "running":
            self._end_interrupted(hold, last, owner=owner, language=language)
        if not self._agrees(hold.session_id):
            self.rebuild(hold.session_id, owner=owner)

    def close(
        self,
        hold: Hold,
        turn: TurnRow,
        *,
        owner: str,
        status: ClosedStatus,
        code: str = "",
        detail: str = "",
        partial_text: str = "",
        language: Literal["ko", "en"] = "ko",
    ) -> None:
        """Completes a turn that can't go on, in the archive, in its row and in graph state, in this order.

        A turn whose answer is archived whole is finished, whatever went wrong behind it.
        """
        said = self._messages_of(turn)
        if is_complete(said):
            ending, code = ending_of(said, stop_requested=False)
            self._stores.turns.finish(hold, turn.number, ending, error_code=code)
        else:
            closing = closing_messages(
                said,
                status=status,
                code=code,
                partial_text=partial_text,
                language=language,
                message_id=f"closed-{uuid.uuid4().hex}",
            )
            self._stores.archive.append(
                hold, owner=owner, turn=turn.number, attempt=turn.attempt, messages=closing, measure=measure
            )
            self._stores.turns.finish(
                hold, turn.number, status, error_code=code, error_detail=detail, partial_text=partial_text
            )
        try:
            self.rebuild(hold.session_id, owner=owner)
        except StoreError as error:
            # The turn is closed where it counts; the next one finds that the state disagrees, and rebuilds it.
            _LOG.warning("state of session=%s not rebuilt: %s", hold.session_id, error.code)

    def rebuild(self, session_id: str, *, owner: str) -> None:
        """Makes the graph state of a session from the tables alone, whatever the checkpoints held.

        Raises:
            NotFoundError: There is no such session.
        """
        session = self._stores.sessions.get(session_id, owner)
        in_force = self._stores.records.in_force(session_id)
        covered_to = self._stores.records.covered_to(session_id)
        raw = self._stores.archive.live(session_id, from_position=covered_to + 1)
        self._stores.checkpointer.delete_thread(session_id)
        if not raw and not in_force:
            return
        values: dict[str, Any] = {
            "messages": [entry.message for entry in raw],
            "session_id": session_id,
            "summary_history": [to_entry(record) for record in in_force],
            "turn_count": session.turn_count,
            "compression_rate": session.compression_rate,
            "is_casual": False,
            "tool_rounds": 0,
        }
        self._graph.update_state(config_of(session_id), values, as_node=_LAST_NODE)
        _LOG.info("state of session=%s rebuilt from the tables", session_id)

    def state_messages(self, session_id: str) -> list[AnyMessage]:
        """Returns the working set as the state holds it."""
        return list(self._graph.get_state(config_of(session_id)).values.get("messages", []))

    def _end_interrupted(self, hold: Hold, turn: TurnRow, *, owner: str, language: Literal["ko", "en"]) -> None:
        """A turn whose worker is gone: its answer counts if it was archived whole, else the turn is closed."""
        ending, code = ending_of(self._messages_of(turn), stop_requested=turn.stop_requested)
        self.close(
            hold,
            turn,
            owner=owner,
            status="failed" if ending == "finished" else ending,
            code=code,
            partial_text=turn.partial_text,
            language=language,
        )

    def _messages_of(self, turn: TurnRow) -> list[AnyMessage]:
        return [entry.message for entry in self._stores.archive.live_turns(turn.session_id, turn.number, turn.number)]

    def _agrees(self, session_id: str) -> bool:
        """Whether state holds just the messages that no record covers, and no task is pending."""
        covered_to = self._stores.records.covered_to(session_id)
        expected = self._stores.archive.live_ids(session_id, after_position=covered_to)
        try:
            snapshot = self._graph.get_state(config_of(session_id))
        except StoreError:
            _LOG.warning("checkpoint of session=%s can't be read; it is rebuilt", session_id)
            return False
        held = [str(message.id) for message in snapshot.values.get("messages", [])]
        return held == list(expected) and not snapshot.next
