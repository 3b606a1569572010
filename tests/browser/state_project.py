"""The states of a project: its choice, its card, its tab and its forms, what is refused, what is damaged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, expect

from graph.file.root_folder import RootFolders
from graph.project.project_memory import ProjectMemory
from graph.project.workflow_manager import WorkflowManager
from graph.value.project_view import ProjectView
from tests.browser.stage import Stage

RULES: Final = "# 가게\n\n- 짧게 답한다. <!-- 사람만 본다 -->\n- 숨은\u200b 글자와 @docs/style.md\n"
TOKEN: Final = f"ghp_{'16C7e42F292c' * 3}"
# What can't be undone is red, as in the page's other questions.
DANGER: Final = "rgb(179, 38, 30)"
# How much lighter than the text around it an element's colour is, from -1 to 1. The canvas reads every notation.
LIGHTER_THAN_TEXT: Final = """(element) => {
    const brush = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const light = (of) => {
        brush.fillStyle = getComputedStyle(of).color;
        brush.fillRect(0, 0, 1, 1);
        const [red, green, blue] = brush.getImageData(0, 0, 1, 1).data;
        return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
    };
    return light(element) - light(element.closest("code"));
}"""


def root_of(stage: Stage) -> Path:
    return stage.folder / "projects" / "shop"


def view(stage: Stage) -> ProjectView:
    return stage.service.projects.get(str(root_of(stage)))


def fill(root: Path) -> None:
    """Writes the files of a project."""
    (root / ".cursor" / "rules").mkdir(parents=True)
    (root / "AGENTS.md").write_text(RULES, encoding="utf-8")
    (root / ".cursor" / "rules" / "bad.mdc").write_text("---\nalwaysApply: maybe\n---\nx\n", encoding="utf-8")
    (root / "CLAUDE.md").write_bytes(b"\0\1")
    (root / ".cursorrules").write_bytes(b"\0\1")
    (root / "app.py").write_text("x", encoding="utf-8")
    (root / "old.py").write_text("x", encoding="utf-8")


def note(stage: Stage, root: Path) -> None:
    """Notes something of everything in its memory."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    memory = ProjectMemory(RootFolders([root]), root, clock=lambda: yesterday)
    WorkflowManager.load(memory).name_project("가게")  # the next change takes a snapshot
    workflow, context = stage.service.projects.workflow(str(root)), stage.service.projects.context(str(root))
    workflow.open_plan("예전 정리", "예전 화면을 지운다")
    workflow.open_plan("배포", "다음 주까지 낸다")
    done, active, _ = [workflow.open_task(title) for title in ("시험 돌리기", "릴리스 노트 쓰기", "태그 달기")]
    workflow.complete_task(done.id)
    workflow.start_task(active.id)
    first = context.record_decision("포트는 8501을 쓴다")
    context.record_decision("포트는 8502를 쓴다", replaces=first.id)
    context.note_open_files(["app.py", "old.py"])
    (root / "old.py").unlink()
    context.edit_summary("배포를 준비하고 있다.")


def inside(stage: Stage, name: str) -> Locator:
    """Finds a part of the tab by its name."""
    return stage.panel.locator(f".st-key-project_{name}_panel").first


def press(stage: Stage, name: str) -> None:
    stage.panel.locator(f":is(.st-key-project_{name}_panel, .st-key-icon_project_{name}_panel) button").first.click()


def save(stage: Stage, *texts: str) -> None:
    """Fills the open form of the tab and saves it."""
    for number, typed in enumerate(texts):
        stage.panel.get_by_role("textbox").nth(number).fill(typed)
    press(stage, "confirm")
    expect(inside(stage, "confirm")).to_have_count(0)


def pick_in_tab(stage: Stage, name: str, choice: str) -> None:
    stage.choose(choice, stage.panel.locator(f".st-key-menu_project_{name}_panel").first)


def chosen(stage: Stage) -> None:
    root = root_of(stage)
    fill(root)
    note(stage, root)
    stage.visitor.open()
    stage.open_sidebar()
    stage.visitor.open_settings(stage.words.project.tab)
    box = stage.visitor.find_choice("project_listed").get_by_role("combobox")
    box.click()
    stage.visitor.page.get_by_role("option", name=root.name).first.click()
    expect(stage.visitor.find("project_below")).to_be_visible()
    stage.close_dialog()
    expect(stage.visitor.find("known")).to_contain_text("릴리스 노트 쓰기")


def known(stage: Stage) -> None:
    stage.close_sidebar()
    expect(stage.visitor.find("known")).to_contain_text(stage.words.project.card_rules)
    # The card stands at the top, however much room is below it: what it grows by doesn't move it.
    expect(stage.visitor.find("empty")).to_have_css("justify-content", "safe flex-start")


def line_edited(stage: Stage) -> None:
    stage.choose(stage.words.steering.edit, stage.visitor.find("menu_project_line_3_chat"))
    expect(stage.visitor.find("known").get_by_role("textbox")).to_have_value("포트는 8502를 쓴다")


def text_refused(stage: Stage) -> None:
    stage.visitor.find("known").get_by_role("textbox").fill(TOKEN)
    stage.button("project_confirm_chat").click()
    expect(stage.visitor.find("known").get_by_test_id("stAlert")).to_contain_text(stage.words.input_reasons["secret"])


