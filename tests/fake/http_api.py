"""A program's requests, decided over real stores and answered without a model."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.tool import tool_call

from graph.core.attached import data_urls, question_of, references_in
from graph.core.pin import Said
from graph.core.turn import headed
from graph.recognise.client_chain import newest_results
from graph.recognise.client_turns import (
    continued,
    is_imported,
    join_questions,
    new_prefix,
    turns_of,
    unasked,
    waiting_calls,
)
from graph.recognise.decide import Decision
from graph.service import ChatService
from graph.service.access import SessionAccess
from graph.service.chat_service import Engine
from graph.service.completions import Recognition
from graph.service.program_input import import_history
from graph.service.turn_stream import NO_END
from graph.store.database import Lease
from graph.store.fork import copy_session
from graph.store.turn import PartialText, TurnEnd
from graph.value.client import ClientMessage, ClientOptions, ClientRequest
from graph.value.event import ClientCall
from prompt.system.framing import CLIENT_HEADING

PROGRAM = ClientOptions("editor")


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
    """A request's decision, and the turn that came of it; the lease of one that goes on running."""

    decision: Decision
    session_id: str
    turn: int
    calls: tuple[ClientCall, ...] = ()
    lease: Lease | None = None


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
        return self.decide_on(self.request(messages, **fields))

    def decide_on(self, request: ClientRequest) -> Decision:
        programs, models = self.engine.stores.program, self.engine.choices.models
        return Recognition(self.access, programs, models).decide(request)

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
        request = self.request(messages, **fields)
        decision = self.decide_on(request)
        if decision.kind in {"aside", "retry", "resume"}:
            return Answered(decision, decision.session_id, decision.turn)
        return self.carry_out(request, decision, answer, status=status, calls=calls)

    def carry_out(
        self,
        request: ClientRequest,
        decision: Decision,
        answer: str = "",
        *,
        status: TurnEnd | None = "finished",
        calls: Sequence[ClientCall] = (),
    ) -> Answered:
        """Stores what the service would for this decision, but for "aside" and "retry", which store nothing."""
        session_id = self._session(decision)
        lease = self.access.stores.leases.acquire(session_id)
        number = self._started(lease, request, decision)
        given: tuple[ClientCall, ...] = ()
        if calls:
            tools = [tool_call(name=call.name, args=json.loads(call.arguments), id=call.id) for call in calls]
            message = AIMessage(answer, tool_calls=tools, id=f"calls-{uuid.uuid4().hex}")
            self._append(lease, number, [message])
            given = waiting_calls([message])
        self._answer(lease, number, answer, status, decision, first_call=given[0].id if given else "")
        if status is None:
            return Answered(decision, session_id, number, given, lease)
        self.access.stores.leases.release(lease)
        return Answered(decision, session_id, number, given)

    def end(self, running: Answered, answer: str, status: TurnEnd = "finished") -> None:
        """Ends a turn that was left running."""
        assert running.lease is not None
        self._answer(running.lease, running.turn, answer, status, running.decision)
        self.access.stores.leases.release(running.lease)

    def seen_by(self, decision: Decision) -> list[str]:
        """Returns what a decision lets the model see of what is stored; of a "retry" what the program is sent again.

        Pictures are among it as they were sent.
        """
        session_id, stores = decision.session_id, self.access.stores
        if decision.kind in {"aside", "new"}:
            return []
        if decision.kind == "retry":
            return [*map(str, self.said_in(decision)), *self._partials(session_id, decision.turn, decision.turn)]
        last = stores.turns.last(session_id)
        head = decision.after_turn if decision.kind == "fork" else last.number if last else 0
        is_anew = decision.kind == "regenerate"
        found = [entry.message for entry in stores.archive.live_turns(session_id, 1, head - is_anew)] if head else []
        if last is not None and is_anew:
            found.append(stores.archive.get(session_id, last.user_message_id).message)
        seen = [*map(str, found), *self._partials(session_id, 1, head - is_anew)]
        if last is not None and decision.kind in {"regenerate", "resume"}:
            before = stores.blocks.newest(session_id, "before")
            seen += [before.text] if before is not None and before.said.asked == last.user_message_id else []
        return [*seen, *stores.images.get(session_id, references_in(found)).values()]

    def said_in(self, decision: Decision) -> list[AIMessage]:
        """Returns what the model said in the response that a "retry" is sent again."""
        session_id, turn, attempt = decision.session_id, decision.turn, decision.attempt
        started = self.engine.stores.program.fingerprints.of_attempt(session_id, turn, attempt)
        asked = decision.fingerprint.asked if decision.fingerprint else b""
        at = next(at for at in reversed(range(len(started))) if started[at].asked == asked)
        ends = [*(response.first_position for response in started[1:]), NO_END]
        return [
            entry.message
            for entry in self.access.stores.archive.all_of_turn(session_id, turn)
            if entry.attempt == attempt
            and started[at].first_position <= entry.position < ends[at]
            and isinstance(entry.message, AIMessage)
            and not is_imported(entry.message)
        ]

    def _partials(self, session_id: str, first: int, last: int) -> list[str]:
        rows = self.access.stores.turns.between(session_id, first, last) if last else ()
        return [row.partial_text for row in rows if row.status == "running"]

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
        request = self.request(messages)
        decision = self.decide_on(request)
        assert decision.kind == "resume"
        return self.carry_out(request, decision, answer).session_id

    def sends_own(self, session_id: str) -> None:
        """Stores that a program sent messages that are no turns, as a turn does."""
        lease = self.access.stores.leases.acquire(session_id)
        self.access.stores.blocks.keep(lease, "before", uuid.uuid4().hex, owner=self.access.owner)
        self.access.stores.leases.release(lease)

    def page_says(self, session_id: str, text: str, answer: str) -> int:
        """A turn that the page asks for in between."""
        stores = self.access.stores
        lease = stores.leases.acquire(session_id)
        number = self._begin(lease, ClientMessage("user", text), Decision("append", "header"), client="")
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
        stores, owner, group = self.access.stores, self.access.owner, decision.group
        if decision.kind == "new":
            stores.sessions.create(session_id, owner, compression_rate=0.3, strategy="")
            stores.sessions.update(session_id, owner, family=group)
            return session_id
        origin, after_turn = decision.session_id, decision.after_turn
        with stores.database.write(session_id=origin) as connection:
            copy_session(connection, origin, session_id, after_turn=after_turn, client=self.options.name, group=group)
        return session_id

    def _started(self, lease: Lease, request: ClientRequest, decision: Decision) -> int:
        stores, last = self.access.stores, self.access.stores.turns.last(lease.session_id)
        as_sent: dict[str, Any] = {
            "model": request.model,
            "client": self.options.name,
            "fingerprint": decision.fingerprint,
        }
        preamble = decision.preamble
        if decision.kind == "regenerate":
            assert last is not None
            number = stores.turns.begin_attempt(lease, last.number, **as_sent).number
        elif decision.kind == "resume":
            assert last is not None
            first = newest_results(request.messages).start
            results = self._further(lease, last.number, request.messages[max(0, first - 1) :])
            stores.turns.resume(lease, last.number, owner=self.access.owner, messages=results, **as_sent)
            number = last.number
        else:
            imported = decision.imported
            if last is not None and last.is_open:
                first = next((at for at, message in enumerate(imported) if message.role == "user"), len(imported))
                self._append(lease, last.number, self._further(lease, last.number, imported[:first]))
                stores.turns.finish(lease, last.number, "stopped")
                imported = imported[first:]
            sent = request.messages[: len(request.messages) - len(decision.brought)]
            is_asked = bool(sent) and bool(sent[-1].text or sent[-1].images)
            history, asked = join_questions(
                (*decision.context, *imported), sent[-1] if is_asked else unasked(decision.brought)
            )
            preamble = (*preamble, *history[: len(decision.context)])
            if history := history[len(decision.context) :]:
                import_history(self.access, lease, history, client=self.options.name, model="")
            number = self._begin(lease, asked, decision, model=request.model)
        self._append(lease, number, self._further(lease, number, decision.brought))
        self._keep_blocks(lease, number, request.options.system, preamble)
        return number

    def _further(self, lease: Lease, number: int, sent: Sequence[ClientMessage]) -> list[AnyMessage]:
        """What a program brings of a turn that has begun: results of its tools, and calls that were made elsewhere."""
        said = [message for message in sent if message.role == "tool" or message.calls]
        if not said:
            return []
        entries = self.access.stores.archive.live_turns(lease.session_id, number, number)
        return continued([entry.message for entry in entries], said, id_prefix=new_prefix(), language="en")

    def _keep_blocks(self, lease: Lease, number: int, system: str | None, preamble: Sequence[ClientMessage]) -> None:
        """Stores what a turn is sent beside the archive."""
        stores, owner = self.access.stores, self.access.owner
        if system is not None:
            text = headed(CLIENT_HEADING["en"], system.strip()) if system.strip() else ""
            stores.blocks.keep(lease, "client", text, owner=owner)
        if turns := turns_of(preamble, id_prefix=f"before-{uuid.uuid4().hex}"):
            asked = stores.turns.get(lease.session_id, number).user_message_id
            said = Said(asked, tuple(message for turn in turns for message in turn))
            stores.blocks.keep(lease, "before", said.text, owner=owner)

    def _begin(
        self, lease: Lease, asked: ClientMessage, decision: Decision, *, model: str = "", client: str | None = None
    ) -> int:
        turn, _ = self.access.stores.turns.begin(
            lease,
            owner=self.access.owner,
            message=question_of(asked.text, asked.images, message_id=f"user-{uuid.uuid4().hex}"),
            model=model,
            is_casual=False,
            client=self.options.name if client is None else client,
            fingerprint=decision.fingerprint,
            images=data_urls(asked.images),
        )
        return turn.number

    def _answer(
        self,
        lease: Lease,
        number: int,
        answer: str,
        status: TurnEnd | None,
        decision: Decision,
        *,
        first_call: str = "",
    ) -> None:
        stores = self.access.stores
        if status is None:
            stores.turns.save_partials([PartialText(lease, number, answer)])
            return
        if answer and status != "requires_action":
            self._append(lease, number, [AIMessage(answer, id=f"answer-{uuid.uuid4().hex}")])
        ended = decision.fingerprint.ended(answer, first_call) if decision.fingerprint else None
        stores.turns.finish(lease, number, status, partial_text=answer, fingerprint=ended)

    def _append(self, lease: Lease, number: int, messages: Sequence[AnyMessage]) -> None:
        if not messages:
            return
        attempt = self.access.stores.turns.get(lease.session_id, number).attempt
        archive = self.access.stores.archive
        archive.append(lease, owner=self.access.owner, turn=number, attempt=attempt, messages=messages)
