from __future__ import annotations

import inspect
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

import pytest

from graph.error import NotFoundError
from graph.service import ChatService
from graph.service.folds import Folds
from graph.service.sessions import Sessions
from graph.service.turns import Turns
from tests.fake.chat import Chat, question
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.openai_server import FakeOpenAI

# What a method needs beside the session's id.
ARGUMENTS = {
    "strategy": "interval",
    "text": question(9),
    "title": "내 것",
    "record_id": "record-1",
    "last": 3,
    "turn": 1,
}
TABLES = ("session", "turn", "message", "record", "context_reset", "model_call")


class Owners(NamedTuple):
    """One folder, two owners; `chat` has four turns and is the first one's."""

    chat: Chat
    other: ChatService


@pytest.fixture(scope="module")
def owners(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owners]:
    with chat_opener(settings_maker(tmp_path_factory.mktemp("owners"), endpoint.url)) as open_chat:
        chat = open_chat(turnfold_owner="first")
        chat.ask(1, 4)
        yield Owners(chat, open_chat(turnfold_owner="second").service)


def methods_of_a_session() -> list[str]:
    """Of each part of the service the methods that take a session's id, as `part.method`."""
    parts = {"turns": Turns, "sessions": Sessions, "folds": Folds}
    public = [(part, name) for part, kind in parts.items() for name in dir(kind) if not name.startswith("_")]
    found = [
        f"{part}.{name}"
        for part, name in public
        if "session_id" in inspect.signature(getattr(parts[part], name)).parameters
    ]
    assert len(found) >= 22
    return found


def refusal(service: ChatService, name: str, session_id: str) -> str:
    """Calls the method with all that it needs and returns what it says of a session that isn't the caller's."""
    method = attrgetter(name)(service)
    needed = [
        parameter.name
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty and parameter.name != "session_id"
    ]
    with pytest.raises(NotFoundError) as caught:
        method(session_id, **{argument: ARGUMENTS[argument] for argument in needed})
    return str(caught.value).replace(session_id, "<session>")


@pytest.mark.parametrize("name", methods_of_a_session())
def test_another_owners_session_is_answered_for_like_one_that_never_was(owners: Owners, name: str) -> None:
    rows = {table: owners.chat.rows(f"SELECT * FROM {table}") for table in TABLES}  # noqa: S608  # names of our own
    said = refusal(owners.other, name, owners.chat.session_id)
    if name != "turns.send":  # an id that is nobody's is a new session there
        assert said == refusal(owners.other, name, "no-such-session")
    assert rows == {table: owners.chat.rows(f"SELECT * FROM {table}") for table in TABLES}  # noqa: S608  # same


def test_each_owner_lists_and_reads_what_is_his(owners: Owners) -> None:
    assert owners.other.sessions.list() == ()
    assert [item.session_id for item in owners.chat.service.sessions.list()] == [owners.chat.session_id]
    assert owners.chat.service.folds.statistics(owners.chat.session_id).record_count == 1
    assert len(owners.chat.service.folds.chart(owners.chat.session_id)) == 4
    assert owners.chat.events()


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
