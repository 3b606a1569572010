from __future__ import annotations

import inspect
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import pytest

from graph.core.recognise import Decision
from graph.error import NotFoundError, SignInError, TurnfoldError
from graph.service import ChatService
from graph.service.completions import Completions
from graph.service.costs import Costs
from graph.service.folds import Folds
from graph.service.programs import Programs
from graph.service.projects import Projects
from graph.service.sessions import Sessions
from graph.service.summaries import Summaries
from graph.service.turns import Turns
from graph.settings import Settings
from graph.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.memory_call import MEMORY_CALLS
from tests.fake.owners import Owners, withdrawn

# What a method needs beside the session's id.
ARGUMENTS = {
    "strategy": "interval",
    "text": question(9),
    "title": "내 것",
    "record_id": "record-1",
    "rate": 0.5,
    "message_id": "message-1",
    "last": 3,
    "turn": 1,
    "attempt": 1,
    "ordinal": 1,
    "context": {},
    "after_turn": 1,
    "answers": (),
    "options": TurnOptions(),
    "rating": 1,
    "is_pinned": True,
    "decision": Decision("regenerate", "history"),
}
PARTS = {
    "turns": Turns,
    "sessions": Sessions,
    "folds": Folds,
    "costs": Costs,
    "projects": Projects,
    "programs": Programs,
    "completions": Completions,
    "summaries": Summaries,
}
# What takes no session's id: of the server, the same for every owner; of one owner; or of his memory of a project.
OF_THE_SERVER = {
    "for_owner",
    "health",
    "metrics",
    "completions.models",
    "sessions.new_id",
    "sessions.model_options",
    "sessions.default_model",
    "sessions.strategies",
    "sessions.default_strategy",
    "folds.command_of",
    "folds.uses_rate",
    "programs.are_let_in",
    "programs.find",
    "projects.roots",
    "summaries.make",
}
OF_AN_OWNER = {
    "completions.begin",
    "costs.of_all",
    "sessions.list",
    "sessions.count",
    "sessions.delete_many",
    "sessions.undo_delete",
    "sessions.import_session",
    "sessions.open_example",
    "programs.admit",
    "programs.list",
    "programs.withdraw",
    "projects.rules",
    "projects.agree",
}
# What is tried over and over with own, others' and unknown ids in test_project_owner.
OF_A_MEMORY = {f"projects.{name}" for name in MEMORY_CALLS}
NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)
TABLES = ("session", "turn", "message", "record", "context_reset", "model_call")


def public_methods() -> dict[str, frozenset[str]]:
    """All methods of the service and its parts as `part.method`, each with the names of its parameters."""
    places = {"": ChatService, **{f"{part}.": kind for part, kind in PARTS.items()}}
    return {
        f"{place}{name}": frozenset(inspect.signature(getattr(kind, name)).parameters)
        for place, kind in places.items()
        for name in dir(kind)
        if not name.startswith("_")
    }


def methods_of_a_session() -> list[str]:
    found = [name for name, parameters in public_methods().items() if "session_id" in parameters]
    assert len(found) >= 22
    return found


def test_of_every_method_it_is_said_whose_it_is(owners: Owners) -> None:
    parts = {name: type(part) for name, part in vars(owners.other).items() if not name.startswith("_")}
    assert parts == {**PARTS, "settings": Settings}
    assert public_methods().keys() - set(methods_of_a_session()) == OF_THE_SERVER | OF_AN_OWNER | OF_A_MEMORY


def test_the_service_of_an_owner_is_itself_that_owners(owners: Owners) -> None:
    assert owners.other.for_owner("second") is owners.other
    assert owners.other.for_owner("first").sessions.list() == owners.chat.service.sessions.list()


def call(service: ChatService, name: str, session_id: str) -> None:
    """Calls the method of a session with all that it needs."""
    method = attrgetter(name)(service)
    needed = [
        parameter.name
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty and parameter.name != "session_id"
    ]
    method(session_id, **{argument: ARGUMENTS[argument] for argument in needed})


def refusal(service: ChatService, name: str, session_id: str) -> str:
    """Returns what the method says of a session that isn't the caller's."""
    with pytest.raises(NotFoundError) as caught:
        call(service, name, session_id)
    return str(caught.value).replace(session_id, "<session>")


def rows_of(chat: Chat) -> dict[str, object]:
    return {table: chat.rows(f"SELECT * FROM {table}") for table in TABLES}  # noqa: S608  # names of our own


@pytest.mark.parametrize("whose", ["own", "other's", "unknown", "of a withdrawn owner", "after the sign-in"])
@pytest.mark.parametrize("name", methods_of_a_session())
def test_only_an_owners_own_session_is_answered_for(owners: Owners, name: str, whose: str) -> None:
    service, rows = owners.chat.service, rows_of(owners.chat)
    if whose == "own":
        mine = Chat(service)
        mine.ask(1, 1)
        try:
            call(service, name, mine.session_id)
        except TurnfoldError as error:  # what is asked for can't be done to a chat of one turn
            assert error.detail != mine.session_id  # noqa: PT017  # many methods raise nothing
        mine.wait_for_folds()
        for item in service.sessions.list():
            if item.session_id != owners.chat.session_id:
                service.sessions.delete(item.session_id)
        return
    if whose == "other's":
        assert refusal(owners.other, name, owners.chat.session_id) == "not_found: <session>"
    elif whose == "unknown":
        if name != "turns.send":  # an id that is nobody's is a new session there
            assert refusal(owners.other, name, "no-such-session") == "not_found: <session>"
    elif whose == "of a withdrawn owner":
        with withdrawn(service, "first"):
            assert refusal(service, name, owners.chat.session_id) == "not_found: <session>"
    else:
        moments = iter((NOW, NOW + timedelta(hours=1)))
        access = replace(service._access, clock=lambda: next(moments, NOW + timedelta(days=1)))  # noqa: SLF001  # a clock for this test alone
        signed_in = ChatService(access).for_owner("first", until=NOW + timedelta(minutes=59))
        with pytest.raises(SignInError) as caught:
            call(signed_in, name, owners.chat.session_id)
        assert caught.value.reason == "ended"
    assert rows_of(owners.chat) == rows


def test_gauge_needs_no_session(owners: Owners) -> None:
    assert owners.other.folds.gauge(None).source == "estimate"


def test_nothing_is_told_of_a_deleted_session(owners: Owners) -> None:
    service = owners.chat.service
    gone = Chat(service)
    gone.ask(1, 1)
    assert gone.events()
    service.sessions.delete(gone.session_id)
    for name in methods_of_a_session():
        if name != "turns.send":
            refusal(service, name, gone.session_id)
