"""With a sign-in each owner has a project memory of his own, in a folder of his own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock

from graph.file.root_folder import RootFolders
from graph.model.factory import ChatModels
from graph.model.spending import Spending
from graph.project.context_manager import ContextManager
from graph.project.project_memory import ProjectMemory
from graph.server.identity import owner_of
from graph.server.metrics import Metrics
from graph.service import ChatService
from graph.value.error import PathError, ProjectBusyError, ProjectError
from graph.worker.project_turns import RollUps
from tests.fake.chat import Chat, question
from tests.fake.front import fronts, memory_of
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.project import SEED_CONTEXT
from tests.fake.rooted import Rooted, wait_for_notes
from tests.fake.sign_in import PROVIDER
from tests.fake.store import StoreSet
from tests.integration.test_project_folder import mode

KIM, LEE = (owner_of(PROVIDER["oidc_issuer"], subject) for subject in ("kim", "lee"))


@pytest.fixture
def service(rooted: Rooted) -> ChatService:
    return rooted.open(**PROVIDER).service


def in_project(service: ChatService, rooted: Rooted, owner: str, said: str) -> Chat:
    """Says something in a new chat of this owner, in the project."""
    chat = Chat(service.for_owner(owner))
    chat.say(said, options=rooted.options())
    assert chat.last_turn.status == "finished"
    wait_for_notes(chat)
    return chat


def test_a_chat_begins_with_what_was_noted_in_its_owners_chats_alone(
    rooted: Rooted, service: ChatService, server: FakeOpenAI
) -> None:
    decision = {"text": "포트는 9090", "said": "포트는 9090으로"}
    call = ScriptedCall("record_decision", json.dumps(decision), "call-1")
    server.script(tools(call), text("기록했습니다."), to="9090")
    in_project(service, rooted, KIM, "좋아요, 포트는 9090으로 하죠.")
    in_project(service, rooted, LEE, "저는 처음 왔습니다.")
    in_project(service, rooted, KIM, "다시 왔습니다.")
    first, lees, kims = (memory_of(body) for body in server.bodies("chat")[-3:])
    assert "9090" in kims
    assert "기록했습니다." in kims
    assert "9090" not in first + lees
    assert "처음 왔습니다" not in "".join(fronts(server))
    dialogs = [ContextManager(rooted.project.memory(owner)).data.conversation.recent_window for owner in (KIM, LEE)]
    assert [[message.role for message in dialog] for dialog in dialogs] == [
        ["user", "assistant"] * 2,
        ["user", "assistant"],
    ]
    assert not (rooted.project.brain / "context.json").exists()


def test_a_program_of_the_servers_own_owner_works_with_the_memory_in_the_folder_itself(
    rooted: Rooted, service: ChatService
) -> None:
    in_project(service, rooted, service.settings.turnfold_owner, "프로그램이 한 말")
    assert rooted.noted()[0] == ("user", "프로그램이 한 말")
    assert not (rooted.project.brain / "user").exists()


def test_a_deleted_chat_takes_nothing_from_the_memory_of_others(rooted: Rooted, service: ChatService) -> None:
    chat = in_project(service, rooted, KIM, "지울 대화")
    in_project(service, rooted, LEE, "남을 대화")
    chat.service.sessions.delete(chat.session_id)
    wait_for_notes(chat)
    (said, _) = ContextManager(rooted.project.memory(LEE)).data.conversation.recent_window
    assert said.content == "남을 대화"


def test_each_owners_dialog_is_summarised_into_his_own_summary(
    rooted: Rooted, service: ChatService, server: FakeOpenAI
) -> None:
    made = {KIM: "서버를 옮기기로 했습니다.", LEE: "포트를 바꾸기로 했습니다."}
    for owner, summary in made.items():
        server.script(text(summary), kind="summary")
        server.script(text("짧은 답"), text("".join(f"긴 답의 {part}번째 말입니다. " for part in range(235))))
        chat = in_project(service, rooted, owner, question(1))
        chat.say(question(2))
        wait_for_notes(chat)
    retained = {owner: ContextManager(rooted.project.memory(owner)).data.conversation.running_summary for owner in made}
    assert retained == made


def test_a_summary_that_waits_for_one_owner_does_not_do_for_another(
    endpoint_models: ChatModels, stores: StoreSet
) -> None:
    roll_ups = RollUps(endpoint_models, Spending(stores.use, Metrics()), deadline_seconds=20)
    may_go_on, is_done, made = threading.Event(), threading.Event(), list[str]()
    steps: list[tuple[str, Callable[[], object]]] = [
        ("first", partial(may_go_on.wait, 20)),
        ("kim", partial(made.append, "kim")),
        ("lee", partial(made.append, "lee")),
        ("kim", partial(made.append, "kim again")),
        ("last", is_done.set),
    ]
    for owner, step in steps:
        roll_ups.soon((owner, "/srv/shop"), step)
    may_go_on.set()
    assert is_done.wait(20)
    roll_ups.close()
    assert made == ["kim", "lee"]


def test_an_owner_of_any_name_has_one_private_folder_of_his_own(rooted: Rooted, service: ChatService) -> None:
    owners = ("이웃", "Kim", "../../..", "a/b", ".", "x" * 64, "🙂\u202e")
    for owner in owners:
        service.for_owner(owner).projects.context(rooted.root).record_decision(f"{owner}의 결정")
    for owner in owners:
        (decision,) = service.for_owner(owner).projects.get(rooted.root).decisions
        assert decision.text == f"{owner}의 결정"
    folders = rooted.project.brain / "user"
    assert len(list(folders.iterdir())) == len(owners)
    assert {mode(path) for path in (folders, *folders.iterdir())} == {0o700}
    assert all((folder / ".lock").is_file() for folder in folders.iterdir())
    assert {path.name for path in rooted.project.root.iterdir()} == {".ai-brain"}
    assert not (rooted.project.brain / "context.json").exists()


def test_a_damaged_memory_and_a_held_lock_are_their_owners_alone(rooted: Rooted, service: ChatService) -> None:
    root, folder = rooted.root, rooted.project.root
    theirs, damaged = (service.for_owner(owner).projects for owner in ("sound", "damaged"))
    theirs.context(root).record_decision("포트는 8501")
    ProjectMemory(RootFolders([rooted.project.allowed]), folder, "damaged")
    brain = rooted.project.brain / "user" / "damaged"
    (brain / "context.json").write_text(json.dumps(SEED_CONTEXT), encoding="utf-8")
    damaged.context(root).record_decision("포트는 8502")
    (brain / "context.json").write_text("{", encoding="utf-8")
    assert damaged.get(root).damage.startswith("context.json")
    roots = RootFolders([rooted.project.allowed])
    with FileLock(brain / ".lock"):
        memory = ProjectMemory(roots, folder, "sound", wait_seconds=0)
        assert ContextManager(memory).data.memory.last_decisions == ("포트는 8501",)
        with pytest.raises(ProjectBusyError):
            ProjectMemory(roots, folder, "damaged", wait_seconds=0)
    damaged.restore(root, damaged.get(root).snapshots[0].name)
    assert damaged.get(root).damage == ""
    assert [each.text for each in theirs.get(root).decisions] == ["포트는 8501"]


@pytest.mark.parametrize("linked", ["user", "user/guest"])
def test_a_link_in_the_place_of_an_owners_folder_is_not_followed(tmp_path: Path, linked: str) -> None:
    root = tmp_path / "shop"
    target = root / "notes" / "guest"
    target.mkdir(parents=True)
    link = root / ".ai-brain" / linked
    link.parent.mkdir(parents=True)
    link.symlink_to(target if linked == "user/guest" else target.parent)
    with pytest.raises(ProjectError):
        ProjectMemory(RootFolders([tmp_path]), root, "guest")
    assert list(target.iterdir()) == []


def test_whether_another_owner_has_a_memory_cannot_be_asked_as_a_file(rooted: Rooted, service: ChatService) -> None:
    service.for_owner("asked-about").projects.context(rooted.root).record_decision("포트는 8501")
    for path in (".ai-brain", ".ai-brain/user/asked-about", ".ai-brain/user/nobody", "docs/../.ai-brain/user"):
        with pytest.raises(PathError):
            service.for_owner("asker").projects.context(rooted.root).note_open_files([path])


def test_a_memory_is_listed_for_its_owner_alone_and_looking_makes_none(rooted: Rooted, service: ChatService) -> None:
    kim, lee = (service.for_owner(owner).projects for owner in (KIM, LEE))
    (rooted.project.allowed / "other").mkdir()
    assert (kim.noted(), kim.has_memory(rooted.root)) == ((), False)
    assert not rooted.project.brain.exists()
    kim.context(rooted.root).record_decision("포트는 8501")
    assert (kim.noted(), lee.noted(), service.projects.noted()) == ((rooted.root,), (), ())
    # A folder that another owner has is no different from one that nobody has.
    for owner in (KIM, "nobody"):
        assert not lee.has_memory(str(rooted.project.brain / "user" / owner))
    with pytest.raises(PathError):
        lee.has_memory(str(rooted.outside))
    assert [path.name for path in (rooted.project.brain / "user").iterdir()] == [KIM]


def test_a_memory_behind_a_link_cannot_be_asked_for_as_a_file_either(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    (root / "notes").mkdir(parents=True)
    (root / ".ai-brain").symlink_to("notes")
    context = ContextManager(ProjectMemory(RootFolders([tmp_path]), root, "guest"))
    for path in (".ai-brain/user/guest", "notes/user/nobody"):
        with pytest.raises(PathError):
            context.note_open_files([path])
    assert context.note_open_files(["notes.md"]) == ("notes.md",)


def test_many_owners_who_begin_at_once_ignore_the_memory_in_git_once(tmp_path: Path) -> None:
    for number in range(20):
        root = tmp_path / f"shop-{number}"
        (root / ".git").mkdir(parents=True)
        begin = threading.Barrier(8)

        def enter(owner: str, root: Path = root, begin: threading.Barrier = begin) -> None:
            begin.wait()
            ProjectMemory(RootFolders([tmp_path]), root, owner)

        owners = [threading.Thread(target=enter, args=(f"owner-{each}",)) for each in range(8)]
        for each in owners:
            each.start()
        for each in owners:
            each.join()
        assert (root / ".gitignore").read_text(encoding="utf-8") == ".ai-brain/\n"


def test_without_a_sign_in_all_owners_of_the_server_share_the_projects_memory(rooted: Rooted) -> None:
    service = rooted.open().service
    service.for_owner("phone").projects.context(rooted.root).record_decision("포트는 8501")
    assert [each.text for each in service.projects.get(rooted.root).decisions] == ["포트는 8501"]
    assert rooted.project.stored()["memory"]["last_decisions"] == ["포트는 8501"]
    assert not (rooted.project.brain / "user").exists()


def test_what_was_noted_before_there_was_a_sign_in_stays_with_the_servers_own_owner(
    rooted: Rooted, open_chat: OpenChat
) -> None:
    rooted.projects().context(rooted.root).record_decision("포트는 8501")
    service = open_chat(project_roots=(rooted.project.allowed,), **PROVIDER).service
    assert [each.text for each in service.projects.get(rooted.root).decisions] == ["포트는 8501"]
    assert service.for_owner("guest").projects.get(rooted.root).decisions == ()
