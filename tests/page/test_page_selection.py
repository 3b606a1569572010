from __future__ import annotations

from datetime import UTC, datetime, timedelta

from streamlit.testing.v1 import AppTest

from graph.value.error import BusyError
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import keys, new_page, open_page, page_text, raw_html, store_session


def listed(page: AppTest) -> list[str]:
    return [button.key for button in page.sidebar.button if button.key and button.key.startswith("session_")]


def choose(page: AppTest, identifier: str, choice: str) -> AppTest:
    return page.menu_button(key=f"menu_{identifier}").click(choice).run()


def test_pinned_chats_stand_first_under_their_own_head(page: AppTest, service: ScriptedService) -> None:
    for days in (0, 40):
        service.stored[store_session(service, 1)].updated_at = datetime.now(UTC) - timedelta(days=days)
    choose(page.run(), "session-2", "고정")
    assert listed(page) == ["session_session-2", "session_session-1"]
    said = [element.value for element in page.sidebar.markdown]
    assert said.index(":small[:gray[고정됨]]") < said.index(":small[:gray[오늘]]")
    assert ":small[:gray[이전]]" not in said
    choose(page, "session-2", "고정 해제")
    assert listed(page) == ["session_session-1", "session_session-2"]
    assert ":small[:gray[고정됨]]" not in [element.value for element in page.sidebar.markdown]


def test_a_branch_is_made_of_a_chat_in_the_list(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 2)
    choose(page.run(), identifier, "새 대화로 분기")
    branch = page.query_params["session"]
    assert branch != identifier
    assert service.stored[branch].forked_after == 2
    assert "2턴까지 이어받은 분기" in page_text(page)


def test_ticked_chats_are_deleted_and_come_back(page: AppTest, service: ScriptedService) -> None:
    retained, gone, opened = (store_session(service, 1) for _ in range(3))
    open_page(page, opened).button(key="icon_select").click().run()
    assert page.button(key="delete_ticked").disabled
    assert page.button(key="delete_ticked").label == "삭제"
    assert not [key for key in keys(page) if key.startswith("menu_")]
    for identifier in (gone, opened):
        page.checkbox(key=f"tick_{identifier}").check().run()
    assert page.button(key="delete_ticked").label == "2개 삭제"
    page.button(key="delete_ticked").click().run()
    assert list(service.stored) == [retained]
    assert "session" not in page.query_params
    assert "delete_ticked" not in keys(page)
    assert "대화 2개를 삭제했습니다." in raw_html(page)
    page.button(key="undo_delete").click().run()
    assert set(service.stored) == {retained, gone, opened}
    assert page.query_params["session"] == opened
    assert "undo_delete" not in keys(page)


def test_one_chat_is_deleted_without_a_question_and_another_joins_it(page: AppTest, service: ScriptedService) -> None:
    retained, gone, opened = (store_session(service, 1) for _ in range(3))
    service.stored[opened].title = "a <b>"
    choose(open_page(page, opened), opened, "삭제")
    assert list(service.stored) == [retained, gone]
    assert page.title[0].value == "오래 이야기해도 흐름을 잃지 않는 대화"
    assert "session" not in page.query_params
    assert "‘a &lt;b&gt;’ 대화를 삭제했습니다." in raw_html(page)
    choose(page, gone, "삭제")
    assert list(service.stored) == [retained]
    assert "대화 2개를 삭제했습니다." in raw_html(page)
    reloaded = new_page().run()
    assert "대화 2개를 삭제했습니다." in raw_html(reloaded)
    page.button(key="undo_delete").click().run()
    assert set(service.stored) == {retained, gone, opened}
    assert page.query_params["session"] == opened
    assert "undo_delete" not in keys(reloaded.run())


def test_a_chat_that_was_opened_since_stays_open_when_the_deleted_one_comes_back(
    page: AppTest, service: ScriptedService
) -> None:
    gone, other = (store_session(service, 1) for _ in range(2))
    choose(open_page(page, gone), gone, "삭제")
    page.button(key=f"session_{other}").click().run()
    page.button(key="undo_delete").click().run()
    assert set(service.stored) == {gone, other}
    assert page.query_params["session"] == other


def test_a_chat_is_offered_as_two_kinds_of_file(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    service.stored[identifier].title = 'Q3/Q4: "계획" '
    choose(page.run(), identifier, "내보내기")
    assert [getattr(button, "label", "") for button in page.get("download_button")] == [
        "Markdown · 읽기용",
        "JSON Lines · 전체(다시 가져올 수 있음)",
    ]


def test_the_selection_can_be_left_and_a_refused_deletion_leaves_the_ticks(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 1)
    page.run().button(key="icon_select").click().run()
    page.checkbox(key=f"tick_{identifier}").check().run()
    service.refusal = BusyError()
    page.button(key="delete_ticked").click().run()
    assert list(service.stored) == [identifier]
    assert page.checkbox(key=f"tick_{identifier}").value is True
    assert "undo_delete" not in keys(page)
    page.button(key="cancel_selection").click().run()
    assert f"session_{identifier}" in keys(page)
    page.button(key="icon_select").click().run()
    assert page.checkbox(key=f"tick_{identifier}").value is False
    page.button(key="icon_select").click().run()  # which began it
    assert f"session_{identifier}" in keys(page)
