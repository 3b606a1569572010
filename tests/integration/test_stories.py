"""People behind one token, whatever their programs do: nobody is shown what only another said or was answered."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.recognise.client_chain import results_first
from graph.service.turn_stream import response_id
from graph.store.turn import TurnEnd
from graph.value.client import ClientRequest
from graph.value.error import BusyError, InputError, NotFoundError
from tests.fake.drawn import at_most
from tests.fake.http_api import Answered, HttpApi, engine_of, with_access
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.story import (
    FITTING,
    IDENTITIES,
    NAMES,
    NEXT,
    PRIVATE,
    TALK,
    Act,
    Change,
    Ending,
    Form,
    Key,
    Person,
    Picture,
    Reply,
    Sent,
    Step,
    Story,
    marks_in,
    parts_of,
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenChat]:
    """Opens servers over one folder, of which none calls a model."""
    with chat_opener(settings_maker(tmp_path_factory.mktemp("stories") / "data", "http://127.0.0.1:9/v1")) as opened:
        yield opened


@pytest.fixture(scope="module")
def opened(servers: OpenChat) -> HttpApi:
    return HttpApi(engine_of(servers().service), scope="")


def of_new_owner(opened: HttpApi) -> HttpApi:
    """The API for an owner whom no other story has; those who use it share his token."""
    return replace(opened, engine=with_access(opened.engine, owner=uuid.uuid4().hex))


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
            return Sent("retry", "finished", "\n".join(seen), texts=seen, session=decision.session_id)
        knows = name in marks_in([*parts_of(request), *seen])
        text = reply.private if knows else reply.text
        if decision.kind not in {"new", "fork"} and decision.session_id in self._running:
            if not decision.stop_first:
                raise BusyError(decision.session_id)
            self.end(decision.session_id, "stopped")
        request = replace(request, messages=(*decision.told, *request.messages))
        answered = api.carry_out(request, decision, text, status=reply.status, calls=reply.calls)
        session_id = answered.session_id
        if answered.lease is not None:
            self._running[session_id], self._texts[session_id] = answered, text
        attempt = api.access.stores.turns.get(session_id, answered.turn).attempt
        ordinal = len(api.engine.stores.program.fingerprints.of_attempt(session_id, answered.turn, attempt))
        response = response_id(session_id, answered.turn, attempt, ordinal)
        kind = f"{decision.kind} {decision.matched}"
        return Sent(kind, reply.status, text, reply.calls, session_id, response, seen, running=session_id)

    def end(self, running: Any, status: TurnEnd) -> str:  # noqa: ANN401  # a session's id
        if (answered := self._running.pop(running, None)) is not None:
            self._api.end(answered, self._texts[running], status)
        return self._texts[running]

    def delete(self, session_id: str) -> None:
        if session_id in self._running:
            self.end(session_id, "stopped")
        self._api.access.stores.sessions.delete(session_id, self._api.access.owner)


WHO = st.integers(0, 2)
QUESTIONS = st.sampled_from([NEXT] * 6 + [PRIVATE] * 2 + [*range(len(TALK))])
FORMS = st.sampled_from(get_args(Form))
SIZES = st.integers(1, 4)
SYSTEMS = st.integers(0, 4)
# Most of what people do is the same: only then may one be taken for another.
STEPS = st.one_of(
    *[st.builds(Step, who=WHO)] * 4,
    *[st.builds(Step, who=WHO, question=QUESTIONS, form=FORMS, size=SIZES, system=SYSTEMS)] * 3,
    st.builds(Step, who=WHO, does=st.sampled_from(["delete", "elsewhere", "begun", "results"]), size=SIZES),
    st.builds(Step, who=WHO, ending=st.sampled_from(get_args(Ending)), keeps=st.booleans(), told=st.booleans()),
    st.builds(
        Step,
        who=WHO,
        does=st.sampled_from(["retry", "again"]),
        system=SYSTEMS,
        change=st.sampled_from(get_args(Change)),
    ),
    st.builds(
        Step,
        who=WHO,
        does=st.sampled_from(get_args(Act)),
        question=QUESTIONS,
        answer=st.sampled_from([FITTING, *range(len(TALK))]),
        ending=st.sampled_from(get_args(Ending)),
        form=FORMS,
        size=SIZES,
        keeps=st.booleans(),
        told=st.booleans(),
        chat=st.integers(0, 1),
        system=SYSTEMS,
        leaves_out=st.booleans(),
        is_retry=st.booleans(),
        key=st.sampled_from(get_args(Key)),
        change=st.sampled_from(get_args(Change)),
        picture=st.sampled_from(get_args(Picture)),
    ),
)
WAYS = st.sampled_from(["none"] * 5 + [*IDENTITIES])
PEOPLE = st.lists(st.tuples(WAYS, st.sampled_from([False, False, True])), min_size=2, max_size=3)
SCRIPTS = st.lists(st.sampled_from([PRIVATE, *range(len(TALK))]), min_size=1, max_size=4)


@settings(max_examples=at_most(2_000), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(PEOPLE, SCRIPTS, st.lists(STEPS, min_size=3, max_size=16))
def test_nobody_is_shown_what_only_another_said_or_was_answered(
    opened: HttpApi, identities: list[tuple[Any, bool]], script: list[int], steps: list[Step]
) -> None:
    people = [Person(name, *identity) for name, identity in zip(NAMES, identities, strict=False)]
    Story(DecidingServer(of_new_owner(opened)), people, script).play(steps)
