from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from streamlit.testing.v1 import AppTest

from component.format import escape_label
from graph.service import ChatService
from graph.value.error import InputError
from tests.fake.scripted_service import ScriptedService
from tests.fake.shown_project import PRIMED, ROOT, VIEW, primed_on
from tests.page.reading import keys, new_page, open_page, page_text, say, setting, store_session
from tests.page.reading_project import changes, choose_project, pick, save


def test_without_allowed_folders_the_page_has_nothing_of_projects(page: AppTest, service: ScriptedService) -> None:
    open_page(page, store_session(service, 4))
    drawn = str(page._tree)  # noqa: SLF001  # has no other name
    assert "project" not in drawn.lower().replace("project_root=''", "")
    assert "프로젝트" not in drawn
    assert not [option for option in service.sent if option.project_root is not None or option.has_memory is not None]
    say(page.button(key="new_chat").click().run(), "안녕")
    assert (service.sent[-1].project_root, service.sent[-1].has_memory) == (None, None)
    assert service.projects.calls == []


def test_the_project_of_an_open_chat_is_changed_there(page: AppTest, project: ScriptedService) -> None:
    identifier = store_session(project, 1)
    setting(open_page(page, identifier), "project_listed").set_value(ROOT).run()
    assert project.stored[identifier].project_root == ROOT
    assert page.button(key=f"session_{identifier}").help == escape_label(ROOT)
    setting(page, "project_listed").set_value("").run()
    assert project.stored[identifier].project_root == ""


def test_a_refused_folder_is_told_as_any_error_and_not_chosen(page: AppTest, project: ScriptedService) -> None:
    choose_project(page).text_input(key="project_below").set_value("../../etc").run()
    assert "서버 관리자가 허용한 프로젝트 폴더가 아닙니다." in page.error[0].value
    assert page.text_input(key="project_below").value == ""
    say(page, "안녕")
    assert project.stored["session-1"].project_root == ROOT


def test_a_project_that_went_away_leaves_a_page_to_use(page: AppTest, project: ScriptedService) -> None:
    identifier = store_session(project, 1)
    project.stored[identifier].project_root = "/srv/projects/gone"
    open_page(page, identifier)
    page.session_state["panel_tabs"] = "프로젝트"
    page.run()
    assert "서버 관리자가 허용한 프로젝트 폴더가 아닙니다." in page.error[0].value
    say(page, "그래도 이어서")
    assert len(project.stored[identifier].turns) == 2


def test_a_chat_takes_the_project_that_was_chosen_last(page: AppTest, project: ScriptedService) -> None:
    say(choose_project(page), "안녕")
    assert (project.sent[-1].project_root, project.sent[-1].has_memory) == (ROOT, None)
    another_tab = new_page().run()
    assert setting(another_tab, "project_listed").value == ROOT
    assert "이 대화는 다음을 알고 시작합니다" in page_text(another_tab)
    page.button(key="new_chat").click().run()
    assert setting(page, "project_listed").value == ROOT
    say(page, "다시")
    page.button(key="new_chat").click().run()
    setting(page, "project_listed").set_value("").run()
    say(page, "이번에는 없이")
    assert [session.project_root for session in project.stored.values()] == [ROOT, ROOT, ""]
    page.button(key="new_chat").click().run()
    assert setting(page, "project_listed").value == ""


def test_a_chat_may_start_without_memory(page: AppTest, project: ScriptedService) -> None:
    choose_project(page).button(key="without_memory").click().run()
    assert "이 대화는 프로젝트 메모리 없이 시작합니다." in page_text(page)
    assert "릴리스 노트" not in page_text(page)
    say(page, "안녕")
    assert (project.sent[-1].project_root, project.sent[-1].has_memory) == (ROOT, False)
    assert "이 대화는 프로젝트 메모리 없이 시작했습니다." in page_text(page)
    page.button(key="new_chat").click().run()
    assert "이 대화는 다음을 알고 시작합니다" in page_text(page)
    page.button(key="without_memory").click().run()
    say(page.button(key="with_memory").click().run(), "이번에는 메모리로")
    page.button(key="session_session-1").click().run()
    page.run()
    assert [session.has_memory for session in project.stored.values()] == [False, True]


def test_an_empty_card_has_no_doubt_of_itself(page: AppTest, project: ScriptedService) -> None:
    project.projects.view = replace(VIEW, primed=(replace(VIEW.primed[0], date=None),))
    text = page_text(choose_project(page))
    assert "지금과 다를 수 있습니다." not in text
    assert "날짜 없음" not in text


