"""The files of a project's memory: whose they are, what is damaged, and the snapshots to return to."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from filelock import FileLock

from graph.value.error import (
    NotFoundError,
    PathError,
    ProjectBusyError,
    ProjectDamagedError,
    ProjectError,
    ProjectNewerError,
)
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW, Project

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_folders_are_private(project: Project) -> None:
    project.workflow().open_plan("계획")
    assert {mode(path) for path in (project.brain, project.brain / "snapshots")} == {0o700}
    files = [path for path in project.brain.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"context.json", "workflow.json", ".lock"}
    assert {mode(path) for path in files} == {0o600}


def test_a_link_inside_the_root_is_followed_and_one_out_of_it_refused(project: Project) -> None:
    (project.root / "notes").mkdir()
    project.brain.symlink_to("notes")
    project.context().record_decision("포트는 8501")
    assert (project.root / "notes/context.json").exists()
    outside = project.allowed / "outside"
    outside.mkdir()
    project.brain.unlink()
    project.brain.symlink_to(outside)
    with pytest.raises(PathError) as refused:
        project.memory()
    assert refused.value.reason == "symlink_outside"
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "large"])
def test_a_file_that_is_no_plain_file_is_damaged_and_not_read(project: Project, kind: str) -> None:
    project.brain.mkdir()
    path = project.brain / "context.json"
    if kind == "link":
        target = project.allowed / "target.json"
        target.write_text("{}", encoding="utf-8")
        path.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"{}" + b" " * 9_000_000)
    with pytest.raises(ProjectDamagedError):
        project.context().hydrate_prompt()


def test_a_folder_that_vanishes_or_cannot_be_made_is_refused_with_a_reason(project: Project) -> None:
    context = project.context()
    project.root.rename(project.allowed / "elsewhere")
    with pytest.raises(PathError) as refused:
        context.register_message("user", "안녕")
    assert refused.value.reason == "vanished"
    assert not project.root.exists()
    project.root.mkdir()
    project.brain.write_text("no folder", encoding="utf-8")
    with pytest.raises((PathError, ProjectError)):
        project.memory()


def test_a_memory_that_was_deleted_begins_anew(project: Project) -> None:
    context = project.context()
    context.record_decision("포트는 8501")
    project.brain.rename(project.root / "old")
    assert list(context.data.memory.last_decisions) == []
    context.record_decision("포트는 8502")
    assert list(context.data.memory.last_decisions) == ["포트는 8502"]


def test_a_lock_that_is_held_for_too_long_refuses_with_the_time(project: Project) -> None:
    memory = project.memory(wait_seconds=0.05)
    with FileLock(project.brain / ".lock"), pytest.raises(ProjectBusyError, match=r"0\.05 s"):
        memory.read()
    assert memory.read().context.stats.dialog_turns == 0
    assert (project.brain / ".lock").exists()


def test_what_a_killed_process_left_half_written_is_swept_at_the_next_opening(project: Project) -> None:
    (project.brain / "snapshots").mkdir(parents=True)
    for folder in (project.brain, project.brain / "snapshots"):
        (folder / ".tmp-1").touch()
    project.memory()
    assert project.left_over() == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, ".ai-brain/\n"),
        ("*.pyc", "*.pyc\n.ai-brain/\n"),
        ("*.pyc\r\n", "*.pyc\r\n.ai-brain/\n"),
        ("/.ai-brain\n", "/.ai-brain\n"),
        (".ai-brain/ \n", ".ai-brain/ \n"),
    ],
)
def test_a_checkout_ignores_the_memory(project: Project, before: str | None, after: str) -> None:
    (project.root / ".git").mkdir()
    ignored = project.root / ".gitignore"
    if before is not None:
        ignored.write_bytes(before.encode())
    for _ in range(2):
        project.memory()
    assert ignored.read_bytes().decode() == after
    assert not (project.brain / ".gitignore").exists()


def test_with_a_linked_gitignore_the_memory_ignores_itself(project: Project) -> None:
    target = project.allowed / "target"
    target.write_text("*.pyc\n", encoding="utf-8")
    (project.root / ".git").mkdir()
    (project.root / ".gitignore").symlink_to(target)
    project.memory()
    assert target.read_text(encoding="utf-8") == "*.pyc\n"
    assert (project.brain / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_disk_without_room_is_told_and_nothing_is_changed(project: Project) -> None:
    project.context().record_decision("포트는 8501")
    before = project.stored()
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300));"
        "from tests.fake.registering import main; import sys; main(sys.argv[1], 'one', '1')"
    )
    run = subprocess.run(
        [sys.executable, "-B", "-c", code, str(project.root)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "graph.value.error.ProjectError: project: " in run.stderr
    assert run.stderr.endswith(".json: File too large\n")
    assert project.stored() == before
    assert project.left_over() == []


def test_a_change_that_was_interrupted_between_the_files_is_finished(project: Project) -> None:
    workflow = project.workflow()
    first = workflow.open_plan("첫째")
    before = (project.brain / "workflow.json").read_bytes()
    second = workflow.open_plan("둘째")
    (project.brain / "workflow.json").write_bytes(before)
    again = project.workflow()
    assert again.active_plan == second
    assert project.stored("workflow.json")["current_plan_id"] == second.id
    assert again.switch_plan(first.id) == first


def test_a_workflow_that_others_changed_is_not_undone_and_names_what_is_active(project: Project) -> None:
    project.workflow().open_plan("첫째")
    project.put(workflow=SEED_WORKFLOW)
    assert project.workflow().project_name == "flow"
    assert project.stored("workflow.json") == SEED_WORKFLOW
    changed = {**SEED_WORKFLOW, "updated_at": "2030-01-01T00:00:00Z", "current_plan_id": "plan_001"}
    project.put(workflow={**changed, "current_task_id": "task_004"})
    assert project.workflow().active_task == project.workflow().task("task_004")
    project.put(SEED_CONTEXT, {**SEED_WORKFLOW, "plans": []})
    workflow = project.workflow()
    assert (workflow.active_plan, workflow.active_task) == (None, None)
    assert not any(line.startswith("ACTIVE") for line in project.context().hydrate_prompt())


def test_a_snapshot_is_taken_every_thirty_minutes_of_change_and_the_newest_48_stay(project: Project) -> None:
    context = project.context()
    for number in range(100):
        context.record_decision(f"{number}번 결정")
        project.clock.move(900)
    taken = project.memory().snapshots()
    assert len(taken) == 48
    assert {newer.at - older.at for newer, older in pairwise(taken)} == {timedelta(minutes=30)}


def test_a_clock_that_was_set_back_neither_stops_nor_floods_snapshots(project: Project) -> None:
    context = project.context()
    for hours in (0, 2, -1_000):
        project.clock.move(3_600 * hours)
        context.record_decision(f"결정 {hours}")
    for number in range(24):
        project.clock.move(300)
        context.record_decision(f"그 뒤 {number}")
    assert 4 <= len(project.memory().snapshots()) <= 6


def test_restoring_returns_both_files_and_can_be_undone(project: Project) -> None:
    workflow, context = project.workflow(), project.context()
    first = workflow.open_plan("첫째")
    context.record_decision("포트는 8501")
    project.clock.move(3_600)
    second = workflow.open_plan("둘째")
    context.record_decision("포트는 8502")
    (before,) = project.memory().snapshots()
    project.memory().restore(before.name)
    assert project.context().data.memory.last_decisions == ("포트는 8501",)
    assert project.workflow().active_plan == first
    undo = project.memory().snapshots()[0]
    project.memory().restore(undo.name)
    assert project.context().data.memory.last_decisions == ("포트는 8501", "포트는 8502")
    assert project.workflow().active_plan == second
    for name in ("context.json", "../context.json", "20260301T120000000000Z-000000000000.json", ""):
        with pytest.raises(NotFoundError):
            project.memory().restore(name)
    assert project.workflow().active_plan == second


def test_five_megabytes_of_snapshots_are_the_most_and_dialog_goes_first(project: Project) -> None:
    big = {"id": "msg_1", "embedding": ["x" * 700_000]}
    talk = {**SEED_CONTEXT["conversation"], "vector_cache": [big]}
    project.put({**SEED_CONTEXT, "conversation": talk}, SEED_WORKFLOW)
    context = project.context()
    for number in range(12):
        context.record_decision(f"결정 {number}")
        project.clock.move(3_600)
    taken = project.memory().snapshots()
    assert sum(each.size_bytes for each in taken) <= 5 * 1024 * 1024
    assert len(taken) == 12
    assert taken[0].size_bytes > 700_000 > taken[-1].size_bytes
    project.memory().restore(taken[-1].name)
    assert project.context().data.conversation.running_summary == talk["running_summary"]


@pytest.mark.parametrize(
    ("damaged", "content"),
    [
        ("context.json", b""),
        ("context.json", b"[]"),
        ("workflow.json", b"{"),
        ("workflow.json", b"\xff\xfe"),
        ("workflow.json", b'{"plans": 3, "stats": 3}'),
    ],
)
def test_a_damaged_file_stays_until_the_offered_snapshot_is_restored(
    project: Project, damaged: str, content: bytes
) -> None:
    project.workflow().open_plan("첫째")
    project.clock.move(3_600)
    project.context().record_decision("포트는 8501")
    path = project.brain / damaged
    path.write_bytes(content)
    with pytest.raises(ProjectDamagedError) as refused:
        project.context().register_message("user", "안녕")
    assert refused.value.detail.startswith(f"{damaged}: ")
    assert path.read_bytes() == content
    (offered,) = project.memory().snapshots()
    assert refused.value.snapshot == offered.name
    project.memory().restore(offered.name)
    active = project.workflow().active_plan
    assert active is not None
    assert active.title == "첫째"
    assert [each.read_bytes() for each in project.brain.glob(f"damaged-*-{damaged}")] == [content]


def test_without_a_snapshot_one_can_start_over_and_the_damaged_files_are_kept(project: Project) -> None:
    project.put(SEED_CONTEXT, SEED_WORKFLOW)
    (project.brain / "workflow.json").write_text("{", encoding="utf-8")
    with pytest.raises(ProjectDamagedError) as refused:
        project.memory().read()
    assert refused.value.snapshot == ""
    project.memory().start_over()
    assert project.context().data.memory.last_decisions == ()
    assert len(list(project.brain.glob("damaged-*"))) == 2


def test_a_workflow_that_is_gone_is_told_and_not_replaced_by_an_empty_one(project: Project) -> None:
    project.workflow().open_plan("첫째")
    project.context().record_decision("포트는 8501")
    (project.brain / "workflow.json").unlink()
    with pytest.raises(ProjectDamagedError, match="missing"):
        project.context().record_decision("포트는 8502")


def test_a_newer_version_is_refused_and_kept(project: Project) -> None:
    project.put({**SEED_CONTEXT, "version": "2.0"}, SEED_WORKFLOW)
    for attempt in (project.memory().read, project.memory().start_over):
        with pytest.raises(ProjectNewerError, match=r"context\.json: 2\.0"):
            attempt()
    assert project.stored()["version"] == "2.0"
