from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pytest

from graph.core.recognise import Decision
from graph.error import NotFoundError, SignInError, TurnfoldError, TurnRateError
from graph.service import ChatService
from graph.service.completions import Completions
from graph.service.folds import Folds
from graph.service.programs import Programs
from graph.service.projects import Projects
from graph.service.sessions import Sessions
from graph.service.summaries import Summaries
from graph.service.turns import Turns
from graph.settings import Settings
from graph.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI

# What a method needs beside the session's id.
ARGUMENTS = {
    "strategy": "interval",
    "text": question(9),
    "title": "내 것",
    "record_id": "record-1",
    "last": 3,
    "turn": 1,
    "context": {},
    "after_turn": 1,
    "answers": (),
    "options": TurnOptions(),
    "decision": Decision("regenerate", "history"),
}
PARTS = {
    "turns": Turns,
    "sessions": Sessions,
    "folds": Folds,
    "projects": Projects,
    "programs": Programs,
    "completions": Completions,
    "summaries": Summaries,
}
# What takes no session's id: of the server, the same for every owner; of one owner; or of a folder that owners share.
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
    "sessions.list",
    "sessions.count",
    "sessions.open_example",
    "programs.admit",
    "programs.list",
    "programs.withdraw",
    "projects.rules",
    "projects.agree",
}
OF_A_FOLDER = {
    f"projects.{name}"
    for name in (
        "close_file",
        "complete_plan",
        "complete_task",
        "edit_summary",
        "forget",
        "forget_decision",
        "forget_dialog",
        "get",
        "name",
        "open_file",
        "open_plan",
        "open_task",
        "record_decision",
        "rename",
        "restore",
        "start_task",
        "switch_plan",
    )
}
NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)
TABLES = ("session", "turn", "message", "record", "context_reset", "model_call")


class Owners(NamedTuple):
    """One folder, two owners; `chat` has four turns and is the first one's."""

    chat: Chat
    other: ChatService
    root: Path


@pytest.fixture(scope="module", params=["of another server", "of the same server"])
def owners(
    request: pytest.FixtureRequest, endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Owners]:
    root = tmp_path_factory.mktemp("shop")
    (root / "AGENTS.md").write_text("Prices are in won.")
    with chat_opener(settings_maker(tmp_path_factory.mktemp("owners"), endpoint.url)) as open_chat:
        chat = open_chat(turnfold_owner="first", project_roots=(root,))
        chat.ask(1, 4)
        if request.param == "of the same server":
            yield Owners(chat, chat.service.for_owner("second"), root)
        else:
            yield Owners(chat, open_chat(turnfold_owner="second", project_roots=(root,)).service, root)


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
    assert public_methods().keys() - set(methods_of_a_session()) == OF_THE_SERVER | OF_AN_OWNER | OF_A_FOLDER


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


@contextmanager
def withdrawn(service: ChatService, owner: str) -> Iterator[None]:
    owners = service._access.stores.owners  # noqa: SLF001  # what the operator's command uses
    owners.withdraw(owner)
    try:
        yield
    finally:
        assert owners.readmit(owner)


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


def test_an_owner_who_is_not_let_in_has_no_service(owners: Owners) -> None:
    service = owners.chat.service
    with pytest.raises(SignInError, match="sign_in") as ended:
        service.for_owner("first", until=NOW)
    assert ended.value.reason == "ended"
    with withdrawn(service, "first"):
        for until in (None, datetime.now(UTC) + timedelta(hours=1)):
            with pytest.raises(SignInError) as caught:
                service.for_owner("first", until=until)
            assert caught.value.reason == "withdrawn"
        assert service.for_owner("second").sessions.list() == ()
    assert service.for_owner("first") is service
    assert service.for_owner("first", until=datetime.now(UTC) + timedelta(hours=1)).sessions.count() == 1


def test_a_turn_that_runs_is_kept_while_its_owner_is_withdrawn(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(turnfold_owner="leaver")
    server.script(hang("여기까지"))
    chat.start(question(1))
    chat.wait_until_live(lambda live: live.text == "여기까지")
    with withdrawn(chat.service, "leaver"), pytest.raises(NotFoundError):
        chat.service.turns.live(chat.session_id, seen=None, wait_seconds=1)
    chat.stop_when(lambda live: live.text == "여기까지")
    assert (chat.last_turn.status, chat.last_turn.answer_text) == ("stopped", "여기까지")


def test_each_owner_lists_and_reads_what_is_his(owners: Owners) -> None:
    assert owners.other.sessions.list() == ()
    assert owners.other.sessions.list(also=owners.chat.session_id) == ()
    assert owners.other.sessions.list(search="김민수") == ()
    assert owners.other.sessions.count(search="김민수") == 0
    assert [item.session_id for item in owners.chat.service.sessions.list()] == [owners.chat.session_id]
    assert owners.chat.service.folds.statistics(owners.chat.session_id).record_count == 1
    assert len(owners.chat.service.folds.chart(owners.chat.session_id)) == 4
    assert owners.chat.events()


def test_each_owner_agrees_to_the_rules_of_a_project(owners: Owners) -> None:
    mine, theirs, root = owners.chat.service.projects, owners.other.projects, str(owners.root)
    mine.agree(root, mine.rules(root).digest)
    assert (mine.rules(root).state, theirs.rules(root).state) == ("agreed", "new")


def test_each_owner_lists_and_withdraws_his_own_programs(owners: Owners) -> None:
    mine, theirs = owners.chat.service.programs, owners.other.programs
    made = mine.admit("editor")
    assert theirs.list() == ()
    theirs.withdraw(made.shown.id)
    theirs.withdraw("no-such-token")
    assert mine.list() == (made.shown,)
    mine.withdraw(made.shown.id)
    assert mine.list() == ()


def test_each_owner_has_an_example_of_his_own(owners: Owners) -> None:
    theirs = owners.other.sessions.open_example("ko")
    mine = owners.chat.service.sessions.open_example("ko")
    assert theirs != mine
    for service, session_id in ((owners.other, theirs), (owners.chat.service, mine)):
        service.sessions.delete(session_id)


def test_two_owners_of_one_server_share_its_limits(open_chat: OpenChat) -> None:
    first = open_chat(turns_per_minute=1)
    first.ask(1, 1)
    with pytest.raises(TurnRateError):
        first.service.for_owner("second").turns.send("theirs", question(1))
    assert first.service.for_owner("second").sessions.list() == ()


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
