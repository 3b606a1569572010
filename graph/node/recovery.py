"""Makes graph state from the archive and the record table, which are the only truth."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from graph.core.turn import RETURNED, Closing, closing_messages, ending_of, is_complete, status_of
from graph.node.state import ChatState, TurnContext
from graph.recognise.client_chain import EndedFingerprint
from graph.store.database import Lease
from graph.store.session import SessionRow
from graph.store.state import SessionState
from graph.store.stores import ChatStores
from graph.store.turn import TurnRow
from graph.value.error import RejectedError, StoreError
from graph.value.record import to_entry

_LOG = logging.getLogger(__name__)
# What LangGraph raises for a checkpoint that it can read but not interpret.
_UNREADABLE: Final = (NotImplementedError, LookupError, TypeError, ValueError, AttributeError)


def config_of(session_id: str) -> RunnableConfig:
    """Returns LangGraph's configuration of a session; checkpoints keep it, so it must contain nothing secret."""
    return {"configurable": {"thread_id": session_id}}


class StateRecovery:
    """Closes turns that are left open and makes graph state from the tables, under the session's lease."""

    def __init__(self, stores: ChatStores) -> None:
        self._stores = stores

    def reconcile(
        self, lease: Lease, session: SessionRow, *, keeps_waiting: bool = False, last: TurnRow | None = None
    ) -> None:
        """Closes a turn that is left open.

        A pending task is never resumed: if its answer was given, it is in the archive; if it failed, it would fail
        again. `keeps_waiting`: a turn that waits for a program or for the user's word stays open. `last` is the
        session's last turn, if it was read under the lease.
        """
        last = last or self._stores.turns.last(lease.session_id)
        if last is not None and last.is_open and not (keeps_waiting and last.is_waiting):
            self._end_interrupted(lease, last, owner=session.owner)

    def close_gap(self, lease: Lease, state: SessionState) -> SessionState:
        """Invalidates the records behind a gap in the coverage; returns the state without them."""
        if not state.left_out:
            return state
        self._stores.records.invalidate_from(lease, state.left_out[0].from_position)
        return self._stores.state(lease.session_id, whole_turns=state.whole_turns)

    @staticmethod
    def state(
        turn: TurnContext, saver: BaseCheckpointSaver[Any], returned: Mapping[str, Mapping[str, object]]
    ) -> ChatState:
        """Returns the state in which an attempt begins, with the messages that it has already.

        Only what providers want back with their calls is taken from the session's newest checkpoint: the tables have
        none of it. `returned` is likewise that of copies of earlier calls.
        """
        returned = {**_returned(saver, turn.lease.session_id), **returned}
        return {
            "messages": [_with_returned(entry.message, returned) for entry in turn.state.raw],
            "session_id": turn.lease.session_id,
            "summary_history": [to_entry(record) for record in turn.state.active],
            "turn_count": turn.row.number,
            "compression_rate": turn.state.row.compression_rate,
            "is_casual": turn.row.is_casual,
            "tool_rounds": 0,
        }

    def returned(self, session_id: str) -> Mapping[str, Mapping[str, object]]:
        """Returns what providers want back with the session's calls, by the answer's id."""
        with self._stores.checkpoints.saver() as saver:
            return _returned(saver, session_id)

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
        """Closes a turn that can't go on: in the archive, then in its row; its checkpoints are deleted.

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
        if code != RejectedError.code:
            return
        try:
            # What its run would give back to a provider may be what the provider refused.
            with self._stores.checkpoints.saver() as saver:
                saver.delete_thread(lease.session_id)
        except StoreError as error:
            _LOG.warning("checkpoints of session=%s not deleted: %s", lease.session_id, error.code)

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


def _returned(saver: BaseCheckpointSaver[Any], session_id: str) -> dict[str, Mapping[str, object]]:
    """Returns what is given back with the answers in the session's newest checkpoint, by their ids."""
    try:
        found = saver.get_tuple(config_of(session_id))
        held = found.checkpoint["channel_values"].get("messages", []) if found else []
        given = {str(message.id): message.additional_kwargs.get(RETURNED) for message in held}
    except _UNREADABLE as error:
        _LOG.warning("checkpoint of session=%s can't be read (%s)", session_id, type(error).__name__)
        return {}
    return {message_id: value for message_id, value in given.items() if isinstance(value, Mapping)}


def _with_returned(message: AnyMessage, returned: Mapping[str, Mapping[str, object]]) -> AnyMessage:
    if (value := returned.get(str(message.id))) is None:
        return message
    kwargs = {**message.additional_kwargs, RETURNED: value}
    return message.model_copy(update={"additional_kwargs": kwargs})
