"""Who answers a story's requests: their decisions alone, which is fast, or the service over a scripted endpoint."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from graph.recognise.client_chain import results_first
from graph.recognise.client_turns import waiting_calls
from graph.service import ChatService
from graph.service.turn_stream import response_id
from graph.store.turn import TurnEnd
from graph.value.client import ClientRequest
from graph.value.error import BusyError, InputError, NotFoundError
from graph.value.event import ActionRequired, Event, TurnFailed, TurnStopped
from tests.fake import openai_reply
from tests.fake.chat import Chat
from tests.fake.http_api import Answered, HttpApi
from tests.fake.openai_reply import Body, ScriptedCall
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import Reading
from tests.fake.story import Reply, Sent, marks_in, parts_of

_PATIENCE_SECONDS: Final = 30.0
_ENDS: Final[Mapping[type[Event], TurnEnd]] = {
    TurnFailed: "failed",
    TurnStopped: "stopped",
    ActionRequired: "requires_action",
}


class DecidingServer:
    """Answers a story's requests as they are decided, without a model; sees all that a model could be sent."""

    def __init__(self, api: HttpApi) -> None:
        self._api = api
        self._running: dict[str, Answered] = {}
        self._texts: dict[str, str] = {}

    def send(self, request: ClientRequest, reply: Reply, name: str) -> Sent:
        api = replace(self._api, options=request.options)
        request = replace(request, messages=results_first(request.messages))
        try:
            with api.access.stores.database.writing():
                return self._answered(api, request, reply, name)
        except (BusyError, NotFoundError, InputError) as error:
            return Sent(type(error).__name__, "refused")

    def _answered(self, api: HttpApi, request: ClientRequest, reply: Reply, name: str) -> Sent:
        decision = api.decide_on(request)
        seen = [*api.seen_by(decision), *(message.text for message in decision.told)]
        if decision.kind == "retry":
            said = api.said_in(decision)[-1:]
            calls = waiting_calls(said)
            text = "".join(message.text for message in said)
            return Sent("retry", "finished", text, calls, decision.session_id, texts=seen)
        text, calls = reply.given(name, [*parts_of(request), *seen])
        if decision.kind not in {"new", "fork"} and decision.session_id in self._running:
            if not decision.stop_first:
                raise BusyError(decision.session_id)
            self.end(decision.session_id, "stopped")
        request = replace(request, messages=(*decision.told, *request.messages))
        answered = api.carry_out(request, decision, text, status=reply.status, calls=calls)
        session_id = answered.session_id
        if answered.lease is not None:
            self._running[session_id], self._texts[session_id] = answered, text
        attempt = api.access.stores.turns.get(session_id, answered.turn).attempt
        ordinal = len(api.engine.stores.program.fingerprints.of_attempt(session_id, answered.turn, attempt))
        response = response_id(session_id, answered.turn, attempt, ordinal)
        kind = f"{decision.kind} {decision.matched}"
        return Sent(kind, reply.status, text, answered.calls, session_id, response, seen, running=session_id)

    def end(self, running: Any, status: TurnEnd) -> str:  # noqa: ANN401  # a session's id
        if (answered := self._running.pop(running, None)) is not None:
            self._api.end(answered, self._texts[running], status)
        return self._texts[running]

    def delete(self, session_id: str) -> None:
        if session_id in self._running:
            self.end(session_id, "stopped")
        with suppress(NotFoundError):  # whoever had the same chat may have deleted it
            self._api.access.stores.sessions.delete(session_id, self._api.access.owner)


@dataclass
class _Asked:
    """A request's reply, and what the endpoint was sent for it; one that runs is held until it is let go."""

    name: str
    reply: Reply
    bodies: list[Body] = field(default_factory=list)
    came: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def answer(self, body: Body) -> openai_reply.Reply:
        self.bodies.append(body)
        self.came.set()
        text, calls = self.reply.given(self.name, [str(body["messages"])])
        match self.reply.status:
            case "failed":
                return openai_reply.failure(400)
            case "requires_action":
                made = (ScriptedCall(call.name, call.arguments, call.id) for call in calls)
                return openai_reply.tools(*made, answer=text)
            case "stopped":
                return openai_reply.hang(text)
            case None:
                self.go.wait(_PATIENCE_SECONDS)
        return openai_reply.text(text)


class ServiceServer:
    """Answers a story's requests by the service; sees what the endpoint is sent."""

    def __init__(self, service: ChatService, endpoint: FakeOpenAI) -> None:
        self._service = service
        self._endpoint = endpoint
        self._asked: _Asked | None = None
        self._running: list[tuple[_Asked, Reading]] = []
        self._sessions: set[str] = set()
        endpoint.respond_with(self._respond)

    def _respond(self, body: Body) -> openai_reply.Reply:
        if kind_of(body) != "chat" or self._asked is None:
            return answer_body(body)
        return self._asked.answer(body)

    def send(self, request: ClientRequest, reply: Reply, name: str) -> Sent:
        self._asked = asked = _Asked(name, reply)
        try:
            reading = Reading(self._service.completions.begin(request))
        except (BusyError, NotFoundError, InputError) as error:
            return Sent(type(error).__name__, "refused")
        self._sessions.add(reading.session_id)
        sent = Sent(reading.matched, reply.status, session=reading.session_id, response=reading.completion.id)
        if reading.matched == "retry":
            # What is still to come is looked at in the end.
            self._running.append((asked, reading))
            is_running = any(each.completion.id == reading.completion.id for _, each in self._running[:-1])
            return replace(sent, status="finished", text="" if is_running else self._ended(reading))
        if reply.status is None:
            assert asked.came.wait(_PATIENCE_SECONDS)
            self._running.append((asked, reading))
            return replace(sent, texts=self._texts(asked), running=(asked, reading))
        if reply.status == "stopped":
            reading.wait_for_text()
            reading.completion.stop()
        text = self._ended(reading)
        status: TurnEnd = next((name for kind, name in _ENDS.items() if isinstance(reading.last, kind)), "finished")
        return replace(sent, status=status, text=text, calls=reading.calls, texts=self._texts(asked))

    def _ended(self, reading: Reading) -> str:
        assert reading.last
        return reading.text

    def _texts(self, asked: _Asked) -> list[str]:
        return [str(body["messages"]) for body in asked.bodies]

    def end(self, running: Any, status: TurnEnd) -> str:  # noqa: ANN401  # what was sent, and who reads the answer
        asked, reading = running
        if status == "stopped":
            reading.completion.stop()
        asked.go.set()
        return self._ended(reading)

    def delete(self, session_id: str) -> None:
        self._service.sessions.delete(session_id)

    def close(self) -> None:
        """Waits for all that is done behind the answers, and looks at all that was sent and answered late."""
        for asked, reading in self._running:
            asked.go.set()
            assert marks_in([self._ended(reading)]) <= {asked.name}
        for session_id in self._sessions:
            Chat(self._service, session_id).wait_for_folds()
        for body in self._endpoint.bodies():
            assert len(marks_in([str(body["messages"])])) <= 1, body
