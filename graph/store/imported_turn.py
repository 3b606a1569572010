"""Stores turns that were answered elsewhere, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from langchain_core.messages import AnyMessage
from sqlalchemy import Connection, insert

from graph.core.text import sum_tokens
from graph.core.turn import ending_of
from graph.store.archive import insert_message
from graph.store.column import database_time
from graph.store.schema import turn_table
from graph.store.session import change_session
from graph.store.turn_row import new_attempt, sum_history_tokens


def insert_turns(
    connection: Connection,
    turns: Iterable[Sequence[AnyMessage]],
    *,
    session_id: str,
    owner: str,
    turn_count: int,
    client: str,
    model: str,
    now: datetime,
) -> int:
    """Adds complete turns behind the session's last one, and returns the number of the last turn.

    Args:
        connection: In a write transaction.
        turns: The messages of each, the user's first; with ids that the session doesn't have.
        session_id: An existing session, none of whose turns runs.
        owner: The session's owner.
        turn_count: How many turns it has.
        client: The program that brought them.
        model: What stands in their rows as the model; none of ours was asked.
        now: When they are stored, in UTC.
    """
    said = list(turns)
    history_tokens = sum_history_tokens(connection, session_id, turn_count)
    for number, messages in enumerate(said, start=turn_count + 1):
        status, code = ending_of(messages, stop_requested=False)
        row = {
            "session_id": session_id,
            "number": number,
            "owner": owner,
            "user_message_id": messages[0].id,
            "is_casual": False,
            "history_tokens": history_tokens,
            "is_imported": True,
            **new_attempt(1, model, client, now),
            "status": status,
            "error_code": code,
            "finished_at": database_time(),
        }
        connection.execute(insert(turn_table).values(row))
        place = {"session_id": session_id, "owner": owner, "turn": number, "attempt": 1, "created_at": now}
        for message in messages:
            insert_message(connection, message, place)
        history_tokens += sum_tokens(messages)
    last = turn_count + len(said)
    change_session(connection, session_id, turn_count=last, updated_at=database_time())
    return last
