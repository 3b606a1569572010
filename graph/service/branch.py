"""Asks an earlier question of a session again, as it was or in other words, in a branch of that session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from graph.core.image import urls_of
from graph.core.text import has_visible, plain_text, title_of
from graph.core.turn import IMAGE_MARK, words_of
from graph.image_url import is_image_url
from graph.service.access import SessionAccess
from graph.service.attempt import take_back_notes
from graph.service.deletion import erase
from graph.service.forks import fork
from graph.view import BegunTurn, TurnOptions

# As `Turns.send`.
Send = Callable[..., int]


def ask_in_branch(
    access: SessionAccess, send: Send, session_id: str, turn: int, options: TurnOptions, *, text: str | None = None
) -> BegunTurn:
    """Makes a session with the turns before this one, and asks the turn's question there, with its images.

    Args:
        access: The owner's service.
        send: Sends a message to a session.
        session_id: The session, which stays as it is; a turn of it may be running.
        turn: The turn.
        options: Those of the new turn.
        text: What is asked in place of the question's text, perhaps with the lines that stand for its images where it
            is shown; None for that text.

    Raises:
        NotFoundError: The owner has no such session, or it has no such turn.
        InputError: The text or an option is invalid; no session is made.
        BusyError: A limit of the server is reached; no session is left.
    """
    with access.stores.database.reading():
        session = access.own(session_id)
        row = access.stores.turns.get(session_id, turn)
        asked = access.stores.archive.get(session_id, row.user_message_id).message
        kept = access.stores.images.get(session_id, urls_of(asked))
    text = words_of(asked) if text is None else _without_marks(text, len(urls_of(asked)))
    # An image that is no longer there leaves its reference behind, which no provider takes.
    images = [url for url in (kept.get(url, url) for url in urls_of(asked)) if is_image_url(url)]
    with ExitStack() as undo:
        branch = fork(access, session_id, after_turn=turn - 1, client=options.client_name)
        undo.callback(erase, access, branch)
        if turn == 1 and has_visible(text):
            _title_anew(access, branch, text)
        number = send(branch, text, options=options, images=images)
        undo.pop_all()
    take_back_notes(access, session, turn, roles={"human", "ai"})
    return BegunTurn(branch, number)


def _without_marks(text: str, count: int) -> str:
    """Returns the text without its last so many lines that only stand for an image."""
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines) if line.strip() == IMAGE_MARK]
    left_out = set(marks[-count:] if count else ())
    return "\n".join(line for number, line in enumerate(lines) if number not in left_out)


def _title_anew(access: SessionAccess, session_id: str, text: str) -> None:
    """Titles a session after its new first question, unless the user gave it its title."""
    if access.own(session_id).title_source != "user":
        access.stores.sessions.rename(session_id, access.owner, title_of(plain_text(text)), source="")
