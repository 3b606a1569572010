"""What a scripted service does with turns that are branched, and with sessions pinned, deleted and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graph.value.error import InputError
from graph.value.view import StartedTurn, TurnOptions, TurnView
from tests.fake.scripted_session import ScriptedSession

if TYPE_CHECKING:
    from tests.fake.scripted_service import ScriptedService


class ScriptedBranches:
    """The turns and the sessions of a scripted service, whose summaries have methods of the same names.

    Attributes:
        gone: The sessions that were deleted and may come back.
    """

    def __init__(self, service: ScriptedService) -> None:
        self._service = service
        self.gone: dict[str, ScriptedSession] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the service has
        return getattr(self._service, name)

    def edit(self, session_id: str, turn: int, text: str, *, options: TurnOptions) -> str:
        return self.branch(session_id, turn, text, options).session_id

    def branch(self, session_id: str, turn: int, text: str, options: TurnOptions) -> StartedTurn:
        identifier = self.new_id()
        origin = self.stored[session_id]
        retained = [replace(retained, is_last=False) for retained in origin.turns[: turn - 1]]
        made = replace(origin, turns=retained, records=[], forked_from=session_id, forked_after=turn - 1)
        self.stored[identifier] = made
        try:
            return StartedTurn(identifier, self.send(identifier, text, message_id="branch", options=options))
        except Exception:
            del self.stored[identifier]
            raise

    def fork(self, session_id: str, *, after_turn: int) -> str:
        identifier: str = self.new_id()
        origin = self.stored[session_id]
        self.stored[identifier] = replace(
            origin, turns=origin.turns[:after_turn], forked_from=session_id, forked_after=after_turn
        )
        return identifier

    def siblings(self, session_id: str) -> dict[int, tuple[str, ...]]:
        """Its branches at each turn, and where it is one, its origin."""
        at: dict[int, tuple[str, ...]] = {}
        for identifier, session in self.stored.items():
            if session.forked_from and session_id in {identifier, session.forked_from}:
                turn = session.forked_after + 1
                at[turn] = (*at.get(turn, (session.forked_from,)), identifier)
        return at

    def version(self, session_id: str, turn: int, attempt: int) -> TurnView:
        session: ScriptedSession = self.session_of(session_id)
        now = session.turns[turn - 1]
        attempts = {aside.attempt: aside for aside in (*session.aside, now) if aside.number == turn}
        return replace(attempts[attempt], attempts=now.attempts, is_last=now.is_last)

    def choose_attempt(self, session_id: str, turn: int, attempt: int) -> None:
        self.act("choose_attempt")
        session, chosen = self.session_of(session_id), self.version(session_id, turn, attempt)
        session.aside.append(session.turns[turn - 1])
        session.turns[turn - 1] = chosen

    def edit_answer(self, session_id: str, turn: int, text: str) -> str:
        if not text.strip():
            raise InputError("empty")
        self.act("edit_answer")
        session = self.session_of(session_id)
        own = session.turns[turn - 1]
        session.aside.append(own)
        attempts, attempt = (*(own.attempts or (own.attempt,)), own.attempt + 1), own.attempt + 1
        session.turns[turn - 1] = replace(own, answer_text=text, attempt=attempt, attempts=attempts, is_edited=True)
        return session_id

    def pin(self, session_id: str, is_pinned: bool) -> None:  # noqa: FBT001  # as the service has it
        self.stored[session_id].is_pinned = is_pinned

    def delete_many(self, session_ids: Sequence[str]) -> tuple[str, ...]:
        self.act("delete_many")
        self.gone.update((identifier, self.stored.pop(identifier)) for identifier in session_ids)
        return tuple(session_ids)

    def just_deleted(self) -> dict[str, str]:
        return {identifier: session.title for identifier, session in self.gone.items()}

    def undo_delete(self, session_ids: Sequence[str]) -> tuple[str, ...]:
        back = {identifier: self.gone.pop(identifier) for identifier in session_ids if identifier in self.gone}
        self.stored.update(back)
        return tuple(back)
