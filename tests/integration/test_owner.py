"""One table over all methods of the service and all routes: what is another owner's answers as if it didn't exist."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import pytest

from api.program_routes import OPERATIONS
from api.route_table import Operation
from graph.file.root_folder import RootFolders
from graph.project.context_manager import ContextManager
from graph.project.project_memory import ProjectMemory
from graph.project.workflow_manager import WorkflowManager
from graph.recognise.decide import Decision
from graph.server.identity import Identity, SignIn
from graph.server.settings import Settings
from graph.service import ChatService
from graph.service.chat_service import Costs, Programs
from graph.service.completions import Completions
from graph.service.folds import Folds
from graph.service.inputs import Inputs
from graph.service.instructions import Instructions
from graph.service.mcp import McpChat
from graph.service.projects import Projects
from graph.service.sessions import Sessions
from graph.service.summaries import Summaries
from graph.service.turns import Turns
from graph.value.error import NotFoundError, SignInError, TurnfoldError, TurnRateError
from graph.value.project_view import ProjectView
from graph.value.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.owners import sign_in_of, withdrawn
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW
from tests.fake.served_programs import STRANGER, TOKEN, ServedPrograms
from tests.fake.sign_in import PROVIDER

# What a method needs beside the session's id.
ARGUMENTS: Final[dict[str, object]] = {
    "tab": "a-tab",
    "wake": lambda: True,
    "seen": None,
    "strategy": "interval",
    "reference": "image:none",
    "text": question(9),
    "title": "내 것",
    "record_id": "record-1",
    "fact": "OPS-4711",
    "rate": 0.5,
    "message_id": "message-1",
    "line_id": "1-none",
    "last": 3,
    "turn": 1,
    "attempt": 1,
    "ordinal": 1,
    "context": {},
    "after_turn": 1,
    "answers": (),
    "options": TurnOptions(),
    "is_pinned": True,
    "is_used": True,
    "decision": Decision("regenerate", "history"),
    "offered": (),
    "words": {},
    "call_id": "call-1",
    "files": (),
    "language": "ko",
}
PARTS: Final = {
    "turns": Turns,
    "sessions": Sessions,
    "folds": Folds,
    "inputs": Inputs,
    "instructions": Instructions,
    "costs": Costs,
    "projects": Projects,
    "programs": Programs,
    "completions": Completions,
    "summaries": Summaries,
    "mcp": McpChat,
}
# Methods without a session's id: the server's, the same for every owner ...
OF_THE_SERVER: Final = {
    "sessions.leave",
    "sessions.sharing",
    "for_owner",
    "health",
    "metrics",
    "sign_out",
    "completions.models",
    "sessions.new_id",
    "sessions.endpoint_problem",
    "sessions.model_options",
    "sessions.default_model",
    "sessions.strategies",
    "sessions.default_strategy",
    "folds.command_of",
    "folds.count_facts",
    "folds.lacking",
    "folds.left_out_at",
    "folds.lacks_firm",
    "folds.uses_rate",
    "instructions.checked",
    "instructions.tokens",
    "mcp.start",
    "programs.are_let_in",
    "programs.counts",
    "programs.find",
    "projects.roots",
    "summaries.make",
}
# ... and those of one owner, which have tests of their own below.
OF_AN_OWNER: Final = {
    "completions.begin",
    "completions.find",
    "costs.of_all",
    "instructions.for_all",
    "instructions.forget_preset",
    "instructions.keep_for_all",
    "instructions.keep_preset",
    "instructions.presets",
    "sessions.list",
    "sessions.count",
    "sessions.delete_many",
    "sessions.just_deleted",
    "sessions.undo_delete",
    "sessions.import_session",
    "sessions.open_example",
    "programs.admit",
    "programs.list",
    "programs.withdraw",
    "projects.rules",
    "projects.agree",
    "projects.has_memory",
    "projects.noted",
    "sign_out_everywhere",
}
MESSAGES: Final = [{"role": "user", "content": question(9)}]
# How a request names the session where its path doesn't, and what bodies hold besides.
NAMED_BESIDE_THE_PATH: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "createChatCompletion": lambda session_id: {
        "json": {"model": "turnfold", "messages": MESSAGES},
        "headers": {"X-Turnfold-Session": session_id},
    },
    "createResponse": lambda session_id: {
        "json": {"model": "turnfold", "input": question(9)},
        "headers": {"X-Turnfold-Session": session_id},
    },
    "sendMessage": lambda session_id: {"json": {"message": question(9), "session_id": session_id}},
}
BODIES: Final[dict[str, dict[str, object]]] = {
    "changeSession": {"title": "내 것", "compression_rate": 0.5},
    "updateContext": {"currentFile": "a.py"},
    "changeLedgerLine": {"struck": True},
    "restoreContext": {"record_id": "rec-1"},
}
OF_NO_SESSION: Final = {"listModels", "getModel", "summarize", "listSessions"}
PRICES: Final = {"currency": "USD", "models": {"scripted-model": {"input": 2.5, "output": 10, "cached": 1}}}
NOW: Final = datetime(2026, 11, 23, 9, tzinfo=UTC)
TABLES: Final = (
    "session",
    "turn",
    "message",
    "record",
    "context_reset",
    "model_call",
    "context_block",
    "anchor",
    "lease",
)


@dataclass(frozen=True)
class MemoryIds:
    """What stands in a project's memory, by its id; as it is, in none."""

    plan: str = "plan_999"
    task: str = "task_999"
    decision: str = "decision_999"
    snapshot: str = "20240101T000000000000Z-0123456789ab.json"
    message: str = "operation-999"