def test_the_card_tells_each_line_with_its_age(page: AppTest, project: ScriptedService) -> None:
    # Not the day on which the module was imported: a long run may pass midnight.
    project.projects.view = replace(VIEW, primed=primed_on(datetime.now(UTC).date()))
    text = page_text(choose_project(page))
    assert "이 대화는 다음을 알고 시작합니다" in text
    for line in (
        "가게 :small[:gray[오늘]]",
        "여름 배포 :small[:orange[20일 전 · 오래됨]]",
        "릴리스 노트 :small[:gray[어제]]",
        "포트는 8502 :small[:gray[3일 전]]",
        "old.py :small[:orange[날짜 없음 · 지금은 없음]]",
        "여기 없는 더 오래된 결정 4개",
        "지금과 다를 수 있습니다. 새로 입력한 내용이 우선합니다.",
    ):
        assert line in text
    text = page_text(page.segmented_control(key="language").set_value("en").run())
    assert ("get", "en") in project.projects.calls
    assert "This chat starts knowing the following" in text
    assert "여름 배포 :small[:orange[20 days ago · old]]" in text
    page.segmented_control(key="language").set_value("ko").run()
    project.projects.view = replace(VIEW, primed=PRIMED[:1], older_decisions=0)
    assert "아직 적어 둔 것이 없습니다." not in page_text(page.run())
    page.session_state["panel_tabs"] = "프로젝트"
    assert page_text(page.run()).count("아직 적어 둔 것이 없습니다.") == 1


def test_a_project_with_notes_has_suggestions_of_its_own_that_a_real_model_answers(
    page: AppTest, project: ScriptedService
) -> None:
    choose_project(page)
    embedded = project.settings
    project.settings = embedded.model_copy(update={"openai_base_url": "http://127.0.0.1:1/v1"})
    page.run()
    assert {"project_suggestion_0", "project_suggestion_1"} <= keys(page)
    assert "suggestion_0" not in keys(page)
    project.projects.view = replace(VIEW, primed=PRIMED[:1], older_decisions=0)
    assert "suggestion_0" in keys(page.run())
    project.projects.view, project.settings = VIEW, embedded
    assert "suggestion_0" in keys(page.run())
    assert "project_suggestion_0" not in keys(page)


def test_each_line_of_the_card_can_be_let_go(page: AppTest, project: ScriptedService) -> None:
    choose_project(page)
    for number, choice, call in (
        (1, "계획 완료", ("complete_plan", "plan-1")),
        (2, "완료", ("complete_task", "task-1")),
        (2, "메모리에서 삭제", ("forget", "task-1")),
        (3, "메모리에서 삭제", ("forget_decision", "decision-2")),
        (4, "닫기", ("note_open_files", ("closed", ["old.py"]))),
        (5, "메모리에서 삭제", ("edit_summary", "")),
        (6, "마지막 대화 삭제", ("forget_dialog",)),
    ):
        project.projects.calls.clear()
        pick(page, f"line_{number}_chat", choice)
        assert changes(project) == [call]


def test_each_line_of_the_card_can_be_edited(page: AppTest, project: ScriptedService) -> None:
    choose_project(page)
    for number, field, before, call in (
        (0, "edit_project_", "가게", ("name_project", "새 글")),
        (1, "edit_plan_plan-1", "여름 배포", ("rename", "plan-1", "새 글")),
        (2, "edit_task_task-1", "릴리스 노트", ("rename", "task-1", "새 글")),
        (3, "edit_decision_decision-2", "포트는 8502", ("record_decision", "새 글", ("replaces", "decision-2"))),
        (5, "edit_summary_", "배포 준비 중", ("edit_summary", "새 글")),
    ):
        project.projects.calls.clear()
        pick(page, f"line_{number}_chat", "편집")
        key = f"project_field_0_{field}_chat"
        typed = page.text_area(key=key) if number in {3, 5} else page.text_input(key=key)
        assert typed.value == before
        typed.set_value("  새 글 ")
        save(page, "chat")
        assert changes(project) == [call]
        assert "project_confirm_chat" not in keys(page)


def test_a_refused_text_stays_in_its_form_with_the_reason(page: AppTest, project: ScriptedService) -> None:
    pick(choose_project(page), "line_3_chat", "편집")
    project.projects.refusal = InputError("secret", "GitHub token")
    page.text_area(key="project_field_0_edit_decision_decision-2_chat").set_value("열쇠는 ghp_…")
    save(page, "chat")
    assert "비밀 정보로 보여 저장하지 않았습니다. (GitHub token)" in page.error[0].value
    assert page.text_area(key="project_field_0_edit_decision_decision-2_chat").value == "열쇠는 ghp_…"
    project.projects.refusal = None
    save(page, "chat")
    assert not page.error
    assert "project_confirm_chat" not in keys(page)


def test_a_folder_below_is_chosen_by_typing_and_its_memory_begins_the_next_chat(real_service: ChatService) -> None:
    real, (allowed,), page = real_service, real_service.projects.roots(), new_page().run()
    root = str(Path(allowed) / "shop")
    setting(page, "project_listed").set_value(allowed).run()
    page.text_input(key="project_below").set_value("shop/").run()
    assert page.text_input(key="project_below").value == "shop"
    workflow = real.projects.workflow(root)
    workflow.open_plan("배포")
    workflow.open_task("릴리스 노트")
    assert "릴리스 노트" in page_text(page.run())
    say(page, "안녕하세요")
    (item,) = real.sessions.list()
    list(real.turns.follow(item.session_id))
    assert real.sessions.get(item.session_id).project_root == root
    page.session_state["known_begun"] = True
    assert any("ACTIVE TASK: 릴리스 노트" in text.value for text in page.run().text)
    page.text_input(key="project_below").set_value("none").run()
    assert "없거나, 읽는 동안 다른 것으로 바뀌었습니다." in page.error[0].value
    assert real.sessions.get(item.session_id).project_root == root
