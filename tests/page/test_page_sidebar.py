from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from streamlit.testing.v1 import AppTest

from component import widget
from component.sidebar.listed_session import OPENED_BYTES
from graph.value.view import ExportSize
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import keys, open_page, page_text, say, slider_of, store_session


def rows(page: AppTest) -> list[str]:
    return [button.key for button in page.sidebar.button if button.key and button.key.startswith("session_")]


def test_slider_is_the_seeds(page: AppTest) -> None:
    slider = slider_of(page.run())
    assert slider.label == "요약 압축률"
    assert (slider.min, slider.max, slider.step, slider.value) == (0.1, 0.5, 0.05, 0.3)
    assert page.button(key="open_settings").label == "⚙️ 고급 설정"
    for mark in ("0.1 짧게", "0.3 균형", "0.5 상세"):
        assert mark in page_text(page)


def test_slider_belongs_to_its_session(page: AppTest, service: ScriptedService) -> None:
    first, second = store_session(service, 1), store_session(service, 1)
    slider_of(open_page(page, first)).set_value(0.5).run()
    assert service.stored[first].compression_rate == 0.5
    page.button(key=f"session_{second}").click().run()
    assert slider_of(page).value == 0.3
    page.button(key=f"session_{first}").click().run()
    assert slider_of(page).value == 0.5


def test_sessions_stand_under_the_day_of_the_users_zone(page: AppTest, service: ScriptedService) -> None:
    page.context["timezone"] = "Pacific/Kiritimati"
    now = datetime.now(UTC)
    for days in (0, 1, 5, 40):
        identifier = store_session(service, 1)
        service.stored[identifier].updated_at = now - timedelta(days=days)
    page.run()
    assert rows(page) == ["session_session-1", "session_session-2", "session_session-3", "session_session-4"]
    said = [element.value for element in page.sidebar.markdown]
    heads = [said.index(f":small[:gray[{name}]]") for name in ("오늘", "어제", "지난 7일", "이전")]
    assert heads == sorted(heads)


def test_open_chat_stands_in_the_list_and_is_marked_though_it_is_an_old_one(
    page: AppTest, service: ScriptedService
) -> None:
    now = datetime.now(UTC)
    for days in range(33):
        service.stored[store_session(service, 1)].updated_at = now - timedelta(days=days)
    open_page(page, "session-32")
    shown = rows(page)
    assert (len(shown), shown[-1]) == (31, "session_session-32")
    marked = [block.proto.id for block in page.sidebar.get("flex_container") if "open_session" in block.proto.id]
    assert len(marked) == 1
    assert marked[0].endswith("open_session_session-32")
    assert page.button(key="more_sessions").label == "대화 2개 더 보기"
    page.button(key="more_sessions").click().run()
    assert len(rows(page)) == 33
    assert len(set(rows(page))) == 33


def test_search_narrows_the_list(page: AppTest, service: ScriptedService) -> None:
    first, second = store_session(service, 1), store_session(service, 1)
    service.stored[first].title, service.stored[second].title = "Seoul trip", "세금 정리"
    assert page.run().text_input(key="search").placeholder == "대화 검색"
    page.text_input(key="search").set_value("세금").run()
    assert rows(page) == [f"session_{second}"]
    page.text_input(key="search").set_value("없는 말").run()
    assert rows(page) == []
    assert "검색 결과가 없습니다." in page_text(page)


