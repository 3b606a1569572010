"""Decides which session a program's request goes on with, by what the server knows of its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graph.client import ClientMessage, Matched
from graph.core.client_chain import OpenAnchor

DecisionKind = Literal["aside", "retry", "append", "resume", "regenerate", "fork", "new"]


@dataclass(frozen=True)
class Decision:
    """What a request is.

    Attributes:
        kind: "aside" is answered without any session; "retry" is given the response that its first try began; "append"
            is the next turn of a session, "resume" goes on with the turn that waits for its program, "regenerate" is
            a new attempt of the last turn (which finished, failed or was stopped); "fork" and "new" begin a session.
        matched: How it was found.
        session_id: The session; for "fork" the one that it is forked from; "" for "aside" and "new".
        after_turn: Of "fork": the last turn that the new session has from the other one; 0 for none.
        turn: Of "retry": the turn of the response.
        attempt: Of "retry": the attempt of the response.
        imported: Of "append", "fork" and "new": what the program and another model said, to be archived as imported
            turns before the question.
        lead: What stands in front of the history that is known: the program's own context.
        stop_first: Whether the session's running turn is to be stopped first, as the program no longer listens to it.
        family: Of "fork" and "new": the new session's family, "" for none.
        anchor: What the turn is begun with; None for "aside" and "retry".
    """

    kind: DecisionKind
    matched: Matched
    session_id: str = ""
    after_turn: int = 0
    turn: int = 0
    attempt: int = 0
    imported: tuple[ClientMessage, ...] = ()
    lead: tuple[ClientMessage, ...] = ()
    stop_first: bool = False
    family: str = ""
    anchor: OpenAnchor | None = None
