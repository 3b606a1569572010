"""Every action of the page under a sign-in: what a widget or a page script calls and that asks the service.

Each is a story of an owner's chat (or project, or program): what is there before, the call, and what has come of it.
It is told of a chat of the visitor and, up to the call, of one of somebody else.
"""

from __future__ import annotations

import ast
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import pytest
from streamlit.testing.v1 import AppTest

from component import action, background, browser, page_state
from component.bridge import service_provider
from component.panel import record_dialog, summary_panel
from component.panel.record_dialog import Target
from component.project import project_form
from component.setting import setting_dialog
from graph.server.identity import owner_of
from graph.service import ChatService
from graph.service.projects import Projects
from graph.store.schema import METADATA
from graph.value.error import SignInError, TurnfoldError
from graph.value.project_view import PlanView
from graph.value.record import Record
from tests.fake.chat import Chat
from tests.fake.mcp_servers import WRITE, ScriptedServers
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.openai_reply import Body, Reply, ScriptedCall, hang, tools
from tests.fake.openai_responder import answer_body, asked_in
from tests.fake.openai_server import FakeOpenAI
from tests.fake.owners import sign_in_of
from tests.fake.sign_in import PROVIDER
from tests.page.reading import NEW, as_tab

COMPONENTS: Final = Path(action.__file__).parent
CLAIMS: Final[dict[str, Any]] = {"is_logged_in": True, "iss": PROVIDER["oidc_issuer"], "sub": "visitor-1"}
TURNS: Final = 6
WAIT: Final = "Say nothing until you are stopped."
NOTE: Final = "Write a note."
SERVERS: Final = ScriptedServers()
TABLES: Final = METADATA.tables.keys() - {"lease", "sign_in"}  # each visit is a sign-in


class About(Chat):
    """A chat of some owner; `fields` are those of the page before the call, `opened` is the chat that is open after."""

    opened: str | None = None
    root = ""

    def __init__(self, service: ChatService, session_id: str, visitor: ChatService) -> None:
        super().__init__(service, session_id)
        self.visitor = visitor
        self.fields: dict[str, object] = {page_state.OPEN: session_id}

    @property
    def record(self) -> Record:
        return self.service.folds.records(self.session_id)[0]

    @property
    def compactions(self) -> int:
        return len(self.service.folds.compactions(self.session_id))

    @property
    def reset_after(self) -> tuple[int, ...]:
        return tuple(self.service.turns.transcript(self.session_id).reset_after)

    @property
    def pinned(self) -> list[str]:
        return [message.message_id for message in self.service.folds.pins(self.session_id).messages]

    @property
    def programs(self) -> list[str]:
        return [token.name for token in self.service.programs.list()]

    @property
    def new(self) -> Chat:
        """The chat that the call has opened."""
        assert self.opened not in {None, self.session_id}
        return ended(Chat(self.service, str(self.opened)))

    def is_listed(self) -> bool:
        return self.session_id in {item.session_id for item in self.service.sessions.list()}

    def begin_turn(self) -> None:
        """Sends what is never answered, and waits until its turn runs."""
        self.ask(TURNS + 1, TURNS + 1)  # behind it no fold is due
        self.start(WAIT)
        self.wait_until_live(lambda live: live.number == TURNS + 2)

    def begin_to_ask(self) -> str:
        """Has a turn ask the user about a call of a tool; returns the call's id."""
        self.service.mcp.choose(self.session_id, [WRITE.offered])
        self.start(NOTE)
        self.wait_until(lambda: self.last_turn.status == "asking")
        return self.last_turn.pending[0].call_id

    def end(self) -> None:
        """Ends what still runs, so that nothing is written any more."""
        if self.is_listed():
            self.service.turns.stop(self.session_id)
            ended(self).wait_for_folds()

    def begin_project(self) -> PlanView:
        """Makes the folder of a project, and a plan in the owner's memory of it."""
        folder = Path(self.service.projects.roots()[0]) / uuid.uuid4().hex
        folder.mkdir()
        self.root = str(folder)
        self.service.projects.workflow(self.root).open_plan("A plan")
        return self.plan

    @property
    def plan(self) -> PlanView:
        (plan,) = self.service.projects.get(self.root).plans
        return plan

    def stored(self) -> dict[str, object]:
        """All rows of the server, of whomever, and the owner's memory of the project."""
        rows: dict[str, object] = {name: self.rows(f"SELECT * FROM {name}") for name in TABLES}  # noqa: S608  # names of our own
        return {**rows, "plan": self.plan} if self.root else rows


