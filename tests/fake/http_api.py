"""A program's requests, decided over real stores and answered without a model."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from sqlalchemy import update

from graph.recognise.client_chain import ChainKey
from graph.recognise.decide import Decision
from graph.recognise.match import exchanges_of
from graph.service import ChatService
from graph.service.access import SessionAccess
from graph.service.chat_service import Engine, Programs
from graph.service.completions import Recognition
from graph.store.database import Lease
from graph.store.schema import turn_table
from graph.store.turn import PartialText, TurnEnd
from graph.value.client import ClientMessage, ClientOptions, ClientRequest
from graph.value.event import ClientCall

PROGRAM = ClientOptions("editor")
_NO_KEY = ChainKey(bytes(32))


def user(text: str, *images: str) -> ClientMessage:
    return ClientMessage("user", text, images)


def assistant(text: str) -> ClientMessage:
    return ClientMessage("assistant", text)


def dialogue(*texts: str) -> tuple[ClientMessage, ...]:
    """Messages of a user and an assistant by turns, the user first."""
    return tuple(assistant(text) if index % 2 else user(text) for index, text in enumerate(texts))


def engine_of(service: ChatService) -> Engine:
    return service._engine  # noqa: SLF001 - recognition is below the service's own interface


def with_access(engine: Engine, **changes: Any) -> Engine:  # noqa: ANN401  # fields of the access
    return replace(engine, access=replace(engine.access, **changes))


@dataclass(frozen=True)
class Answered:
    """A request's decision, and the turn that came of it."""

    decision: Decision
    session_id: str
    turn: int