# All that reads or changes a project's memory: methods of `projects`, and of the managers that it returns.
MEMORY_CALLS: Final[dict[str, Callable[[Projects, str, MemoryIds], object]]] = {
    "get": lambda projects, root, _: projects.get(root),
    "restore": lambda projects, root, ids: projects.restore(root, ids.snapshot),
    "start_over": lambda projects, root, _: projects.start_over(root),
    "workflow.plan": lambda projects, root, ids: projects.workflow(root).plan(ids.plan),
    "workflow.task": lambda projects, root, ids: projects.workflow(root).task(ids.task),
    "workflow.name_project": lambda projects, root, _: projects.workflow(root).name_project("가게"),
    "workflow.open_plan": lambda projects, root, _: projects.workflow(root).open_plan("새 계획"),
    "workflow.switch_plan": lambda projects, root, ids: projects.workflow(root).switch_plan(ids.plan),
    "workflow.complete_plan": lambda projects, root, ids: projects.workflow(root).complete_plan(ids.plan),
    "workflow.open_task": lambda projects, root, _: projects.workflow(root).open_task("새 일"),
    "workflow.start_task": lambda projects, root, ids: projects.workflow(root).start_task(ids.task),
    "workflow.complete_task": lambda projects, root, ids: projects.workflow(root).complete_task(ids.task),
    "workflow.rename": lambda projects, root, ids: projects.workflow(root).rename(ids.task, "표 달기"),
    "workflow.forget": lambda projects, root, ids: projects.workflow(root).forget(ids.task),
    "context.register_message": lambda projects, root, _: projects.context(root).register_message("user", "안녕"),
    "context.take_back": lambda projects, root, ids: projects.context(root).take_back([ids.message]),
    "context.roll_up": lambda projects, root, _: projects.context(root).roll_up(),
    "context.hydrate_prompt": lambda projects, root, _: projects.context(root).hydrate_prompt(),
    "context.primed": lambda projects, root, _: projects.context(root).primed(),
    "context.save": lambda projects, root, _: projects.context(root).save(),
    "context.record_decision": lambda projects, root, ids: projects.context(root).record_decision(
        "포트는 8502", replaces=ids.decision
    ),
    "context.forget_decision": lambda projects, root, ids: projects.context(root).forget_decision(ids.decision),
    "context.note_open_files": lambda projects, root, _: projects.context(root).note_open_files(
        ["app/new.py"], closed=["docs/cli.md"]
    ),
    "context.edit_summary": lambda projects, root, _: projects.context(root).edit_summary("새 요약"),
    "context.forget_dialog": lambda projects, root, _: projects.context(root).forget_dialog(),
    "context.without_vectors": lambda projects, root, _: projects.context(root).without_vectors("m"),
    "context.keep_vectors": lambda projects, root, _: projects.context(root).keep_vectors(
        "m", {each.id: [0.5] for each in projects.context(root).without_vectors("m")}
    ),
}
# They change nothing that is shown of the memory that the tests prepare.
UNCHANGING: Final = {
    "get",
    "workflow.plan",
    "workflow.task",
    "workflow.switch_plan",
    "workflow.start_task",
    "context.roll_up",
    "context.hydrate_prompt",
    "context.primed",
    "context.save",
    "context.without_vectors",
    "context.keep_vectors",
}
MANAGERS: Final = {"workflow": WorkflowManager, "context": ContextManager}