def ended(chat: Chat) -> Chat:
    chat.wait_until(lambda: not chat.view.is_running)
    return chat


def handler(name: str) -> Callable[..., object]:
    """Returns a function that only its module hands over, and whose name is private therefore."""
    module, _, function = name.partition(".")
    (path,) = COMPONENTS.rglob(f"{module}.py")
    handed: Callable[..., object] = getattr(
        import_module(".".join(path.relative_to(COMPONENTS.parent).with_suffix("").parts)), function
    )
    return handed


def pressed(press: str, **about: str) -> Callable[[], object]:
    """What the script of the buttons beside a message tells."""
    return partial(handler("turn_buttons.press"), [{"press": press, "at": 1.0, **about}])


def sent(text: str, session_id: str) -> dict[str, object]:
    """What the script of the message field tells."""
    return {"id": "0" * 24, "text": text, "session": session_id, "is_new": False, "files": 0, **NEW}


Press = Callable[[], object]
Story = Callable[[About], Iterator[Press]]


class Act(NamedTuple):
    """A story and the functions that it shows.

    Attributes:
        refusal: The error shown for what is somebody else's, "" for none; None if the story is about nothing yet.
    """

    story: Story
    names: tuple[str, ...]
    refusal: str | None


ACTS: Final[list[Act]] = []


def shows(*names: str, refusal: str | None = "not_found") -> Callable[[Story], Story]:
    def add(story: Story) -> Story:
        ACTS.append(Act(story, names, refusal))
        return story

    return add


@shows("action.send_typed")
def send_without_the_script(about: About) -> Iterator[Press]:
    about.fields[page_state.ASK] = "Another message"
    yield action.send_typed
    assert ended(about).last_turn.user_text == "Another message"


@shows("action.take_files", refusal=None)
def attach(about: About) -> Iterator[Press]:
    file = SimpleNamespace(name="a.txt", getvalue=lambda: b"text")
    about.fields[page_state.FILES] = SimpleNamespace(files=[file])
    yield action.take_files


@shows("project_card._send", "action.send")
def send_a_suggestion(about: About) -> Iterator[Press]:
    yield partial(handler("project_card._send"), "Another message")
    assert ended(about).last_turn.user_text == "Another message"


@shows("action.send", refusal=None)
def begin_a_chat(about: About) -> Iterator[Press]:
    about.fields[page_state.OPEN] = None
    yield partial(action.send, "A first question")
    assert [turn.user_text for turn in about.new.turns] == ["A first question"]


@shows("browser.take_sent", "action.take")
def send(about: About) -> Iterator[Press]:
    yield partial(browser.take_sent, {"messages": [sent("Another message", about.session_id)], "presses": []})
    assert ended(about).last_turn.user_text == "Another message"


@shows("action.expect_message", refusal=None)
def queue_a_message(about: About) -> Iterator[Press]:
    later = {**sent("A later message", about.session_id), "waits": "turn"}
    yield partial(browser.take_sent, {"messages": [later], "presses": []})
    assert about.last_turn.user_text != "A later message"


@shows("browser.take_sent", "action.take")
def send_a_command(about: About) -> Iterator[Press]:
    yield partial(browser.take_sent, {"messages": [sent("/compact", about.session_id)], "presses": []})
    assert about.compactions == 1


@shows("setting_dialog._compact")
def compact(about: About) -> Iterator[Press]:
    yield partial(handler("setting_dialog._compact"), about.session_id)
    assert about.compactions == 1


@shows("record_dialog.take_back")
def restore(about: About) -> Iterator[Press]:
    record = about.service.folds.compact(about.session_id)
    yield partial(record_dialog.take_back, background.Change(about.session_id, record.id, is_compaction=True))
    assert about.compactions == 0


