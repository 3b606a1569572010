from __future__ import annotations

import os
import stat
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.error import (
    InputError,
    NotFoundError,
    PathError,
    ProjectBusyError,
    ProjectDamagedError,
    ProjectError,
    ProjectNewerError,
    TurnfoldError,
)
from graph.project.context_operation import RecordDecision
from graph.project.operation import Operation
from graph.project.workflow_operation import OpenTask
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW, Project

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


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


@pytest.mark.parametrize("make", [RecordDecision, OpenTask])
def test_an_operation_that_was_applied_changes_nothing_and_tells_the_same(
    project: Project, make: type[Operation]
) -> None:
    memory = project.memory()
    fields = {"id": "op-1", "at": project.clock.now, "text": "포트는 8501", "title": "포트 바꾸기"}
    operation = make.model_validate(fields)
    first = memory.apply(operation)
    stored = [project.stored(name) for name in ("context.json", "workflow.json")]
    again = project.memory().apply(operation)
    assert (again.made, again.is_applied) == (first.made, True)
    assert [project.stored(name) for name in ("context.json", "workflow.json")] == stored


def test_messages_with_an_id_are_registered_once(project: Project) -> None:
    context = project.context()
    ids = [context.register_message("user", "안녕", operation_id="m-1") for _ in range(3)]
    assert ids == ["msg_001"] * 3
    assert context.data.stats.dialog_turns == 1


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


def test_a_workflow_that_others_changed_names_what_is_active(project: Project) -> None:
    project.workflow().open_plan("첫째")
    changed = {**SEED_WORKFLOW, "updated_at": "2030-01-01T00:00:00Z", "current_plan_id": "plan_001"}
    project.put(workflow={**changed, "current_task_id": "task_004"})
    workflow = project.workflow()
    assert (workflow.project_name, workflow.active_task) == ("flow", workflow.task("task_004"))


def test_active_ids_of_what_is_not_there_are_dropped(project: Project) -> None:
    project.put(SEED_CONTEXT, {**SEED_WORKFLOW, "plans": []})
    workflow = project.workflow()
    assert (workflow.active_plan, workflow.active_task) == (None, None)
    assert not any(line.startswith("ACTIVE") for line in project.context().hydrate_prompt())


def test_a_secret_is_masked_in_dialog_and_summary_and_refused_elsewhere(project: Project) -> None:
    context, workflow = project.context(), project.workflow()
    context.register_message("user", f"토큰은 {TOKEN} 이야")
    context.edit_summary(f"토큰은 {TOKEN}")
    refused: list[TurnfoldError] = []
    for attempt in (
        lambda: context.record_decision(f"토큰은 {TOKEN}"),
        lambda: workflow.open_plan(TOKEN),
        lambda: workflow.open_plan("계획", f"설명 {TOKEN}"),
        lambda: workflow.open_task(TOKEN),
        lambda: workflow.name_project(TOKEN),
        lambda: context.note_open_files([f"keys/{TOKEN}"]),
    ):
        with pytest.raises(InputError) as error:
            attempt()
        refused.append(error.value)
    assert {(each.code, str(each)) for each in refused} == {("input", "input: GitHub token")}
    conversation = project.stored()["conversation"]
    assert conversation["recent_window"][0]["content"] == "토큰은 [secret: GitHub token] 이야"
    assert conversation["running_summary"] == "토큰은 [secret: GitHub token]"
    assert not any(TOKEN in path.read_text(encoding="utf-8") for path in project.brain.rglob("*") if path.is_file())


def test_a_secret_that_others_wrote_is_masked_when_it_is_primed(project: Project) -> None:
    context = {**SEED_CONTEXT, "memory": {"last_decisions": [TOKEN], "open_files": [TOKEN]}}
    context["conversation"] = {"running_summary": TOKEN, "recent_window": [{"role": "user", "content": TOKEN}]}
    project.put(context, {**SEED_WORKFLOW, "project_name": TOKEN})
    told = "\n".join(project.context().hydrate_prompt())
    assert TOKEN not in told
    assert told.count("[secret: GitHub token]") == 5


@settings(max_examples=40)
@given(
    st.text(st.characters(exclude_categories=())) | st.sampled_from([TOKEN, "\ud83d", "\x00", "가" * 5_000, "\u3164"]),
    st.text(max_size=100),
)
def test_whatever_is_given_is_stored_or_refused_by_an_error_of_ours(text: str, other: str) -> None:
    with TemporaryDirectory() as folder:
        project = Project(Path(folder))
        context, workflow = project.context(), project.workflow()
        for attempt in (
            lambda: context.register_message("user", text),
            lambda: context.register_message("assistant", other + text),
            lambda: context.edit_summary(text),
            lambda: context.record_decision(text),
            lambda: context.record_decision(other, replaces=text),
            lambda: context.forget_decision(text),
            lambda: context.note_open_files([text], closed=[text, other]),
            lambda: workflow.open_plan(text, other),
            lambda: workflow.open_task(other, plan_id=text),
            lambda: workflow.open_task(text),
            lambda: workflow.complete_task(text),
            lambda: workflow.switch_plan(text),
            lambda: workflow.rename("task_001", text),
            lambda: workflow.name_project(text),
        ):
            with suppress(InputError, NotFoundError, PathError):
                attempt()
        assert project.context().data.conversation.message_count == 2
        assert project.context().primed().tokens <= 1_600
        assert TOKEN not in "".join(path.read_text(encoding="utf-8") for path in project.brain.glob("*.json"))


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "", ".", "a\0b"])
def test_an_open_file_outside_the_project_is_refused(project: Project, path: str) -> None:
    with pytest.raises(PathError):
        project.context().note_open_files([path])


