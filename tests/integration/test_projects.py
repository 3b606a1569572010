"""What the service shows of a project and changes in it; each operation's own rules are in `test_project_memory`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from graph.service.projects import Projects
from graph.value.error import InputError, NotFoundError, PathError
from graph.value.view import TurnOptions
from tests.fake.chat import Chat
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW
from tests.fake.rooted import Rooted

OF_A_ROOT: dict[str, Callable[[Projects, str], object]] = {
    "workflow": lambda projects, root: projects.workflow(root),
    "context": lambda projects, root: projects.context(root),
    "restore": lambda projects, root: projects.restore(root, "x"),
    "start_over": lambda projects, root: projects.start_over(root),
    "get": lambda projects, root: projects.get(root),
    "rules": lambda projects, root: projects.rules(root),
    "agree": lambda projects, root: projects.agree(root, "x"),
}


@pytest.fixture
def rooted(project_folder: Rooted) -> Rooted:
    return project_folder


def test_without_allowed_folders_there_is_no_project(chat: Chat, tmp_path: Path) -> None:
    projects = chat.service.projects
    assert projects.roots() == ()
    with pytest.raises(PathError) as raised:
        projects.get(str(tmp_path))
    assert raised.value.reason == "not_allowed"
    with pytest.raises(PathError):
        chat.start("안녕", options=TurnOptions(project_root=str(tmp_path)))
    assert not (tmp_path / ".ai-brain").exists()


def test_a_project_is_shown_as_its_files_have_it(rooted: Rooted) -> None:
    rooted.project.put(SEED_CONTEXT, SEED_WORKFLOW)
    rooted.write("docs/cli.md", "명령")
    view = rooted.projects().get(rooted.root)
    assert (view.root, view.name, view.damage) == (rooted.root, "flow", "")
    assert view.active_plan == view.plans[0]
    assert [(task.title, task.is_active) for task in view.plans[0].tasks] == [("문서 고치기", True)]
    assert [each.text for each in view.decisions] == SEED_CONTEXT["memory"]["last_decisions"]
    files = [(each.path, each.is_gone) for each in view.open_files]
    assert files == [("app/workflow.py", True), ("docs/cli.md", False)]
    assert (view.summary, view.summary_limit_chars) == ("CLI 명령을 단수형으로 바꾸는 중이다.", 400)
    kinds = ["project", "plan", "task", "decision", "decision", "file", "file", "summary", "message", "message"]
    assert [line.kind for line in view.primed] == kinds
    assert [line.speaker for line in view.primed][-2:] == ["user", "assistant"]
    assert 0 < view.primed_tokens <= 1_600


def test_the_changes_of_the_managers_are_shown(rooted: Rooted) -> None:
    projects, root = rooted.projects(), rooted.root
    workflow, context, shown = projects.workflow(root), projects.context(root), partial(projects.get, root)
    workflow.name_project("가게")
    first, second = workflow.open_plan("배포", "다음 주까지"), workflow.open_plan("정리")
    view = shown()
    assert (view.name, [(plan.id, plan.is_active) for plan in view.plans]) == (
        "가게",
        [(first.id, False), (second.id, True)],
    )
    workflow.switch_plan(first.id)
    active = shown().active_plan
    assert active is not None
    assert (active.id, active.title, active.description) == (first.id, "배포", "다음 주까지")
    task, other = workflow.open_task("릴리스 노트"), workflow.open_task("태그 달기")
    workflow.start_task(task.id)
    assert [each.is_active for each in shown().plans[0].tasks] == [True, False]
    workflow.complete_task(task.id)
    done = shown().plans[0].tasks
    assert [(each.is_active, each.is_done) for each in done] == [(False, True), (True, False)]
    workflow.rename(other.id, "표 달기")
    workflow.forget(task.id)
    assert [each.title for each in shown().plans[0].tasks] == ["표 달기"]
    workflow.complete_plan(first.id)
    workflow.forget(second.id)
    view = shown()
    assert (view.active_plan, [(plan.id, plan.is_done) for plan in view.plans]) == (None, [(first.id, True)])
    old = context.record_decision("포트는 8501")
    new = context.record_decision("포트는 8502", replaces=old.id)
    replaced, newer = shown().decisions
    assert (replaced.is_in_force, newer.replaces) == (False, old.id)
    context.forget_decision(new.id)
    assert shown().decisions == (replaced,)
    rooted.write("a.py", "")
    context.note_open_files(["a.py"])
    assert shown().open_files[0].path == "a.py"
    context.note_open_files(closed=["a.py"])
    assert shown().open_files == ()
    context.edit_summary("요약")
    assert shown().summary == "요약"
    context.register_message("user", "안녕")
    assert [line.kind for line in shown().primed][-1] == "message"
    context.forget_dialog()
    assert "message" not in [line.kind for line in shown().primed]


def test_a_folder_that_is_not_allowed_or_gone_is_neither_read_nor_written(rooted: Rooted) -> None:
    projects = rooted.start().service.projects
    link, gone = rooted.project.allowed / "link", rooted.project.allowed / "gone"
    link.symlink_to(rooted.outside)
    for root, reason in (
        (str(rooted.outside), "not_allowed"),
        (f"{rooted.root}/../../outside", "not_allowed"),
        (str(link), "symlink_outside"),
        (f"{rooted.root}\0", "vanished"),
        (str(gone), "vanished"),
    ):
        for name, call in OF_A_ROOT.items():
            with pytest.raises(PathError) as raised:
                call(projects, root)
            assert (name, raised.value.reason) == (name, reason)
    assert list(rooted.outside.iterdir()) == []
    assert not gone.exists()


def test_what_is_not_there_or_is_a_secret_changes_nothing(rooted: Rooted) -> None:
    projects, root = rooted.projects(), rooted.root
    before = projects.get(root)
    workflow, context = projects.workflow(root), projects.context(root)
    changes: tuple[Callable[[str], object], ...] = (
        workflow.switch_plan,
        workflow.complete_plan,
        workflow.start_task,
        workflow.complete_task,
        workflow.forget,
        context.forget_decision,
        partial(projects.restore, root),
    )
    for change in changes:
        with pytest.raises(NotFoundError):
            change("none")
    with pytest.raises(InputError) as raised:
        context.record_decision("토큰은 ghp_" + "a1B2" * 9)
    assert raised.value.reason == "secret"
    with pytest.raises(PathError):
        context.note_open_files(["../secret.txt"])
    assert projects.get(root) == before


def test_a_damaged_memory_is_shown_with_its_snapshots_and_restored(rooted: Rooted) -> None:
    projects, root = rooted.projects(clock=rooted.project.clock), rooted.root
    rooted.write("AGENTS.md", "규칙")
    projects.context(root).record_decision("첫 결정")
    rooted.project.clock.now = datetime(2030, 1, 1, tzinfo=UTC)
    projects.context(root).record_decision("둘째 결정")
    (rooted.project.brain / "context.json").write_bytes(b'{"memory": [1')
    view = projects.get(root)
    assert "context.json" in view.damage
    assert (view.plans, view.decisions, view.primed) == ((), (), ())
    assert [file.path for file in view.rules.files] == ["AGENTS.md"]
    projects.restore(root, view.snapshots[0].name)
    restored = projects.get(root)
    assert restored.damage == ""
    assert [each.text for each in restored.decisions] == ["첫 결정"]


def test_one_can_start_over_with_an_empty_memory_and_return(rooted: Rooted) -> None:
    projects, root = rooted.projects(), rooted.root
    projects.start_over(root)
    assert projects.get(root).snapshots == ()
    projects.context(root).record_decision("첫 결정")
    projects.start_over(root)
    empty = projects.get(root)
    assert (empty.damage, empty.decisions) == ("", ())
    projects.restore(root, empty.snapshots[0].name)
    assert [each.text for each in projects.get(root).decisions] == ["첫 결정"]


def test_rules_are_new_then_agreed_then_changed_with_a_difference(rooted: Rooted) -> None:
    projects, root = rooted.projects(), rooted.root
    assert projects.get(root).rules.state == "none"
    rooted.write("AGENTS.md", "두 칸 들여쓰기\n끝")
    new = projects.get(root).rules
    assert (new.state, new.difference, new.agreed_at) == ("new", (), None)
    assert (new.files[0].text, new.files[0].kind) == ("두 칸 들여쓰기\n끝", "always")
    projects.agree(root, new.digest)
    agreed = projects.get(root).rules
    assert agreed.state == "agreed"
    assert agreed.agreed_at is not None
    rooted.write("AGENTS.md", "네 칸 들여쓰기\n끝")
    changed = projects.rules(root)
    assert changed.state == "changed"
    assert {"-두 칸 들여쓰기", "+네 칸 들여쓰기"} <= set(changed.difference)
    with pytest.raises(InputError) as raised:
        projects.agree(root, new.digest)  # only those that were shown
    assert raised.value.reason == "rules_changed"
    (Path(root) / "AGENTS.md").unlink()
    assert projects.rules(root).state == "changed"
    assert "-끝" in projects.rules(root).difference


def test_an_agreement_is_of_one_owner_one_root_and_the_folders_that_apply(rooted: Rooted) -> None:
    other = rooted.project.allowed / "other"
    shutil.copytree(rooted.root, other)
    for folder in (Path(rooted.root), other):
        (folder / "AGENTS.md").write_text("위")
    rooted.write("app/AGENTS.md", "아래")
    mine, root = rooted.start().service.projects, rooted.root
    theirs = rooted.projects(turnfold_owner="someone-else")
    mine.agree(root, mine.rules(root).digest)
    assert (mine.rules(root).state, theirs.rules(root).state, mine.rules(str(other)).state) == ("agreed", "new", "new")
    inside = mine.rules(root, current_file="app/main.py")
    assert inside.state == "changed"
    assert [file.path for file in inside.files] == ["AGENTS.md", "app/AGENTS.md"]
    mine.agree(root, inside.digest, current_file="app/main.py")
    rooted.write("docs/AGENTS.md", "옆")
    mine.agree(root, mine.rules(root, current_file="docs/a.md").digest, current_file="docs/a.md")
    for current_file in ("", "docs/a.md", "app/main.py"):  # one folder's keeps another's
        assert mine.rules(root, current_file=current_file).state == "agreed"


def test_what_is_unseen_left_out_or_refused_is_told(rooted: Rooted) -> None:
    rooted.write("AGENTS.md", "앞\U000e0041뒤 <!-- 숨은 말 --> @docs/style.md\n" + "길다\n" * 10_000)
    rooted.write(".cursor/rules/binary.mdc", "a\0b")
    file, refused = rooted.projects().rules(rooted.root).files
    assert "⟦U+E0041⟧" in file.text
    assert (file.invisible_count, file.comment_count, file.import_count) == (1, 1, 1)
    assert file.left_out_bytes > 0
    assert file.sent_bytes <= 32_768
    assert (Path(refused.path).stem, refused.refusal, refused.text) == ("binary", "binary", "")