@shows()
def reset(about: About) -> Iterator[Press]:
    yield partial(browser.take_sent, {"messages": [sent("/reset", about.session_id)], "presses": []})
    assert about.reset_after == (TURNS,)


@shows("action.undo_reset")
def undo_reset(about: About) -> Iterator[Press]:
    about.service.folds.reset(about.session_id)
    yield partial(action.undo_reset, about.session_id)
    assert about.reset_after == ()


@shows("action.take_brought_instructions")
def use_what_a_file_brought(about: About) -> Iterator[Press]:
    about.service.instructions.keep_of_session(about.session_id, "Be brief.")
    (copied,) = about.service.sessions.import_session(about.service.sessions.export(about.session_id))
    yield partial(action.take_brought_instructions, copied, is_used=True)
    assert about.service.instructions.of_session(copied) == "Be brief."


@shows("action.stop")
def stop(about: About) -> Iterator[Press]:
    about.begin_turn()
    yield partial(action.stop, about.session_id)
    assert ended(about).last_turn.status == "stopped"


@shows("tool_menu._choose", "action.choose_tools")
def choose_a_tool(about: About) -> Iterator[Press]:
    about.fields["box"] = True
    yield partial(handler("tool_menu._choose"), "box", [WRITE.offered])
    assert about.service.mcp.choices(about.session_id).chosen == (WRITE.offered,)


@shows("action.start_server", refusal=None)
def start_a_server(_: About) -> Iterator[Press]:
    SERVERS.started.clear()
    yield partial(action.start_server, "notes")
    assert SERVERS.started == ["notes"]


@shows("action.answer_call")
def allow_a_call(about: About) -> Iterator[Press]:
    call_id = about.begin_to_ask()
    SERVERS.calls.clear()
    yield partial(action.answer_call, (about.session_id, TURNS + 1, 1), call_id, "once")
    assert (ended(about).last_turn.status, len(SERVERS.calls)) == ("finished", 1)


@shows("action.ask_again")
def take_back_a_permission(about: About) -> Iterator[Press]:
    call_id = about.begin_to_ask()
    about.service.mcp.answer(about.session_id, {call_id: "always"})
    ended(about)
    yield partial(action.ask_again, WRITE.offered)
    about.start(NOTE)
    about.wait_until(lambda: about.last_turn.status == "asking")


@shows("action.retry")
def retry(about: About) -> Iterator[Press]:
    about.begin_turn()
    about.service.turns.stop(about.session_id)
    ended(about)
    yield partial(action.retry, about.session_id)
    assert about.last_turn.attempt == 2


@shows("action.go_on")
def go_on(about: About) -> Iterator[Press]:
    yield partial(action.go_on, "계속")
    assert ended(about).last_turn.user_text == "계속"


@shows("action.regenerate")
def regenerate(about: About) -> Iterator[Press]:
    yield partial(action.regenerate, about.session_id)
    assert ended(about).last_turn.attempt == 2


@shows("turn_buttons._act", "action.choose_attempt")
def choose_an_answer(about: About) -> Iterator[Press]:
    about.regenerate()
    about.wait_for_folds()
    yield pressed("choose", session=about.session_id, turn=str(TURNS), to="1")
    assert about.last_turn.attempt == 1


@shows("turn_buttons._act", "action.regenerate_in_branch")
def regenerate_in_a_branch(about: About) -> Iterator[Press]:
    yield pressed("branch", session=about.session_id, turn="2")
    assert [turn.user_text for turn in about.new.turns] == [turn.user_text for turn in about.turns[:2]]


@shows("turn_buttons._edit", "action.edit")
def edit_a_question(about: About) -> Iterator[Press]:
    about.fields["edited"] = "Another question"
    yield partial(handler("turn_buttons._edit"), about.session_id, 2, "edited", "edit")
    assert [turn.user_text for turn in about.new.turns] == [about.turns[0].user_text, "Another question"]


