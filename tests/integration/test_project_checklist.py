"""Seed 000's check list (§6), a test each; the sections before it are in `test_project_seed`."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.project.roll_up import window_tokens
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW, Project

SAID = "배포 날짜를 3월 {number}일로 정했습니다. 담당은 김민수 님이고 포트는 {port}입니다."


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def talk(project: Project, turns: int) -> None:
    context = project.context()
    for number in range(1, turns + 1):
        context.register_message("user", f"{number}번째 배포는 언제지?")
        context.register_message("assistant", SAID.format(number=number, port=8000 + number))


def lines(project: Project) -> list[str]:
    return project.context().hydrate_prompt("ko")


def test_1_running_summary(project: Project) -> None:
    talk(project, 30)
    summary = project.stored()["conversation"]["running_summary"]
    assert "정했습니다" in summary
    assert len(summary) <= 400
    assert f"SUMMARY: {summary} (2026-03-01)" in lines(project)


def test_2_recent_window(project: Project) -> None:
    talk(project, 30)
    window = project.context().data.conversation.recent_window
    assert window_tokens(window) <= 800
    assert window[-1].content == SAID.format(number=30, port=8030)
    told = lines(project)
    assert told[told.index("RECENT DIALOG:") + 1].startswith(("USER: ", "ASSISTANT: "))
    assert told[-1] == f"ASSISTANT: {window[-1].content} (2026-03-01)"


def test_3_active_plan_and_task_and_the_state_of_the_workflow(project: Project) -> None:
    workflow = project.workflow()
    plan = workflow.open_plan("0.2 배포", "3월 안에 낸다")
    first, second = workflow.open_task("릴리스 노트"), workflow.open_task("태그 붙이기")
    workflow.complete_task(second.id)
    again = project.workflow()
    assert (again.plan(plan.id).title, again.task(second.id).status) == ("0.2 배포", "done")
    assert again.active_plan == again.plan(plan.id)
    assert again.active_task == again.task(first.id)
    memory = project.stored()["memory"]
    assert (memory["active_plan_id"], memory["active_task_id"]) == (plan.id, first.id)
    assert {"ACTIVE PLAN: 0.2 배포 (2026-03-01)", "ACTIVE TASK: 릴리스 노트 (2026-03-01)"} <= set(lines(project))


def test_4_last_decisions_open_files_and_paths(project: Project) -> None:
    (project.root / "app").mkdir()
    (project.root / "app/main.py").touch()
    context = project.context()
    context.record_decision("API 호환성 유지하기로 결정")
    project.clock.move(86_400)
    context.record_decision("명령은 단수형")
    context.note_open_files(["app/gone.py", "app/main.py"])
    told = lines(project)
    assert "DECISIONS: API 호환성 유지하기로 결정 (2026-03-01), 명령은 단수형 (2026-03-02)" in told
    assert "OPEN FILES: app/gone.py (2026-03-02, 지금은 없음), app/main.py (2026-03-02)" in told
    memory = project.stored()["memory"]
    assert memory["last_decisions"] == ["API 호환성 유지하기로 결정", "명령은 단수형"]
    assert memory["open_files"] == ["app/gone.py", "app/main.py"]
    assert memory["working_directory"] == str(project.root)


def test_5_over_the_limit_the_oldest_are_rolled_up_and_the_summary_is_renewed(project: Project) -> None:
    talk(project, 60)
    conversation = project.context().data.conversation
    assert conversation.message_count == 120
    assert [message.id for message in conversation.recent_window][-1] == "msg_120"
    assert len(conversation.recent_window) < 60
    first = conversation.running_summary
    talk(project, 60)
    assert project.context().data.conversation.running_summary != first
    assert project.stored()["stats"]["dialog_turns"] == 120


def test_6_a_new_session_is_primed_by_hydrate_prompt(project: Project) -> None:
    project.put(SEED_CONTEXT, SEED_WORKFLOW)
    project.clock.now = project.clock.now.replace(year=2024, month=5, day=28)
    note, *told = lines(project)
    assert "사용자의 말이 우선" in note
    assert told == [
        "PROJECT: flow (2024-05-27)",
        "ACTIVE PLAN: CLI 정리 (날짜 없음)",
        "ACTIVE TASK: 문서 고치기 (날짜 없음)",
        "DECISIONS: API 호환성 유지하기로 결정 (2024-05-27), /flow 명령 패턴은 단수형 유지 (2024-05-27)",
        "OPEN FILES: app/workflow.py (2024-05-27, 지금은 없음), docs/cli.md (2024-05-27, 지금은 없음)",
        "SUMMARY: CLI 명령을 단수형으로 바꾸는 중이다. (2024-05-27)",
        "RECENT DIALOG:",
        "USER: 다음은 뭐지? (2024-05-27)",
        "ASSISTANT: 문서를 고치면 됩니다. (2024-05-27)",
    ]
