from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from graph.error import (
    PathError,
    ProjectBusyError,
    ProjectDamagedError,
    ProjectError,
)
from tests.fake.project import Project

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


def test_a_folder_that_is_a_link_out_of_the_root_is_refused_and_nothing_is_written(project: Project) -> None:
    outside = project.allowed / "outside"
    outside.mkdir()
    project.brain.symlink_to(outside)
    with pytest.raises(PathError) as refused:
        project.memory()
    assert refused.value.reason == "symlink_outside"
    assert list(outside.iterdir()) == []


def test_a_folder_that_is_a_link_inside_the_root_is_followed(project: Project) -> None:
    (project.root / "notes").mkdir()
    project.brain.symlink_to("notes")
    project.context().record_decision("포트는 8501")
    assert (project.root / "notes/context.json").exists()


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "large"])
def test_a_file_that_is_no_plain_file_is_damaged_and_not_read(project: Project, kind: str) -> None:
    project.brain.mkdir()
    path = project.brain / "context.json"
    if kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(100_000_000)
    with pytest.raises(ProjectDamagedError):
        project.context().hydrate_prompt()


def test_a_root_that_vanishes_is_refused_with_a_reason(project: Project) -> None:
    context = project.context()
    project.root.rename(project.allowed / "elsewhere")
    with pytest.raises(PathError) as refused:
        context.register_message("user", "안녕")
    assert refused.value.reason == "vanished"
    assert not project.root.exists()


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
        ("", ".ai-brain/\n"),
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


def test_below_a_checkout_or_with_a_linked_gitignore_the_memory_ignores_itself(project: Project) -> None:
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
    assert "graph.error.ProjectError: project: " in run.stderr
    assert run.stderr.endswith(".json: File too large\n")
    assert project.stored() == before
    assert project.left_over() == []


def test_a_folder_that_cannot_be_written_is_told_as_ours(project: Project) -> None:
    project.brain.write_text("no folder", encoding="utf-8")
    with pytest.raises((PathError, ProjectError)):
        project.memory()