@shows("turn_buttons._edit", "action.edit")
def edit_an_answer(about: About) -> Iterator[Press]:
    about.fields["edited"] = "고친 답변"
    yield partial(handler("turn_buttons._edit"), about.session_id, TURNS, "edited", "edit_answer")
    assert (about.last_turn.answer_text, about.last_turn.attempts) == ("고친 답변", (1, 2))


@shows("action.fork")
def fork(about: About) -> Iterator[Press]:
    yield partial(action.fork, about.session_id, after_turn=3)
    assert about.new.view.forked_from == about.session_id


@shows("turn_buttons._act", "action.pin_message")
def pin_a_message(about: About) -> Iterator[Press]:
    message = about.last_turn.answer_message_id
    yield pressed("pin", message=message, wanted="true")
    assert about.pinned == [message]


@shows("turn_buttons._act", "action.pin_message")
def unpin_a_message(about: About) -> Iterator[Press]:
    message = about.last_turn.answer_message_id
    about.service.folds.pin(about.session_id, message)
    yield pressed("pin", message=message, wanted="false")
    assert about.pinned == []


@shows("action.open_example", refusal=None)
def open_the_example(about: About) -> Iterator[Press]:
    yield action.open_example
    assert len(about.new.turns) == 7


@shows("setting_dialog.take_file", "action.import_sessions", refusal=None)
def open_a_file(about: About) -> Iterator[Press]:
    text = "\n".join(about.service.sessions.export(about.session_id))
    yield partial(setting_dialog.take_file, {"text": text})
    assert about.new.turns == about.turns


@shows("action.rename")
def rename(about: About) -> Iterator[Press]:
    about.fields[page_state.NEW_TITLE] = "A new title"
    yield partial(action.rename, about.session_id)
    assert about.view.title == "A new title"


@shows("action.pin")
def put_first(about: About) -> Iterator[Press]:
    yield partial(action.pin, about.session_id, is_pinned=True)
    assert about.view.is_pinned


@shows("action.delete", refusal="")
def delete(about: About) -> Iterator[Press]:
    yield partial(action.delete, [about.session_id])
    assert not about.is_listed()
    assert about.opened is None


@shows("action.undo_delete", refusal="")
def undo_delete(about: About) -> Iterator[Press]:
    about.service.sessions.delete_many([about.session_id])
    yield partial(action.undo_delete, [about.session_id])
    assert about.is_listed()


@shows("record_dialog.edit")
def edit_a_summary(about: About) -> Iterator[Press]:
    target = Target(about.session_id, about.record)
    about.fields[target.key("text")] = "The move is on 3 October."
    yield partial(record_dialog.edit, target)
    assert about.record.summary == "The move is on 3 October."


@shows("record_dialog.add_fact")
def add_a_missing_fact(about: About) -> Iterator[Press]:
    bare = about.service.folds.edit(about.session_id, about.record.id, "The move.")
    fact = bare.missing_facts[0]
    asked = {"session": about.session_id, "record": bare.id, "fact": fact}
    yield partial(record_dialog.add_fact, asked)
    assert fact in about.record.kept_facts


@shows("summary_panel.strike")
def strike_a_line(about: About) -> Iterator[Press]:
    line = about.service.folds.ledger(about.session_id).lines[0]
    yield partial(summary_panel.strike, {"session": about.session_id, "line": line.id, "wanted": "true"})
    assert about.service.folds.ledger(about.session_id).lines[0].state == "struck"


@shows("record_dialog.use_version")
def use_a_version(about: About) -> Iterator[Press]:
    first = about.record
    edited = about.service.folds.edit(about.session_id, first.id, "The move is on 3 October.")
    yield partial(record_dialog.use_version, Target(about.session_id, edited), first)
    assert about.record.id == first.id


@shows("record_dialog.take_back")
def take_a_change_back(about: About) -> Iterator[Press]:
    first = about.record
    about.service.folds.edit(about.session_id, first.id, "The move is on 3 October.")
    yield partial(record_dialog.take_back, background.Change(about.session_id, first.id, is_compaction=False))
    assert about.record.id == first.id


