"""The part of a scripted service that steers summaries, over plain lists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from graph.fold.fact_check import count_facts
from graph.service.folds import Folds
from graph.value.error import InputError
from graph.value.record import Record
from graph.value.view import FactCount, LedgerView, MissingFact, PinnedMessage, PinView, TurnView
from tests.fake.scripted_session import ScriptedSession

if TYPE_CHECKING:
    from tests.fake.scripted_service import ScriptedService


PIN_ROOM: Final = 2


class ScriptedSteering:
    """Changes the records of scripted sessions as the service does: a new version takes the place of the active one.

    All else of `folds` is the scripted service's own.
    """

    def __init__(self, service: ScriptedService) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any method of the service
        return getattr(self._service, name)

    def edit(self, session_id: str, record_id: str, text: str) -> Record:
        session = self._steer("edit", session_id, record_id)
        if not text.strip():
            raise InputError("empty")
        changes = {"summary": text, "summary_chars": len(text), "edited": True}
        return session.add_version(record_id, **changes)

    def add_fact(self, session_id: str, record_id: str, fact: str) -> Record:
        session = self._steer("add_fact", session_id, record_id)
        (record,) = (record for record in session.records if record.id == record_id)
        missing = tuple(each for each in record.missing_facts if each != fact)
        changes = {"summary": f"{record.summary}\n{fact}", "kept_facts": (*record.kept_facts, fact), "edited": True}
        return session.add_version(record_id, **changes, missing_facts=missing)

    def lacking(self, record: Record) -> tuple[str, ...]:
        return Folds.lacking(record)

    def lacks_firm(self, record: Record) -> bool:
        return Folds.lacks_firm(record)

    def missing_facts(self, session_id: str, record_id: str) -> tuple[MissingFact, ...]:
        """Each in a sentence of the record's first turn."""
        records = self._service.session_of(session_id).records
        (record,) = (record for record in records if record.id == record_id)
        turn = record.turns[0]
        return tuple(
            MissingFact(fact, f"<말> {fact}입니다.", turn=turn, role="human", message_id=f"user-{turn}")
            for fact in record.missing_facts
        )

    def remake(self, session_id: str, record_id: str, *, rate: float, instruction: str = "") -> Record:
        session = self._steer("remake", session_id, record_id)
        text = f"비율 {rate:g}, {instruction or '바라는 것 없음'}"
        changes = {"summary": text, "summary_chars": len(text), "compression_rate": rate, "wish": instruction}
        return session.add_version(record_id, **changes, kind="interval", edited=False)

    def fold_again(self, session_id: str, record_id: str) -> Record:
        return self.remake(session_id, record_id, rate=self._service.session_of(session_id).compression_rate)

    def undo(self, session_id: str, record_id: str) -> Record | None:
        session = self._steer("undo", session_id, record_id)
        if next(record for record in session.records if record.id == record_id).kind == "merge":
            session.add_version(record_id, kind="interval", summary="합치기 전의 요약")
            return None
        return session.add_version(record_id, kind="verbatim", summary="말한 그대로")

    def versions(self, session_id: str, record_id: str) -> tuple[Record, ...]:
        return tuple(self._service.session_of(session_id).versions_of(record_id))

    def use_version(self, session_id: str, record_id: str) -> Record:
        return self._steer("use_version", session_id, record_id).use_version(record_id)

    def pin(self, session_id: str, message_id: str) -> PinView:
        self._service.act(f"pin {message_id}")
        pinned = self._service.session_of(session_id).pinned
        if len(pinned) == PIN_ROOM:
            raise InputError("pin_budget", "120 > 40")
        pinned.append(message_id)
        return self.pins(session_id)

    def ledger(self, session_id: str) -> LedgerView:
        return LedgerView(tuple(self._service.session_of(session_id).ledger), budget_tokens=600, used_tokens=40)

    def strike(self, session_id: str, line_id: str, *, is_struck: bool = True) -> LedgerView:
        self._service.act(f"strike {line_id}")
        lines = self._service.session_of(session_id).ledger
        lines[:] = [replace(x, state="struck" if is_struck else "sent") if x.id == line_id else x for x in lines]
        return self.ledger(session_id)

    def count_facts(self, record: Record) -> tuple[FactCount, ...]:
        return Folds.count_facts(record)

    def left_out_at(self, record: Record, rate: float) -> tuple[str, ...]:
        return Folds.left_out_at(record, rate)

    def fact_counts(self, session_id: str) -> tuple[FactCount, ...]:
        return count_facts(self._service.session_of(session_id).records)

    def unpin(self, session_id: str, message_id: str) -> PinView:
        self._service.act(f"unpin {message_id}")
        self._service.session_of(session_id).pinned.remove(message_id)
        return self.pins(session_id)

    def pins(self, session_id: str) -> PinView:
        session = self._service.session_of(session_id)
        turns = {message: turn.number for turn in session.turns for message in _messages_of(turn)}
        sent = session.pinned[-PIN_ROOM:]
        messages = tuple(
            PinnedMessage(message, turns[message], 120, f"{turns[message]}턴의 말", is_sent=message in sent)
            for message in session.pinned
        )
        return PinView(messages, budget_tokens=120 * PIN_ROOM + 40, used_tokens=120 * len(messages))

    def _steer(self, name: str, session_id: str, record_id: str) -> ScriptedSession:
        self._service.act(f"{name} {record_id}")
        return self._service.session_of(session_id)


def _messages_of(turn: TurnView) -> tuple[str, str]:
    return turn.user_message_id, turn.answer_message_id