class House(NamedTuple):
    """One server with two owners, `local` and `stranger`, and a program of each; `chat` is local's, of four turns."""

    chat: Chat
    stranger: ChatService
    own_program: httpx2.Client
    strange_program: httpx2.Client
    root: Path

    @property
    def service(self) -> ChatService:
        return self.chat.service

    @property
    def rows(self) -> dict[str, list[Any]]:
        return {table: self.chat.rows(f"SELECT * FROM {table}") for table in TABLES}  # noqa: S608  # names of our own

    def begin(self) -> Chat:
        """Begins a chat of local's, with one turn."""
        chat = Chat(self.service)
        chat.ask(1, 1)
        return chat

    def begin_by_program(self) -> Chat:
        answer = self.own_program.post("/v1/responses", json={"model": "turnfold", "input": question(8)})
        return Chat(self.service, answer.headers["X-Turnfold-Session"])


@pytest.fixture(scope="module")
def house(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("owners")
    root = folder / "shop"
    root.mkdir()
    (root / "AGENTS.md").write_text("Prices are in won.")
    with chat_opener(settings_maker(folder / "data", endpoint.url)) as open_chat:
        chat = open_chat(project_roots=(root,), model_prices=PRICES, **PROVIDER)
        chat.ask(1, 4)
        with (
            ServedPrograms(chat.service) as served,
            served.client(TOKEN) as own,
            served.client(STRANGER) as stranger,
        ):
            yield House(chat, chat.service.for_owner("stranger"), own, stranger, root)


def public_methods() -> dict[str, frozenset[str]]:
    """All methods of the service and its parts as `part.method`, each with the names of its parameters."""
    prefixes = {"": ChatService, **{f"{part}.": kind for part, kind in PARTS.items()}}
    return {
        f"{prefix}{name}": frozenset(inspect.signature(getattr(kind, name)).parameters)
        for prefix, kind in prefixes.items()
        for name in dir(kind)
        if not name.startswith("_")
    }


METHODS_OF_A_SESSION: Final = [name for name, parameters in public_methods().items() if "session_id" in parameters]


def test_the_table_has_every_method_and_every_operation(house: House) -> None:
    parts = {name: type(part) for name, part in vars(house.service).items() if not name.startswith("_")}
    assert parts == {**PARTS, "settings": Settings}
    of_a_memory = {f"projects.{name.partition('.')[0]}" for name in MEMORY_CALLS}
    assert public_methods().keys() - set(METHODS_OF_A_SESSION) == OF_THE_SERVER | OF_AN_OWNER | of_a_memory
    of_managers = {
        f"{manager}.{name}"
        for manager, kind in MANAGERS.items()
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    assert of_managers == MEMORY_CALLS.keys() - {"get", "restore", "start_over"}
    for operation in OPERATIONS:
        is_named = "session_id" in operation.path or "response_id" in operation.path
        is_named = is_named or operation.name in NAMED_BESIDE_THE_PATH
        assert is_named == (operation.name not in OF_NO_SESSION)


def call(service: ChatService, name: str, session_id: str) -> None:
    """Calls the method of a session with all that it needs."""
    method: Callable[..., object] = attrgetter(name)(service)
    needed = [
        parameter.name
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty and parameter.name != "session_id"
    ]
    method(session_id, **{argument: ARGUMENTS[argument] for argument in needed})


@pytest.mark.parametrize("name", METHODS_OF_A_SESSION)
def test_a_method_answers_for_its_owners_sessions_alone(house: House, name: str) -> None:
    session_id, before = house.chat.session_id, house.rows
    for named in (session_id, "no-such-session"):
        if (named, name) != ("no-such-session", "turns.send"):  # which begins a new session
            with pytest.raises(NotFoundError) as caught:
                call(house.stranger, name, named)
            assert str(caught.value) == f"not_found: {named}"
    assert house.rows == before
    with withdrawn(house.service, "local"), pytest.raises(NotFoundError, match=session_id):
        call(house.service, name, session_id)
    moments = iter((NOW, NOW + timedelta(hours=1)))
    engine = house.service._engine  # noqa: SLF001  # with a clock for this test alone
    access = replace(engine.access, clock=lambda: next(moments, NOW + timedelta(days=1)))
    signed_in = ChatService(replace(engine, access=access)).for_owner(
        "local", sign_in=sign_in_of(until=NOW + timedelta(minutes=59))
    )
    with pytest.raises(SignInError) as ended:
        call(signed_in, name, session_id)
    assert ended.value.reason == "ended"
    signed_out = house.service.for_owner("local", sign_in=sign_in_of(name))
    signed_out.sign_out(Identity("local", "", sign_in_of(name)))
    with pytest.raises(NotFoundError, match=session_id):
        call(signed_out, name, session_id)
    assert {**house.rows, "lease": ()} == {**before, "lease": ()}  # whoever leaves may have held it
    answer_for_own_session_until_it_is_deleted(house, name)


def answer_for_own_session_until_it_is_deleted(house: House, name: str) -> None:
    mine = house.begin()
    try:
        call(house.service, name, mine.session_id)
    except TurnfoldError as error:  # what is asked for can't be done to a chat of one turn
        assert error.detail != mine.session_id  # noqa: PT017  # many methods raise nothing
    mine.wait_for_folds()
    for item in house.service.sessions.list():
        if item.session_id != house.chat.session_id:
            house.service.sessions.delete(item.session_id)
    if name != "turns.send":
        with pytest.raises(NotFoundError):
            call(house.service, name, mine.session_id)


def asked(client: httpx2.Client, operation: Operation, session_id: str, **how: Any) -> tuple[int, str]:  # noqa: ANN401  # what httpx takes
    """Asks for the operation on this session; returns the status and what is said, without the session's name."""
    named = {"session_id": session_id, "response_id": f"resp_{session_id}_1_1_1"}
    path = operation.documented_path.format(**named, turn="1", line="1-none", model_id="turnfold")
    name_it = NAMED_BESIDE_THE_PATH.get(operation.name)
    sent = name_it(session_id) if name_it is not None else {"json": BODIES.get(operation.name)}
    answer = client.request(operation.method, path, **{**sent, **how})
    return answer.status_code, answer.text.replace(session_id, "<session>")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_route_tells_nothing_without_a_token_and_answers_for_its_owners_sessions_alone(
    house: House, operation: Operation
) -> None:
    before, session_id = house.rows, house.chat.session_id
    answers = [
        asked(house.own_program, operation, session_id, headers={"Authorization": sent})
        for sent in ("", "Bearer", "Bearer token-of-nobody-0123456789")
    ]
    with withdrawn(house.service, "stranger"):
        assert asked(house.strange_program, operation, session_id) == answers[-1]
    assert {status for status, _ in answers} == {401}
    assert all(json.loads(text)["error"]["code"] == "invalid_api_key" for _, text in answers)
    if operation.name not in OF_NO_SESSION:
        foreign = asked(house.strange_program, operation, session_id)
        assert foreign[0] == 404
        assert foreign == asked(house.own_program, operation, "no-such-session")
        assert foreign == asked(house.strange_program, operation, "no-such-session")
    assert house.rows == before
    if operation.name not in OF_NO_SESSION:
        mine = house.begin_by_program() if "response_id" in operation.path else house.begin()
        assert asked(house.strange_program, operation, mine.session_id) == foreign
        status, said = asked(house.own_program, operation, mine.session_id)
        assert (status, "(<session>)" in said) != (404, True)
        if operation.method == "GET":
            assert status in (200, 204)
        mine.wait_for_folds()
        house.own_program.delete(f"/sessions/{mine.session_id}")


def test_a_session_named_in_the_metadata_is_its_owners_alone(house: House) -> None:
    answers = [
        house.strange_program.post(
            "/v1/chat/completions",
            json={"model": "turnfold", "messages": MESSAGES, "metadata": {"turnfold_session": session_id}},
        )
        for session_id in (house.chat.session_id, "no-such-session")
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].text.replace(house.chat.session_id, "no-such-session") == answers[1].text
    assert "X-Turnfold-Session" not in answers[0].headers


def test_two_owners_programs_that_say_the_same_share_nothing(house: House) -> None:
    sessions = []
    for program in (house.own_program, house.strange_program):
        messages = [{"role": "user", "content": question(7)}]
        for number in (8, 9):
            answer = program.post("/v1/chat/completions", json={"model": "turnfold", "messages": messages})
            sessions.append(answer.headers["X-Turnfold-Session"])
            messages.append({"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]})
            messages.append({"role": "user", "content": question(number)})
    assert sessions[0] == sessions[1] != sessions[2] == sessions[3]
    assert [item.session_id for item in house.stranger.sessions.list()] == [sessions[2]]
    house.service.sessions.delete(sessions[0])
    house.stranger.sessions.delete(sessions[2])


def test_each_owner_lists_and_searches_his_own_sessions(house: House) -> None:
    (item,) = house.service.sessions.list()
    assert item.session_id == house.chat.session_id
    assert house.stranger.sessions.list(search="김민수", also=house.chat.session_id) == ()
    assert (house.stranger.sessions.count(), house.stranger.sessions.count(search="김민수")) == (0, 0)
    assert house.stranger.costs.of_all() != house.service.costs.of_all()
    assert house.service.costs.of_all() is not None
    for search in ("", "김민수"):
        lists = [
            program.get("/sessions", params={"search": search}).json()["sessions"]
            for program in (house.own_program, house.strange_program)
        ]
        assert [[each["session_id"] for each in sessions] for sessions in lists] == [[house.chat.session_id], []]
    assert house.stranger.folds.gauge(None).reported_tokens is None
    assert house.service.for_owner("stranger").for_owner("local").sessions.list() == (item,)


def test_each_owner_deletes_and_brings_back_his_own_sessions(house: House) -> None:
    mine, theirs, session_id = house.service.sessions, house.stranger.sessions, house.begin().session_id
    assert theirs.delete_many([session_id]) == ()
    assert mine.count() == 2
    assert mine.delete_many([session_id]) == (session_id,)
    assert theirs.just_deleted() == {}
    assert theirs.undo_delete([session_id]) == ()
    assert mine.undo_delete([session_id]) == (session_id,)
    mine.delete(session_id)


def test_a_message_of_another_owner_is_not_known_when_it_is_sent_again(house: House) -> None:
    session_id = house.chat.session_id
    sent = house.chat.rows("SELECT message_id FROM message WHERE session_id = ? AND position = 1", session_id)[0][0]
    with pytest.raises(NotFoundError):
        house.stranger.turns.send(session_id, question(1), message_id=sent)
    with withdrawn(house.service, "local"), pytest.raises(NotFoundError):
        house.service.turns.send(session_id, question(1), message_id=sent)
    assert house.service.turns.send(session_id, question(1), message_id=sent) == 1


def test_each_owner_agrees_to_the_rules_of_a_project(house: House) -> None:
    mine, theirs, root = house.service.projects, house.stranger.projects, str(house.root)
    mine.agree(root, mine.rules(root).digest)
    assert (mine.rules(root).state, theirs.rules(root).state) == ("agreed", "new")


def test_each_owner_lists_and_withdraws_his_own_programs(house: House) -> None:
    mine, theirs = house.service.programs, house.stranger.programs
    made = mine.admit("editor")
    assert theirs.list() == ()
    theirs.withdraw(made.shown.id)
    theirs.withdraw("no-such-token")
    assert mine.list() == (made.shown,)
    mine.withdraw(made.shown.id)
    assert mine.list() == ()


def test_each_owner_has_an_example_of_his_own(house: House) -> None:
    examples = [service.sessions.open_example("ko") for service in (house.stranger, house.service)]
    assert examples[0] != examples[1]
    for service, session_id in zip((house.stranger, house.service), examples, strict=True):
        service.sessions.delete(session_id)


def test_an_owner_who_is_not_let_in_has_no_service(house: House) -> None:
    service = house.service
    with pytest.raises(SignInError, match="sign_in") as ended:
        service.for_owner("local", sign_in=sign_in_of(until=NOW))
    assert ended.value.reason == "ended"
    with withdrawn(service, "local"):
        for sign_in in (None, sign_in_of()):
            with pytest.raises(SignInError) as caught:
                service.for_owner("local", sign_in=sign_in)
            assert caught.value.reason == "withdrawn"
        assert service.for_owner("stranger").sessions.list() == ()
    assert service.for_owner("local") is service
    assert service.for_owner("local", sign_in=sign_in_of()).sessions.count() == 1


def ended(service: ChatService, owner: str, *sign_ins: SignIn) -> list[bool]:
    """Which of these sign-ins are refused."""
    reasons = []
    for sign_in in sign_ins:
        try:
            service.for_owner(owner, sign_in=sign_in)
            reasons.append("")
        except SignInError as error:
            reasons.append(error.reason)
    assert {*reasons} <= {"", "ended"}
    return [reason == "ended" for reason in reasons]


def test_a_sign_out_ends_one_sign_in_and_everywhere_all_but_no_program(house: House) -> None:
    service, owner = house.service, "leaves"
    laptop, phone, theirs = (sign_in_of(name) for name in ("laptop", "phone", "theirs"))
    assert ended(service, owner, laptop, phone) == [False, False]
    service.sign_out(Identity(owner, "", laptop))
    assert ended(service, owner, laptop, phone) == [True, False]
    open_tab = service.for_owner(owner, sign_in=phone)
    service.for_owner(owner, sign_in=phone).sign_out_everywhere()
    again = sign_in_of("again")
    assert ended(service, owner, laptop, phone, again) == [True, True, False]
    assert ended(service, "stays", theirs) == [False]
    for refused in (open_tab.costs.of_all, lambda: open_tab.for_owner(owner, sign_in=phone)):
        with pytest.raises(SignInError):
            refused()
    assert service.for_owner(owner).sessions.list() == ()  # as a program comes
    token = service.for_owner(owner).programs.admit("editor")
    found = service.programs.find(token.secret.get_secret_value())
    assert found is not None
    assert found.owner == owner


def test_a_running_turn_is_not_told_to_others_and_is_kept_when_its_owner_is_withdrawn(
    house: House, server: FakeOpenAI
) -> None:
    chat = Chat(house.service)
    server.script(hang("여기까지"))
    chat.start(question(1))
    chat.wait_until_live(lambda live: live.text == "여기까지")
    with pytest.raises(NotFoundError):
        house.stranger.turns.send(chat.session_id, question(1))
    with withdrawn(house.service, "local"), pytest.raises(NotFoundError):
        house.service.turns.live(chat.session_id, seen=None, wait_seconds=1)
    chat.stop_when(lambda live: live.text == "여기까지")
    assert (chat.last_turn.status, chat.last_turn.answer_text) == ("stopped", "여기까지")
    house.service.sessions.delete(chat.session_id)


def test_two_owners_of_one_server_share_its_limits(open_chat: OpenChat) -> None:
    first = open_chat(turns_per_minute=1)
    first.ask(1, 1)
    with pytest.raises(TurnRateError):
        first.service.for_owner("second").turns.send("theirs", question(1))
    assert first.service.for_owner("second").sessions.list() == ()


def prepare_memory(house: House, owner: str) -> MemoryIds:
    """Has the seed's memory kept for an owner who signs in, and returns its ids."""
    ProjectMemory(RootFolders([house.root]), house.root, owner)
    for name, value in (("context.json", SEED_CONTEXT), ("workflow.json", SEED_WORKFLOW)):
        (memory_folder(house, owner) / name).write_text(json.dumps(value), encoding="utf-8")
    projects, root, message = house.service.for_owner(owner).projects, str(house.root), f"operation-of-{owner}"
    decision = projects.context(root).record_decision(f"{owner}의 결정")
    projects.context(root).register_message("user", f"{owner}의 말", operation_id=message)
    view = projects.get(root)
    (plan,) = view.plans
    return MemoryIds(plan.id, plan.tasks[0].id, decision.id, view.snapshots[0].name, message)


def memory_folder(house: House, owner: str) -> Path:
    return house.root / ".ai-brain" / "user" / owner


def answer(projects: Projects, root: Path, name: str, ids: MemoryIds) -> tuple[str, ProjectView]:
    """What a call says that refuses it, without the ids that it was asked for, and the memory after it."""
    said = ""
    try:
        MEMORY_CALLS[name](projects, str(root), ids)
    except TurnfoldError as error:
        said = str(error)
        for each in astuple(ids):
            said = said.replace(each, "<id>")
    return said, projects.get(str(root))


@pytest.mark.parametrize("name", MEMORY_CALLS)
def test_a_method_reads_and_changes_its_owners_project_memory_alone(house: House, name: str) -> None:
    owner = f"own-{name}".replace("_", "-").replace(".", "-")  # what a folder is named by
    ids = prepare_memory(house, owner)
    files = {path: path.read_bytes() for path in memory_folder(house, owner).rglob("*") if path.is_file()}
    tries, asks = (house.service.for_owner(f"{verb}-{owner}").projects for verb in ("tries", "asks"))
    assert answer(tries, house.root, name, ids) == answer(asks, house.root, name, MemoryIds())
    assert {path: path.read_bytes() for path in files} == files
    projects = house.service.for_owner(owner).projects
    before = projects.get(str(house.root))
    MEMORY_CALLS[name](projects, str(house.root), ids)
    assert (projects.get(str(house.root)) == before) == (name in UNCHANGING)
