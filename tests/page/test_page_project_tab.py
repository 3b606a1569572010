from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest

from graph.value.error import InputError, NotFoundError, ProjectBusyError
from graph.value.project_view import ProjectView, SnapshotView
from tests.fake.scripted_projects import NO_RULES
from tests.fake.scripted_service import ScriptedService
from tests.fake.shown_project import FILE, ROOT, SNAPSHOT, TODAY, VIEW, rules
from tests.page.reading import keys, page_text, setting
from tests.page.reading_project import changes, open_project_tab, pick, save


def test_the_tab_shows_the_whole_project(page: AppTest, project: ScriptedService) -> None:
    text = page_text(open_project_tab(page))
    assert project.projects.view == VIEW
    for said in (
        "**가게**",
        ROOT,
        "새 대화는 이 가운데 ≈321토큰을 알고 시작합니다.",
        "다음 주까지",
        "**릴리스 노트** :primary-badge[진행 중]",
        "태그 달기",
        f"포트는 8502  \n:small[:gray[{TODAY:%Y-%m-%d}]]",
        "old.py :small[:orange[지금은 없음]]",
        "배포 준비 중",
        "이 폴더에는 `AGENTS.md` 같은 규칙 파일이 없습니다.",
    ):
        assert said in text
    labels = [box.label for box in page.expander]
    assert {"다른 계획 1개", "완료한 할 일 1개", "대체된 결정 1개", "스냅샷 1개"} <= set(labels)
    assert "포트는 8501" not in text


def test_without_a_project_the_tab_has_the_choice(page: AppTest, project: ScriptedService) -> None:
    page.run()
    page.session_state["panel_tabs"] = "프로젝트"
    assert "선택한 프로젝트가 없습니다." in page_text(page.run())
    page.button(key="choose_project_0").click().run()
    assert setting(page, "project_listed").value == ROOT
    assert "선택한 프로젝트가 없습니다." not in page_text(page)
    assert changes(project) == []


def test_one_form_is_open_at_a_time_and_a_left_tab_closes_it(page: AppTest, project: ScriptedService) -> None:
    open_project_tab(page).button(key="icon_project_new_tasks_panel").click().run()
    page.button(key="icon_project_new_files_panel").click().run()
    assert [field.key for field in page.text_input if "project_field" in str(field.key)] == [
        "project_field_0_new_files_panel"
    ]
    page.session_state["panel_tabs"] = "요약"
    page.run()
    page.session_state["panel_tabs"] = "프로젝트"
    assert "project_confirm_panel" not in keys(page.run())
    assert changes(project) == []


def test_new_rules_are_shown_with_their_text_and_used_once_agreed_to(page: AppTest, project: ScriptedService) -> None:
    project.projects.view = replace(VIEW, rules=rules("new", FILE))
    text = page_text(open_project_tab(page))
    assert "동의하기 전에는 이 규칙을 쓰지 않습니다." in text
    assert "프로젝트 탭에 확인할 규칙이 있습니다." in text  # on the card
    assert "항상 · 43 KB · 32 KB 보냄" in text
    assert "43 KB 가운데 11 KB는 공간이 없어 제외했습니다." in text
    hidden = "제외한 주석 1개 · 제외한 보이지 않는 문자 2개 · 텍스트가 아닌 곳 4군데 · 따라가지 않은 가져오기 3개"
    assert hidden in text
    assert page.code[0].value == "규칙 글"
    page.button(key="project_agree_panel").click().run()
    assert changes(project) == [("agree", "d-1")]


def test_each_press_in_the_tab_changes_one_thing_or_says_why_not(page: AppTest, project: ScriptedService) -> None:
    open_project_tab(page)
    assert project.projects.loaded == []  # until it is pressed others may change the file
    presses: tuple[tuple[Callable[[], AppTest], tuple[object, ...]], ...] = (
        (page.button(key="icon_project_complete_task_1_panel").click().run, ("complete_task", "task-2")),
        (lambda: pick(page, "task_1_panel", "시작"), ("start_task", "task-2")),
        (lambda: pick(page, "task_1_panel", "메모리에서 삭제"), ("forget", "task-2")),
        (lambda: pick(page, "active_plan_panel", "계획 완료"), ("complete_plan", "plan-1")),
        (lambda: pick(page, "decision_0_panel", "메모리에서 삭제"), ("forget_decision", "decision-2")),
        (
            lambda: page.button(key="icon_project_close_0_panel").click().run(),
            ("note_open_files", ("closed", ["old.py"])),
        ),
        (lambda: pick(page, "summary_panel", "메모리에서 삭제"), ("edit_summary", "")),
    )
    for press, call in presses:
        project.projects.calls.clear()
        press()
        assert changes(project) == [call]
    assert len(project.projects.loaded) == len(presses)
    for error, sentence in (
        (NotFoundError("x"), "이미 삭제되었습니다."),
        (ProjectBusyError("10 s"), "다른 작업이 프로젝트 메모리를 쓰고 있습니다."),
    ):
        project.projects.refusal = error
        page.button(key="icon_project_complete_task_0_panel").click().run()
        assert sentence in page.error[0].value
        assert len(page.error) == 1