def test_a_dialog_goes_with_its_session(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    page.run().menu_button(key=f"menu_{identifier}").click("이름 바꾸기").run()
    service.delete(identifier)
    assert "dialog_confirm" not in keys(page.run())
    assert "open_dialog" not in page.session_state


def test_a_chat_is_renamed_in_a_dialog_that_stays_until_it_is_closed(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    stored = service.stored[identifier]
    page.run().menu_button(key=f"menu_{identifier}").click("이름 바꾸기").run()
    page.text_input(key="new_title").set_value("버릴 이름")
    page.button(key="dialog_cancel").click().run()
    page.menu_button(key=f"menu_{identifier}").click("이름 바꾸기").run()
    assert "이름을 입력해 주세요." not in page_text(page.run())
    for title in ("", "   "):
        page.text_input(key="new_title").set_value(title)
        page.button(key="dialog_confirm").click().run()
        assert stored.title == "질문 1"
        assert "이름을 입력해 주세요." in page_text(page)
        assert not page.error
    page.text_input(key="new_title").set_value("a [link](http://x) *b*")
    page.button(key="dialog_confirm").click().run()
    assert stored.title == "a [link](http://x) *b*"
    assert page.button(key=f"session_{identifier}").label == r"a \[link\](http\://x) \*b\*"
    assert "dialog_confirm" not in keys(page.run())


@pytest.mark.parametrize(
    ("size", "offered", "note", "note_without"),
    [
        (ExportSize(OPENED_BYTES, 900, 900), [], "다시 가져올 수 있습니다", ""),
        (ExportSize(21 * 2**20, 20 * 2**20, 0), ["images"], "21,504 KB", "다시 가져올 수 있습니다"),
        (ExportSize(21 * 2**20, 0, 20 * 2**20), ["long_texts"], "21,504 KB", "다시 가져올 수 있습니다"),
        (
            ExportSize(21 * 2**20, 9 * 2**20, 9 * 2**20),
            ["images", "long_texts"],
            "21,504 KB",
            "다시 가져올 수 있습니다",
        ),
        (ExportSize(21 * 2**20, 10 * 2**20, 0), ["images"], "21,504 KB", "11,264 KB"),
        (ExportSize(21 * 2**20, 0, 0), [], "graph.admin import", ""),
    ],
)
def test_a_file_that_is_too_large_to_be_opened_again_says_so(
    page: AppTest, service: ScriptedService, *, size: ExportSize, offered: list[str], note: str, note_without: str
) -> None:
    assert f"FILE_BYTES = {OPENED_BYTES // 2**20} * 1024 * 1024;" in widget.read_assets("attach.js")
    service.size = size
    identifier = store_session(service, 1)
    page.run().menu_button(key=f"menu_{identifier}").click("내보내기").run()
    assert note in page_text(page)
    names = [f"export_without_{part}" for part in ("images", "long_texts")]
    assert [box.key for box in page.checkbox if box.key in names] == [f"export_without_{part}" for part in offered]
    for part in offered:
        page.checkbox(key=f"export_without_{part}").check().run()
    if offered:
        assert note_without in page_text(page)
        assert note not in page_text(page)


def test_new_chat_leaves_the_session_as_it_is(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 2)
    open_page(page, identifier).button(key="new_chat").click().run()
    assert "session" not in page.query_params
    assert "suggestion_0" in keys(page)
    assert len(service.stored[identifier].turns) == 2


@pytest.mark.parametrize(
    ("locale", "language", "label"),
    [("ko-KR", None, "새 대화"), ("ko", None, "새 대화"), ("de-DE", None, "New chat"), ("ko-KR", "en", "New chat")],
)
def test_language_is_the_servers_or_else_the_browsers(
    page: AppTest, service: ScriptedService, locale: str, language: str | None, label: str
) -> None:
    service.settings = service.settings.model_copy(update={"turnfold_language": language})
    page.context["locale"] = locale
    assert page.run().button(key="new_chat").label == label


def test_language_is_switched_in_place_and_leaves_the_theme(page: AppTest) -> None:
    page.context["locale"] = "ko-KR"
    page.run().segmented_control(key="theme").set_value("dark").run()
    assert page.segmented_control(key="theme").options == ["라이트", "다크", "시스템 설정"]
    page.segmented_control(key="language").set_value("en").run()
    assert page.segmented_control(key="theme").value == "dark"
    assert page.segmented_control(key="theme").options == ["Light", "Dark", "System"]
    assert slider_of(page).label == "Summary length"
    assert say(page, "Hello").button(key="new_chat").label == "New chat"