@dataclass
class HttpApi:
    """What a program talks to; `scope` names an end user whom no other test has."""

    engine: Engine
    scope: str = field(default_factory=lambda: uuid.uuid4().hex)
    options: ClientOptions = PROGRAM

    @property
    def access(self) -> SessionAccess:
        return self.engine.access

    def request(self, messages: Sequence[ClientMessage], **fields: Any) -> ClientRequest:  # noqa: ANN401  # fields of the request
        return ClientRequest(tuple(messages), self.options, **{"user": self.scope, **fields})

    def decide(self, messages: Sequence[ClientMessage], **fields: Any) -> Decision:  # noqa: ANN401  # fields of the request
        programs, settings = self.engine.stores.program, self.engine.choices.settings
        named = Programs(self.access.owner, tokens=programs.tokens, named=settings.api_tokens)
        recognition = Recognition(self.access, programs, self.engine.choices.models, named.personal_names)
        return recognition.decide(self.request(messages, **fields))

    def ask(
        self,
        messages: Sequence[ClientMessage],
        answer: str = "",
        *,
        status: TurnEnd | None = "finished",
        calls: Sequence[ClientCall] = (),
        **fields: Any,  # noqa: ANN401  # fields of the request
    ) -> Answered:
        """Sends a request and answers it; with status None its turn goes on running, having said `answer` so far."""
        decision = self.decide(messages, **fields)
        if decision.kind in {"aside", "retry", "resume"}:
            return Answered(decision, decision.session_id, decision.turn)
        session_id = self._session(decision)
        lease = self.access.stores.leases.acquire(session_id)
        self._import(lease, decision.imported)
        if decision.kind == "regenerate":
            last = self.access.stores.turns.last(session_id)
            assert last is not None
            number = self.access.stores.turns.begin_attempt(
                lease,
                last.number,
                model=fields.get("model", ""),
                client=self.options.name,
                fingerprint=decision.fingerprint,
            ).number
        else:
            number = self._begin(lease, messages[-1].text, decision, model=fields.get("model", ""))
        if calls:
            tools = [tool_call(name=call.name, args=json.loads(call.arguments), id=call.id) for call in calls]
            self._append(lease, number, [AIMessage(answer, tool_calls=tools, id=f"calls-{uuid.uuid4().hex}")])
        self._answer(lease, number, answer, status, decision)
        if status is not None:
            self.access.stores.leases.release(lease)
        return Answered(decision, session_id, number)

    def chat(self, turns: int, **fields: Any) -> tuple[list[ClientMessage], str]:  # noqa: ANN401  # fields of the request
        """Holds a chat that resends everything; returns all that was said, and its session."""
        history: list[ClientMessage] = []
        session_id = ""
        for _ in range(turns):
            number = len(history) // 2 + 1
            history.append(user(f"question {number} of {self.scope}"))
            session_id = self.ask(history, f"answer {number} of {self.scope}", **fields).session_id
            history.append(assistant(f"answer {number} of {self.scope}"))
        return history, session_id

    def resume(self, messages: Sequence[ClientMessage], answer: str) -> str:
        """Sends the results of tools, has the turn answered, and returns its session."""
        decision = self.decide(messages)
        assert decision.kind == "resume"
        stores, session_id = self.access.stores, decision.session_id
        lease, last = stores.leases.acquire(session_id), stores.turns.last(session_id)
        assert last is not None
        results = [
            ToolMessage(message.text, tool_call_id=message.call_id, id=f"imported-{uuid.uuid4().hex}")
            for message in messages
            if message.role == "tool"
        ]
        stores.turns.resume(
            lease,
            last.number,
            owner=self.access.owner,
            messages=results,
            model="",
            client=self.options.name,
            fingerprint=decision.fingerprint,
        )
        self._answer(lease, last.number, answer, "finished", decision)
        stores.leases.release(lease)
        return session_id

    def sends_own(self, session_id: str) -> None:
        """Stores that a program sent messages that are no turns, as a turn does."""
        lease = self.access.stores.leases.acquire(session_id)
        self.access.stores.blocks.keep(lease, "before", uuid.uuid4().hex, owner=self.access.owner)
        self.access.stores.leases.release(lease)

    def page_says(self, session_id: str, text: str, answer: str) -> int:
        """A turn that the page asks for in between."""
        stores = self.access.stores
        lease = stores.leases.acquire(session_id)
        number = self._begin(lease, text, Decision("append", "header"), client="")
        self._answer(lease, number, answer, "finished", Decision("append", "header"))
        stores.leases.release(lease)
        return number

    def page_regenerates(self, session_id: str, answer: str) -> None:
        """The page has the last turn answered in another attempt."""
        stores = self.access.stores
        lease, last = stores.leases.acquire(session_id), stores.turns.last(session_id)
        assert last is not None
        stores.turns.begin_attempt(lease, last.number, model="")
        self._answer(lease, last.number, answer, "finished", Decision("append", "header"))
        stores.leases.release(lease)

    def texts(self, session_id: str) -> list[str]:
        """What a session has archived, in order, in the last attempts."""
        return [str(entry.message.content) for entry in self.access.stores.archive.live(session_id)]

    def _session(self, decision: Decision) -> str:
        if decision.kind not in {"new", "fork"}:
            return decision.session_id
        session_id = uuid.uuid4().hex
        stores, owner = self.access.stores, self.access.owner
        stores.sessions.create(session_id, owner, compression_rate=0.3, strategy="")
        stores.sessions.update(session_id, owner, family=decision.group, forked_from=decision.session_id)
        if decision.after_turn:
            self._copy(decision.session_id, session_id, decision.after_turn)
        return session_id

    def _copy(self, origin: str, session_id: str, after_turn: int) -> None:
        stores = self.access.stores
        lease = stores.leases.acquire(session_id)
        for row in stores.turns.between(origin, 1, after_turn):
            question, *answers = stores.archive.live_turns(origin, row.number, row.number)
            stores.turns.begin(
                lease,
                owner=self.access.owner,
                message=HumanMessage(question.message.content, id=question.message.id),
                model=row.model,
                is_casual=False,
                client=row.client,
            )
            self._append(lease, row.number, [entry.message for entry in answers])
            stores.turns.finish(lease, row.number, row.status if row.status != "running" else "failed")
            self._mark(session_id, row.number, is_imported=row.is_imported)
        stores.leases.release(lease)

    def _import(self, lease: Lease, messages: Sequence[ClientMessage]) -> None:
        request = ClientRequest((*messages, user("")), self.options)
        links = _NO_KEY.read(request, owner="").links[:-1]
        for exchange in exchanges_of(links):
            number = self._begin(lease, exchange.question, Decision("append", "new"))
            self._answer(lease, number, exchange.answer, "finished", Decision("append", "new"))
            self._mark(lease.session_id, number, is_imported=True)

    def _begin(self, lease: Lease, text: str, decision: Decision, *, model: str = "", client: str | None = None) -> int:
        message = HumanMessage(text, id=f"user-{uuid.uuid4().hex}")
        turn, _ = self.access.stores.turns.begin(
            lease,
            owner=self.access.owner,
            message=message,
            model=model,
            is_casual=False,
            client=self.options.name if client is None else client,
            fingerprint=decision.fingerprint,
        )
        return turn.number

    def _answer(self, lease: Lease, number: int, answer: str, status: TurnEnd | None, decision: Decision) -> None:
        stores = self.access.stores
        if status is None:
            stores.turns.save_partials([PartialText(lease, number, answer)])
            return
        if answer and status != "requires_action":
            self._append(lease, number, [AIMessage(answer, id=f"answer-{uuid.uuid4().hex}")])
        ended = decision.fingerprint.ended(answer) if decision.fingerprint else None
        stores.turns.finish(lease, number, status, partial_text=answer, fingerprint=ended)

    def _append(self, lease: Lease, number: int, messages: Sequence[AnyMessage]) -> None:
        attempt = self.access.stores.turns.get(lease.session_id, number).attempt
        archive = self.access.stores.archive
        archive.append(lease, owner=self.access.owner, turn=number, attempt=attempt, messages=messages)

    def _mark(self, session_id: str, number: int, *, is_imported: bool) -> None:
        row = turn_table.c
        change = update(turn_table).where(row.session_id == session_id, row.number == number)
        with self.access.stores.database.write() as connection:
            connection.execute(change.values(is_imported=is_imported))