def tab_open(stage: Stage) -> None:
    stage.button("project_cancel_chat").click()
    expect(stage.visitor.find("known").get_by_role("textbox")).to_have_count(0)
    stage.open_panel()
    stage.panel.get_by_role("tab", name=stage.words.project.tab).click()
    expect(inside(stage, "agree")).to_be_visible()


def rules_agreed(stage: Stage) -> None:
    press(stage, "agree")
    expect(inside(stage, "agree")).to_have_count(0)
    expect(stage.visitor.find("known")).not_to_contain_text(stage.words.project.card_rules)


def boxes_open(stage: Stage) -> None:
    for name in ("other_plans", "done", "replaced", "rule_0"):
        inside(stage, name).locator("summary").click()
    expect(inside(stage, "rule_0").get_by_test_id("stCode")).to_contain_text("사람만 본다")
    expect(inside(stage, "replaced")).to_contain_text("포트는 8501을 쓴다")


def task_form(stage: Stage) -> None:
    press(stage, "new_tasks")
    expect(inside(stage, "confirm")).to_be_visible()


def task_done(stage: Stage) -> None:
    """A task that is noted, the one before it that is done and the next one that is begun: all are stored."""
    save(stage, "공지 쓰기")
    expect(inside(stage, "tasks")).to_contain_text("공지 쓰기")
    press(stage, "complete_task_0")
    expect(inside(stage, "tasks").get_by_text(stage.words.project.done_tasks.format(count=2))).to_be_visible()
    pick_in_tab(stage, "task_0", stage.words.project.start_task)
    expect(inside(stage, "row_of_task_0")).to_contain_text(stage.words.project.is_active)
    plan = view(stage).active_plan
    assert plan is not None
    assert [(task.title, task.is_active, task.is_done) for task in plan.tasks] == [
        ("시험 돌리기", False, True),
        ("릴리스 노트 쓰기", False, True),
        ("태그 달기", True, False),
        ("공지 쓰기", False, False),
    ]


def decision_replaced(stage: Stage) -> None:
    pick_in_tab(stage, "decision_0", stage.words.steering.edit)
    save(stage, "포트는 8503을 쓴다")
    expect(inside(stage, "row_of_decision_0")).to_contain_text("포트는 8503을 쓴다")
    decisions = [(decision.text, decision.is_in_force) for decision in view(stage).decisions]
    assert decisions[-2:] == [("포트는 8502를 쓴다", False), ("포트는 8503을 쓴다", True)]


def plan_form(stage: Stage) -> None:
    press(stage, "new_plan")
    expect(stage.panel.get_by_role("textbox")).to_have_count(2)


def plan_made(stage: Stage) -> None:
    save(stage, "다음 판", "다음 달에 낸다")
    expect(inside(stage, "plan")).to_contain_text("다음 달에 낸다")
    plan = view(stage).active_plan
    assert plan is not None
    assert plan.title == "다음 판"


def forget_asked(stage: Stage) -> None:
    pick_in_tab(stage, "active_plan", stage.words.project.forget)
    expect(stage.panel.get_by_role("textbox")).to_have_count(0)
    expect(inside(stage, "confirm").locator("button")).to_have_css("background-color", DANGER)


def restore_asked(stage: Stage) -> None:
    press(stage, "cancel")
    inside(stage, "snapshots").locator("summary").click()
    inside(stage, "snapshots").get_by_role("button", name=stage.words.project.restore).first.click()
    expect(inside(stage, "confirm")).to_be_visible()


def restored(stage: Stage) -> None:
    save(stage)
    assert (view(stage).name, view(stage).plans) == ("가게", ())


def rules_changed(stage: Stage) -> None:
    (root_of(stage) / "AGENTS.md").write_text(RULES + "- 길게 답한다.\n", encoding="utf-8")
    press(stage, "new_files")
    press(stage, "cancel")
    code = inside(stage, "difference").get_by_test_id("stCode")
    expect(code).to_contain_text("+- 길게 답한다.")
    code.locator(".token.inserted").last.scroll_into_view_if_needed()  # what isn't seen isn't measured
    for kind in ("unchanged", "inserted"):  # not measured: its words are as light or dark as its text
        assert code.locator(f".token.{kind}.line").last.evaluate(LIGHTER_THAN_TEXT) == pytest.approx(0, abs=0.4)


def without_memory(stage: Stage) -> None:
    stage.close_panel()
    stage.button("without_memory").click()
    expect(stage.visitor.find("known")).to_contain_text(stage.words.project.card_fresh)


def started(stage: Stage) -> None:
    stage.service.projects.workflow(str(root_of(stage))).open_plan("다시 배포")
    stage.button("with_memory").click()
    expect(stage.visitor.find("known")).to_contain_text("다시 배포")
    stage.visitor.find("project_suggestions").locator("button").first.click()
    stage.visitor.wait_for_end(1)
    stage.visitor.find("known_begun").locator("summary").click()
    expect(stage.visitor.find("known_begun")).to_contain_text("ACTIVE PLAN: ")


def damaged(stage: Stage) -> None:
    (root_of(stage) / ".ai-brain" / "context.json").write_text("{", encoding="utf-8")
    stage.open_sidebar()
    stage.button("new_chat").click()
    expect(stage.visitor.find("known").get_by_test_id("stAlert")).to_contain_text("context.json")
