from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from graph.core.context_block import ContextRequest
from graph.error import InternalError, PathError, ProjectBusyError, ProjectDamagedError, ProjectError
from graph.event import TurnFinished
from graph.layer.context_registry import ContextRegistry
from graph.metrics import Metrics
from graph.model.factory import open_models
from graph.root_folder import RootFolders
from graph.settings import Settings
from graph.spending import Spending
from graph.view import TurnOptions
from graph.worker.project_turns import ProjectTurns
from tests.fake.chat import question
from tests.fake.front import front_of, fronts, memory_of
from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted, wait_for_notes
from tests.fake.store import StoreSet


def test_a_memory_that_another_process_has_locked_holds_up_nothing(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.project.workflow().open_task("어제의 일")
    chat = rooted.open()
    with rooted.locked():
        assert isinstance(chat.say(question(1), options=rooted.options())[-1], TurnFinished)
        assert isinstance(chat.view.project_problem, ProjectBusyError)
    wait_for_notes(chat)
    chat.say(question(2))
    assert chat.view.project_problem is None
    assert ["어제의 일" in memory_of(body) for body in server.bodies("chat")] == [False, True]


def test_a_damaged_memory_holds_up_nothing_and_comes_back_when_it_is_restored(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    rooted.project.workflow().open_task("어제의 일")
    whole = (rooted.project.brain / "workflow.json").read_bytes()
    (rooted.project.brain / "workflow.json").write_bytes(b'{"plans": 1}')
    chat = rooted.enter()
    wait_for_notes(chat)
    assert isinstance(chat.view.project_problem, ProjectDamagedError)
    assert (rooted.project.brain / "workflow.json").read_bytes() == b'{"plans": 1}'
    (rooted.project.brain / "workflow.json").write_bytes(whole)
    chat.say(question(2))
    wait_for_notes(chat)
    assert chat.view.project_problem is None
    assert "어제의 일" in memory_of(server.bodies("chat")[-1])


def test_a_folder_that_vanished_holds_up_nothing_and_keeps_the_front(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.write("AGENTS.md", "네 칸 들여쓰기")
    chat = rooted.open()
    rooted.agree(chat)
    chat.say(question(1), options=rooted.options())
    wait_for_notes(chat)
    shutil.rmtree(rooted.root)
    assert isinstance(chat.say(question(2))[-1], TurnFinished)
    wait_for_notes(chat)
    problem = chat.view.project_problem
    assert isinstance(problem, PathError)
    assert problem.reason == "vanished"
    assert len(set(fronts(server))) == 1
    assert not Path(rooted.root).exists()


def test_a_folder_that_cannot_be_written_holds_up_nothing(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(project_roots=("/proc/sys/kernel",))  # where not even root can make a folder
    assert isinstance(chat.say(question(1), options=TurnOptions(project_root="/proc/sys/kernel"))[-1], TurnFinished)
    wait_for_notes(chat)
    assert isinstance(chat.view.project_problem, ProjectError)
    assert front_of(server.bodies("chat")[0])
    assert memory_of(server.bodies("chat")[0]) == ""


def test_a_folder_that_is_allowed_no_more_is_neither_read_nor_sent(
    rooted: Rooted, server: FakeOpenAI, open_chat: OpenChat
) -> None:
    rooted.write("AGENTS.md", "네 칸 들여쓰기")
    with rooted.open() as chat:
        rooted.agree(chat)
        chat.say(question(1), options=rooted.options())
    before = rooted.noted()
    elsewhere = open_chat(chat.session_id, project_roots=(rooted.outside,))
    assert isinstance(elsewhere.say(question(2))[-1], TurnFinished)
    wait_for_notes(elsewhere)
    assert [bool(front) for front in fronts(server)] == [True, False]
    assert isinstance(elsewhere.view.project_problem, PathError)
    assert rooted.noted() == before


def test_a_folder_outside_is_refused_before_anything_is_stored_and_the_chat_goes_on(rooted: Rooted) -> None:
    chat = rooted.open()
    for path in (rooted.outside, rooted.project.allowed / ".." / "outside"):
        with pytest.raises(PathError):
            chat.say(question(1), options=TurnOptions(project_root=str(path)))
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert len(chat.turns) == 1
    assert list(rooted.outside.iterdir()) == []


def test_an_agreement_that_cannot_be_read_counts_as_none(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.write("AGENTS.md", "네 칸 들여쓰기")
    chat = rooted.open()
    rooted.agree(chat)
    chat.change("""UPDATE rule_agreement SET rules = '{"files": 1}'""")
    assert isinstance(chat.say(question(1), options=rooted.options())[-1], TurnFinished)
    assert "네 칸" not in front_of(server.bodies("chat")[0])
    assert "+네 칸 들여쓰기" in chat.service.projects.rules(rooted.root).difference
    rooted.agree(chat)
    chat.say(question(2))
    assert "네 칸" in front_of(server.bodies("chat")[1])


class BrokenRoots(RootFolders):
    """Has a defect wherever a folder is looked for."""

    def resolve(self, path: str | Path) -> Path:
        raise ZeroDivisionError(path)


def test_a_defect_of_the_memory_is_told_and_holds_up_nothing(tmp_path: Path, stores: StoreSet) -> None:
    registry = ContextRegistry(tmp_path, lambda *_: "", directory=tmp_path)
    settings = Settings(_env_file=None)  # type: ignore[call-arg]  # the base class's own argument
    with open_models(settings) as models:
        turns = ProjectTurns(
            BrokenRoots([tmp_path]),
            registry,
            stores.agreements,
            models,
            Spending(stores.use, Metrics()),
            settings,
            clock=stores.clock,
        )
        with pytest.raises(InternalError):
            turns.primed("kim", str(tmp_path), "ko")
        said = HumanMessage("안녕", id="m1")
        request = ContextRequest("s", "kim", str(tmp_path), True, "ko", 1, said, {})  # noqa: FBT003  # its only flag
        turns.begin(request)
        turns.close()
        assert isinstance(turns.problem("s"), InternalError)