@shows("record_dialog.remake")
def remake(about: About) -> Iterator[Press]:
    target = Target(about.session_id, about.record)
    about.fields |= {target.key("rate"): 0.2, target.key("wish"): "The prices"}
    yield partial(record_dialog.remake, target)
    assert (about.record.version, about.record.wish) == (2, "The prices")


@shows("record_dialog.undo_fold")
def undo_a_fold(about: About) -> Iterator[Press]:
    yield partial(record_dialog.undo_fold, about.session_id, about.record)
    assert about.record.kind == "verbatim"


@shows("record_dialog.fold_again")
def fold_again(about: About) -> Iterator[Press]:
    quoted = about.service.folds.undo(about.session_id, about.record.id)
    assert quoted is not None
    yield partial(record_dialog.fold_again, about.session_id, quoted)
    assert (about.record.version, about.record.kind) == (3, "interval")


@shows("program_section._make", refusal=None)
def let_a_program_in(about: About) -> Iterator[Press]:
    about.fields |= {"program_name": f"editor {about.session_id}"[:32], "program_tools": True, "program_personal": True}
    yield handler("program_section._make")
    assert about.programs[-1] == about.fields["program_name"]


@shows("program_section._withdraw", refusal="")
def withdraw_a_program(about: About) -> Iterator[Press]:
    made = about.service.programs.admit(about.session_id)
    yield partial(handler("program_section._withdraw"), made.shown.id)
    assert about.session_id not in about.programs


@shows("instruction_section._save")
def instruct(about: About) -> Iterator[Press]:
    about.fields[f"instructions_{about.session_id}"] = "Be brief."
    yield partial(handler("instruction_section._save"), about.session_id)
    assert about.service.instructions.of_session(about.session_id) == "Be brief."


@shows("instruction_section._keep", refusal=None)
def keep_a_preset(about: About) -> Iterator[Press]:
    about.fields |= {"preset_name": "Brief", "field": "Be brief."}
    yield partial(handler("instruction_section._keep"), "field")
    assert about.service.instructions.presets()["Brief"] == "Be brief."


@shows("instruction_section._forget", refusal="")
def forget_a_preset(about: About) -> Iterator[Press]:
    about.service.instructions.keep_preset("Short", "Be brief.")
    yield partial(handler("instruction_section._forget"), "Short")
    assert "Short" not in about.service.instructions.presets()


@shows("action.sign_out_everywhere", refusal="")
def sign_out_everywhere(about: About) -> Iterator[Press]:
    owner, phone = owner_of(CLAIMS["iss"], CLAIMS["sub"]), sign_in_of(about.session_id)
    about.visitor.for_owner(owner, sign_in=phone)
    yield action.sign_out_everywhere
    with pytest.raises(SignInError):
        about.visitor.for_owner(owner, sign_in=phone)


@shows("project_form.change")
def complete_a_plan(about: About) -> Iterator[Press]:
    plan = about.begin_project()
    yield partial(project_form.change, "panel", lambda projects: projects.workflow(about.root).complete_plan(plan.id))
    assert about.plan.is_done


@shows("project_form.save")
def rename_a_plan(about: About) -> Iterator[Press]:
    plan = about.begin_project()
    about.fields["title"] = "Another plan"

    def rename(projects: Projects, typed: Sequence[str]) -> None:
        projects.workflow(about.root).rename(plan.id, *typed)

    yield partial(project_form.save, "panel", ("title",), rename)
    assert about.plan.title == "Another plan"


class Site(NamedTuple):
    """The service that a server with a sign-in opened, and that of a visitor; `lines` are those of a chat."""

    opened: ChatService
    visitor: ChatService
    lines: tuple[str, ...]

    def new(self, service: ChatService) -> About:
        """Gives an owner a chat in which turns were folded."""
        (session_id,) = service.sessions.import_session(self.lines)
        return About(service, session_id, self.visitor)


