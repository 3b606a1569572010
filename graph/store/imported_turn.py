"""Inserts turns that were answered elsewhere, in the caller's transaction."""

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
    """Appends complete turns to a session and returns the number of the last turn.

    Args:
        connection: In a write transaction.
        turns: The messages of each turn, the user's first; their ids must be new to the session.
        session_id: An existing session without a running turn.
        owner: The session's owner.
        turn_count: The session's number of turns.
        client: The program that sent the turns.
        model: A name for the model column; no model of ours was called.
        now: Time of storing, in UTC.
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
