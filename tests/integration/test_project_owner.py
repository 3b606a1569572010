from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock

from graph.error import PathError, ProjectBusyError, ProjectError, TurnfoldError
from graph.project.context_manager import ContextManager
from graph.project.project_memory import ProjectMemory
from graph.project_view import ProjectView
from graph.root_folder import RootFolders
from graph.service import ChatService
from graph.service.projects import Projects
from tests.fake.memory_call import MEMORY_CALLS, MemoryIds
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW
from tests.fake.rooted import Rooted
from tests.fake.sign_in import PROVIDER
from tests.integration.test_project_folder import mode


class Shop(NamedTuple):
    """One project folder of users who sign in: on one server, or each on a server of their own."""

    root: Path
    first: ChatService
    second: ChatService

    def folder(self, owner: str) -> Path:
        return self.root / ".ai-brain" / "user" / owner

    def prepare(self, owner: str) -> MemoryIds:
        """Has the seed's memory kept for an owner, and returns its ids."""
        ProjectMemory(RootFolders([self.root]), self.root, owner)
        for name, value in (("context.json", SEED_CONTEXT), ("workflow.json", SEED_WORKFLOW)):
            (self.folder(owner) / name).write_text(json.dumps(value), encoding="utf-8")
        view = self.first.for_owner(owner).projects.record_decision(str(self.root), f"{owner}의 결정")
        (plan,) = view.plans
        return MemoryIds(plan.id, plan.tasks[0].id, view.decisions[-1].id, view.snapshots[0].name)

    def files(self, owner: str) -> dict[str, bytes]:
        found = {str(path.relative_to(self.folder(owner))): path for path in self.folder(owner).rglob("*")}
        return {name: path.read_bytes() for name, path in found.items() if path.is_file()}


@pytest.fixture(scope="module", params=["on one server", "on two servers"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    root = tmp_path_factory.mktemp("shop")
    with chat_opener(settings_maker(tmp_path_factory.mktemp("owners") / "data", "http://127.0.0.1:9/v1")) as open_chat:
        first = open_chat(project_roots=(root,), **PROVIDER).service
        is_one = request.param == "on one server"
        yield Shop(root, first, first if is_one else open_chat(project_roots=(root,), **PROVIDER).service)


def answer(projects: Projects, root: Path, name: str, ids: MemoryIds) -> ProjectView | str:
    try:
        return MEMORY_CALLS[name](projects, str(root), ids)
    except TurnfoldError as error:
        said = str(error)
        for each in (ids.plan, ids.task, ids.decision, ids.snapshot):
            said = said.replace(each, "<id>")
        return said


def test_of_every_method_it_is_tried_whose_memory_it_reads_and_changes() -> None:
    public = {name for name in dir(Projects) if not name.startswith("_")}
    assert public - {"roots", "rules", "agree"} == MEMORY_CALLS.keys()


@pytest.mark.parametrize("name", MEMORY_CALLS)
def test_a_method_reads_and_changes_the_callers_own_memory(shop: Shop, name: str) -> None:
    owner = f"own-{name}".replace("_", "-")
    ids = shop.prepare(owner)
    projects = shop.second.for_owner(owner).projects
    before = projects.get(str(shop.root))
    view = MEMORY_CALLS[name](projects, str(shop.root), ids)
    assert projects.get(str(shop.root)) == view
    assert (view == before) == (name in {"get", "switch_plan", "start_task"})


@pytest.mark.parametrize("name", MEMORY_CALLS)
def test_what_is_anothers_is_answered_as_what_is_not_there(shop: Shop, name: str) -> None:
    plain = name.replace("_", "-")
    ids = shop.prepare(f"mine-{plain}")
    before = shop.files(f"mine-{plain}")
    unknown = answer(shop.second.for_owner(f"asks-{plain}").projects, shop.root, name, MemoryIds())
    others = answer(shop.second.for_owner(f"tries-{plain}").projects, shop.root, name, ids)
    assert others == unknown
    assert shop.files(f"mine-{plain}") == before


@pytest.mark.parametrize("owner", ["이웃", "Kim", "../../..", "a/b", ".", "x" * 64, "🙂\u202e"])
def test_an_owner_of_any_name_has_one_private_folder_of_his_own(shop: Shop, owner: str) -> None:
    root = str(shop.root)
    kept = shop.first.for_owner(owner).projects.record_decision(root, "포트는 8501").decisions
    assert shop.second.for_owner(owner).projects.get(root).decisions == kept
    others = shop.root / ".ai-brain" / "user"
    assert {mode(path) for path in (others, *others.iterdir())} == {0o700}
    assert all((folder / ".lock").is_file() for folder in others.iterdir())
    assert {path.name for path in shop.root.iterdir()} == {".ai-brain"}
    assert not (shop.root / ".ai-brain" / "context.json").exists()


def test_a_damaged_memory_and_a_held_lock_are_their_owners_alone(shop: Shop) -> None:
    root = str(shop.root)
    theirs = shop.second.for_owner("sound").projects
    theirs.record_decision(root, "포트는 8501")
    shop.prepare("damaged")
    (shop.folder("damaged") / "context.json").write_text("{", encoding="utf-8")
    damaged = shop.first.for_owner("damaged").projects
    assert damaged.get(root).damage.startswith("context.json")
    with FileLock(shop.folder("damaged") / ".lock"):
        memory = ProjectMemory(RootFolders([shop.root]), shop.root, "sound", wait_seconds=0)
        assert ContextManager(memory).data.memory.last_decisions == ("포트는 8501",)
        with pytest.raises(ProjectBusyError):
            ProjectMemory(RootFolders([shop.root]), shop.root, "damaged", wait_seconds=0)
    assert damaged.restore(root, damaged.get(root).snapshots[0].name).damage == ""
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


def test_whether_another_owner_has_a_memory_cannot_be_asked_as_a_file(shop: Shop) -> None:
    shop.prepare("asked-about")
    for path in (".ai-brain", ".ai-brain/user/asked-about", ".ai-brain/user/nobody", "docs/../.ai-brain/user"):
        with pytest.raises(PathError):
            shop.second.for_owner("asker").projects.open_file(str(shop.root), path)


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
    service.for_owner("phone").projects.record_decision(rooted.root, "포트는 8501")
    assert [each.text for each in service.projects.get(rooted.root).decisions] == ["포트는 8501"]
    assert rooted.project.stored()["memory"]["last_decisions"] == ["포트는 8501"]
    assert not (rooted.project.brain / "user").exists()


def test_what_was_noted_before_there_was_a_sign_in_stays_with_the_servers_own_owner(
    rooted: Rooted, open_chat: OpenChat
) -> None:
    rooted.projects().record_decision(rooted.root, "포트는 8501")
    service = open_chat(project_roots=(rooted.project.allowed,), **PROVIDER).service
    assert [each.text for each in service.projects.get(rooted.root).decisions] == ["포트는 8501"]
    assert service.for_owner("guest").projects.get(rooted.root).decisions == ()