def responded(body: Body) -> Reply:
    asked = asked_in(body)
    if NOTE in asked and body["messages"][-1]["role"] == "user":
        return tools(ScriptedCall(WRITE.offered, "{}", "call-1"))
    return hang() if WAIT in asked else answer_body(body)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("projects")
    with FakeOpenAI() as endpoint:
        endpoint.respond_with(responded)
        settings = settings_maker(tmp_path_factory.mktemp("server") / "data", endpoint.url)
        with chat_opener(settings) as open_chat:
            chat = open_chat(project_roots=(root,), mcp=SERVERS, **PROVIDER)
            chat.ask(1, TURNS)
            visitor = chat.service.for_owner(owner_of(CLAIMS["iss"], CLAIMS["sub"]))
            service_provider.provide(chat.service)
            yield Site(chat.service, visitor, chat.service.sessions.export(chat.session_id))
            service_provider.provide(None)


def run() -> None:
    """The script of a page: what was pressed, and the end of what it has begun."""
    import streamlit as st  # noqa: PLC0415  # the script has nothing of this module

    from component import background  # noqa: PLC0415  # nor this

    st.session_state["press"]()
    while background.is_pending():
        background._end()  # noqa: SLF001  # as a part of the page does that comes again and again
    st.session_state["state"] = st.session_state.to_dict()


def visit(about: About, press: Press, *, hours: float = 1) -> list[str]:
    """Has the visitor press something, whose sign-in ends in so many hours; returns the errors that he is told."""
    page = as_tab(AppTest.from_function(run, default_timeout=60))
    page.user = {**CLAIMS, "iat": time.time(), "exp": time.time() + hours * 3600}
    for name, value in {page_state.LANGUAGE: "ko", "press": press, **about.fields}.items():
        page.session_state[name] = value
    page.run()
    assert not page.exception
    state = page.session_state["state"]
    about.opened = state[page_state.OPEN]
    state_values = [one for value in state.values() for one in (value if isinstance(value, tuple) else (value,))]
    return [error.code for error in state_values if isinstance(error, TurnfoldError)]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.story.__name__)
def test_action_works_for_its_owner_and_changes_nothing_for_anybody_else(site: Site, act: Act) -> None:
    about = site.new(site.visitor)
    others = site.opened.sessions.list(), site.opened.programs.list()
    story = act.story(about)
    assert visit(about, next(story)) == []
    assert next(story, None) is None
    assert (site.opened.sessions.list(), site.opened.programs.list()) == others
    about.end()

    about = site.new(site.opened)
    press = next(act.story(about))
    before = about.stored()
    assert visit(about, press, hours=-1) == ["sign_in"]
    if act.refusal is not None:
        assert visit(about, press) == [act.refusal] * bool(act.refusal)
    assert about.stored() == before
    about.end()


def name_of(node: ast.expr, module: str) -> str:
    match node:
        case ast.Name(id=function):
            return f"{module}.{function}"
        case ast.Attribute(value=ast.Name(id=of), attr=function):
            return f"{of}.{function}"
    return ""


def called_in(tree: ast.AST) -> set[ast.expr]:
    return {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_every_action_that_asks_the_service_has_a_story() -> None:
    calls: dict[str, set[str]] = {}
    handed_over: set[str] = set()  # to a widget, to a menu, to a script: named without being called
    for path in COMPONENTS.rglob("*.py"):
        if path.stem == "security":
            continue  # of requests and sockets; the page hands nothing to it
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {node for node in ast.walk(tree) if isinstance(node, ast.expr)} - called_in(tree)
        handed_over |= {name_of(node, path.stem) for node in named}
        for function in tree.body:
            if isinstance(function, ast.FunctionDef):
                calls[f"{path.stem}.{function.name}"] = {name_of(node, path.stem) for node in called_in(function)}
    ways = found = {"service_provider.current", "service_provider.opened"}
    asking: set[str] = set()
    while found:
        # Also what draws again asks the service, but only for what it draws.
        found = {name for name, called in calls.items() if called & (ways | asking)} - asking
        found = {name for name in found if not name.startswith(("delivery.", "redraw.", "picture."))}
        asking |= found
    public = {name for name in calls if name.startswith("action.") and not name.startswith("action._")}
    assert {name for act in ACTS for name in act.names} == asking & (handed_over | public) - ways