def test_each_form_of_the_tab_adds_one_thing(page: AppTest, project: ScriptedService) -> None:
    open_project_tab(page)
    for form, texts, call in (
        ("plan", ("새 계획", "설명"), ("open_plan", "새 계획", "설명")),
        ("tasks", ("할 일",), ("open_task", "할 일")),
        ("decisions", ("정한 것",), ("record_decision", "정한 것")),
        ("files", ("src/a.py",), ("note_open_files", ["src/a.py"])),
    ):
        project.projects.calls.clear()
        page.button(key=f"icon_project_new_{form}_panel").click().run()
        for number, text in enumerate(texts):
            key = f"project_field_{number}_new_{form}_panel"
            is_long = key in {area.key for area in page.text_area}
            (page.text_area(key=key) if is_long else page.text_input(key=key)).set_value(text)
        save(page)
        assert changes(project) == [call]
        assert "project_confirm_panel" not in keys(page)


def test_forgetting_a_plan_with_its_tasks_and_restoring_ask_first(page: AppTest, project: ScriptedService) -> None:
    page.context["timezone"] = "Asia/Seoul"
    open_project_tab(page)
    page.session_state["project_snapshots_panel"] = True
    page.run()
    asking = f"project_ask_{SNAPSHOT.name}_panel"
    questions: tuple[tuple[Callable[[], AppTest], str, tuple[str, str]], ...] = (
        (
            lambda: pick(page, "active_plan_panel", "메모리에서 삭제"),
            "‘여름 배포’ 계획을 할 일까지 모두 메모리에서 삭제할까요?",
            ("forget", "plan-1"),
        ),
        (
            lambda: page.button(key=asking).click().run(),
            "2026-11-20 12:00:00의 상태로 복원할까요?",
            ("restore", SNAPSHOT.name),
        ),
    )
    for ask, question, call in questions:
        project.projects.calls.clear()
        ask()
        assert question in page_text(page)
        page.button(key="project_cancel_panel").click().run()
        assert changes(project) == []
        ask()
        save(page)
        assert changes(project) == [call]


def test_damaged_memory_says_which_file_and_offers_the_newest_snapshot(page: AppTest, project: ScriptedService) -> None:
    project.projects.view = ProjectView(ROOT, "shop", NO_RULES, (SNAPSHOT,), damage="context.json: line 1")
    open_project_tab(page)
    for warning in page.warning:
        assert "context.json 파일이 손상되어" in warning.value
        assert warning.value.endswith("(line 1)")
        assert "가장 최근 스냅샷으로 복원하거나 새로 시작할 수 있습니다." in warning.value
    assert len(page.warning) == 2  # the card and the tab
    page.button(key="project_ask_damage_panel").click().run()
    save(page)
    assert changes(project) == [("restore", SNAPSHOT.name)]
    project.projects.view = ProjectView(ROOT, "shop", NO_RULES, (), damage="workflow.json")
    assert "복원할 스냅샷이 없습니다." in page.run().warning[0].value


@pytest.mark.parametrize("snapshots", [(), (SNAPSHOT,)])
@pytest.mark.parametrize("surface", ["panel", "chat"])
def test_a_damaged_memory_starts_over_once_that_is_confirmed(
    page: AppTest, project: ScriptedService, surface: str, snapshots: tuple[SnapshotView, ...]
) -> None:
    project.projects.view = ProjectView(ROOT, "shop", NO_RULES, snapshots, damage="workflow.json")
    open_project_tab(page).button(key=f"project_ask_start_over_{surface}").click().run()
    assert "빈 메모리로 새로 시작할까요?" in page_text(page)
    page.button(key=f"project_cancel_{surface}").click().run()
    assert changes(project) == []
    page.button(key=f"project_ask_start_over_{surface}").click().run()
    save(page, surface)
    assert changes(project) == [("start_over",)]


def test_rules_say_whether_they_changed_are_agreed_to_or_left_out(page: AppTest, project: ScriptedService) -> None:
    changed = rules("changed", FILE, difference=("-하나", "+둘"), agreed_at=datetime.now(UTC))
    project.projects.view = replace(VIEW, rules=changed)
    assert "규칙이 바뀌었습니다. 동의하기 전에는 예전 규칙을 씁니다." in page_text(open_project_tab(page))
    assert [code.value for code in page.code] == ["-하나\n+둘"]
    project.projects.refusal = InputError("rules_changed")
    page.button(key="project_agree_panel").click().run()
    assert "규칙" in page.error[0].value

    bad = replace(FILE, path=".cursor/rules/bad.mdc", kind="listed", problem="bad_globs", sent_bytes=0)
    refused = replace(FILE, path="CLAUDE.md", refusal="too_large", text="", sent_bytes=0)
    agreed_at = datetime(2026, 11, 20, tzinfo=UTC)
    agreed = rules("agreed", bad, refused, exceeded=("files", "folders"), agreed_at=agreed_at)
    project.projects.view = replace(VIEW, rules=agreed)
    text = page_text(page.run())
    assert "2026-11-20에 동의한 규칙을 쓰고 있습니다." in text
    assert "project_agree_panel" not in keys(page)
    assert "쓰지 않음: `globs`를 읽을 수 없거나" in text
    assert "읽지 않음: 너무 커서 읽을 수 없습니다." in text
    assert "규칙 파일이 64개를 넘어" in text
    assert "규칙 폴더가 200개를 넘어" in text
