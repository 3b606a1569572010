"""Makes a session that goes on from a turn of another one."""

from __future__ import annotations

from graph.service.access import SessionAccess, new_session_id
from graph.store.fork import copy_session
from graph.value.error import BusyError, NotFoundError


def fork(access: SessionAccess, session_id: str, *, after_turn: int, family: str = "", client: str = "") -> str:
    """Makes a session that begins as this one did, in one transaction; this one stays as it is, also while it runs.

    The new session has the turns up to `after_turn` in their last attempts, the records over them, and the settings.
    Records that reach further give way to their sources or to raw turns. What the folds cost counts in the origin only.

    Args:
        access: The owner's service.
        session_id: The session to fork.
        after_turn: The last turn to take over, 0 for none.
        family: The chat of a program that the new session is a branch of, "" for none.
        client: The program that forks, "" for the page.

    Returns:
        The new session's id.

    Raises:
        NotFoundError: There is no such session or turn, or it belongs to another owner.
        BusyError: The last turn to take over is in progress.
    """
    new_id = new_session_id()
    database = access.stores.database
    # All that is read within takes the connection that writes: with another one each, forks would wait for one another.
    with database.writing(), database.write(session_id=session_id) as connection:
        # Nobody else writes to it meanwhile, so what is read here stays true.
        if not 0 <= after_turn <= access.own(session_id).turn_count:
            raise NotFoundError(str(after_turn))
        live = access.live_turn(session_id)
        if live is not None and live.number == after_turn:
            raise BusyError
        copy_session(connection, session_id, new_id, after_turn=after_turn, client=client, family=family)
    return new_id
