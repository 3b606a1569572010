from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from graph.error import (
    NotFoundError,
    ProjectDamagedError,
    ProjectNewerError,
)
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


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


def test_snapshots_are_taken_every_thirty_minutes_of_change_and_the_newest_48_stay(project: Project) -> None:
    context = project.context()
    for _ in range(60):
        for _ in range(3):
            context.record_decision(f"{project.clock.now}에 정함", replaces=None)
        project.clock.move(1_800)
    taken = project.memory().snapshots()
    assert len(taken) == 48
    assert {newer.at - older.at for newer, older in pairwise(taken)} == {timedelta(minutes=30)}


def test_a_hand_edit_behind_a_change_is_not_undone(project: Project) -> None:
    project.workflow().open_plan("첫째")
    project.put(workflow=SEED_WORKFLOW)
    assert project.workflow().project_name == "flow"
    assert project.stored("workflow.json") == SEED_WORKFLOW


def test_a_clock_that_was_set_back_neither_stops_nor_floods_snapshots(project: Project) -> None:
    context = project.context()
    for hours in (0, 2, -1_000):
        project.clock.move(3_600 * hours)
        context.record_decision(f"결정 {hours}")
    for number in range(120):
        project.clock.move(60)
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