def test_open_files_are_relative_and_the_last_one_is_last(project: Project) -> None:
    context = project.context()
    assert context.note_open_files(["a.py", str(project.root / "b.py")]) == ("a.py", "b.py")
    assert context.note_open_files(["a.py"]) == ("b.py", "a.py")
    assert context.note_open_files(closed=["b.py"]) == ("a.py",)
    assert len(context.note_open_files([f"f{number}" for number in range(80)])) == 50


def test_a_decision_that_another_replaced_is_kept_but_no_longer_told(project: Project) -> None:
    context = project.context()
    old = context.record_decision("포트는 8501")
    new = context.record_decision("포트는 8502", replaces=old.id, source="model")
    assert (new.replaces, new.source) == (old.id, "model")
    assert project.stored()["memory"]["last_decisions"] == ["포트는 8502"]
    assert [each.in_force for each in context.data.memory.decisions] == [False, True]
    context.forget_decision(new.id)
    assert context.data.memory.last_decisions == ()
    with pytest.raises(NotFoundError):
        context.record_decision("포트는 8503", replaces=new.id)


def test_more_decisions_than_fit_are_refused_and_those_out_of_force_go_first(project: Project) -> None:
    decisions = [{"id": f"decision_{n:03}", "text": f"결정 {n}", "in_force": n != 7} for n in range(1, 501)]
    project.put({**SEED_CONTEXT, "memory": {"decisions": decisions}}, SEED_WORKFLOW)
    context = project.context()
    context.record_decision("하나 더")
    assert "decision_007" not in {each.id for each in context.data.memory.decisions}
    with pytest.raises(InputError) as refused:
        context.record_decision("또 하나")
    assert refused.value.reason == "project_full"
    assert len(context.data.memory.decisions) == 500


def test_snapshots_are_taken_every_thirty_minutes_of_change_and_the_newest_48_stay(project: Project) -> None:
    context = project.context()
    for _ in range(60):
        for _ in range(3):
            context.record_decision(f"{project.clock.now}에 정함", replaces=None)
        project.clock.move(1_800)
    taken = project.memory().snapshots()
    assert len(taken) == 48
    assert {newer.at - older.at for newer, older in pairwise(taken)} == {timedelta(minutes=30)}


def test_a_clock_that_was_set_back_neither_stops_nor_floods_snapshots(project: Project) -> None:
    context = project.context()
    for hours in (0, 2, -1_000):
        project.clock.move(3_600 * hours)
        context.record_decision(f"결정 {hours}")
    for number in range(120):
        project.clock.move(60)
        context.record_decision(f"그 뒤 {number}")
    assert 4 <= len(project.memory().snapshots()) <= 6


def test_a_hand_edit_behind_a_change_is_not_undone(project: Project) -> None:
    project.workflow().open_plan("첫째")
    project.put(workflow=SEED_WORKFLOW)
    assert project.workflow().project_name == "flow"
    assert project.stored("workflow.json") == SEED_WORKFLOW


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


@pytest.mark.parametrize("name", ["context.json", "../context.json", "20260301T120000000000Z-000000000000.json", ""])
def test_what_is_no_snapshot_is_not_restored(project: Project, name: str) -> None:
    project.context().record_decision("포트는 8501")
    with pytest.raises(NotFoundError):
        project.memory().restore(name)
    assert project.context().data.memory.last_decisions == ("포트는 8501",)


@pytest.mark.parametrize("damaged", ["context.json", "workflow.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"plans": 3, "stats": 3}'])
def test_a_damaged_file_stays_as_it_is_until_the_snapshot_that_is_offered_is_restored(
    project: Project, damaged: str, content: bytes
) -> None:
    project.workflow().open_plan("첫째")
    project.clock.move(3_600)
    project.context().record_decision("포트는 8501")
    path = project.brain / damaged
    path.write_bytes(content)
    context = project.context()
    with pytest.raises(ProjectDamagedError) as refused:
        context.register_message("user", "안녕")
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


def test_a_folder_that_cannot_be_written_is_told_as_ours(project: Project) -> None:
    project.brain.write_text("no folder", encoding="utf-8")
    with pytest.raises((PathError, ProjectError)):
        project.memory()
