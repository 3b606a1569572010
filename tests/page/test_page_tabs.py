from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from graph.service import ChatService
from graph.value.error import DatabaseBusyError
from graph.value.view import ModelOption, SessionView
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import (
    new_page,
    open_page,
    open_settings,
    page_text,
    raw_html,
    say,
    setting,
    slider_of,
    store_session,
)

BIG = ModelOption("big-model", is_offline=False)


@pytest.fixture
def other_page(page: AppTest) -> AppTest:
    assert page is not None
    return new_page()


def chosen(view: SessionView) -> tuple[float, str, str]:
    return view.compression_rate, view.strategy, view.model


def choose(page: AppTest) -> None:
    slider_of(page).set_value(0.5).run()
    setting(page, "strategy").set_value("compaction").run()
    page.selectbox(key="model_ko").set_value("big-model").run()


@pytest.mark.parametrize("act", ["send", "regenerate", "configure"])
def test_a_tab_that_shows_old_settings_does_not_bring_them_back(
    page: AppTest, other_page: AppTest, service: ScriptedService, act: str
) -> None:
    service.models = (*service.models, BIG)
    identifier = store_session(service, 1)
    open_page(other_page, identifier)
    choose(open_page(page, identifier))
    acts: dict[str, Callable[[], object]] = {
        "send": lambda: say(other_page, "설정은 건드리지 않았어요"),
        "regenerate": lambda: other_page.button(key="regenerate").click().run(),
        "configure": lambda: slider_of(other_page).set_value(0.1).run(),
    }
    acts[act]()
    rate = 0.1 if act == "configure" else 0.5
    assert chosen(service.sessions.get(identifier)) == (rate, "compaction", "big-model")
    assert setting(other_page, "strategy").value == "compaction"
    assert other_page.selectbox(key="model_ko").value == "big-model"
    assert slider_of(other_page).value == rate


def test_how_much_a_model_thinks_can_be_chosen_where_it_is_known_to(page: AppTest, service: ScriptedService) -> None:
    service.models = (*service.models, replace(BIG, thinks=True))
    identifier = store_session(service, 1)
    open_page(page, identifier)
    assert "thinking_ko" not in [box.key for box in page.selectbox]
    page.selectbox(key="model_ko").set_value("big-model").run()
    box = page.selectbox(key="thinking_ko")
    assert (box.value, box.options) == ("", ["기본값", "끔", "낮음", "높음"])
    box.set_value("off").run()
    assert service.sessions.get(identifier).thinking == "off"
    page.selectbox(key="model_ko").set_value("offline-mini").run()
    assert service.sessions.get(identifier).thinking == "off"
    page.selectbox(key="model_ko").set_value("big-model").run()
    assert service.sessions.get(identifier).thinking == "off"
    assert page.selectbox(key="thinking_ko").value == "off"


def test_what_is_chosen_for_the_first_message_outlasts_a_change_of_the_language(
    page: AppTest, service: ScriptedService
) -> None:
    page.context["locale"] = "ko-KR"
    service.models = (*service.models, replace(BIG, thinks=True))
    choose(page.run())
    page.selectbox(key="thinking_ko").set_value("high").run()
    for language, level, section in (("en", "High", "Summaries"), ("ko", "높음", "요약")):
        page.segmented_control(key="language").set_value(language).run()
        box = open_settings(page, section).selectbox(key=f"thinking_{language}")
        assert level in box.options
        assert (box.value, page.selectbox(key=f"strategy_{language}").value) == ("high", "compaction")
    say(page, "첫마디")
    (sent,) = service.sent
    assert (sent.compression_rate, sent.strategy, sent.model, sent.thinking) == (0.5, "compaction", "big-model", "high")


def test_a_change_counts_though_its_own_run_was_overtaken(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    open_page(page, identifier)
    # As the next run finds it: the widget has its value, and nobody was told of a change.
    page.session_state[str(slider_of(page).key)] = 0.5
    page.run()
    assert service.sessions.get(identifier).compression_rate == 0.5
    assert "현재 압축률: 0.5" in page_text(page)


def test_a_choice_that_could_not_be_stored_is_taken_back(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    open_page(page, identifier)
    service.refusal = DatabaseBusyError()
    slider_of(page).set_value(0.5).run()
    assert "다른 프로세스가 데이터베이스를" in page.error[0].value
    assert slider_of(page).value == 0.3
    say(page, "이어서")
    assert service.stored[identifier].compression_rate == 0.3


def test_a_model_that_the_list_lacks_just_now_stays_the_sessions(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    service.stored[identifier].model = "gone-model"
    open_page(page, identifier)
    assert not page.exception
    assert page.selectbox(key="model_ko").value == "gone-model"
    assert page.selectbox(key="model_ko").options == ["offline-mini · 내장", "gone-model"]
    say(page, "이어서")
    assert service.stored[identifier].model == "gone-model"


@pytest.mark.slow
def test_two_tabs_on_the_real_service(real_service: ChatService) -> None:
    tabs = [new_page() for _ in range(2)]
    identifier = real_service.sessions.new_id()
    real_service.turns.send(identifier, "안녕하세요")
    list(real_service.turns.follow(identifier))
    for tab in tabs:
        open_page(tab, identifier)
    slider_of(tabs[0]).set_value(0.5).run()
    setting(tabs[0], "strategy").set_value("compaction").run()
    say(tabs[1], "감사합니다")
    list(real_service.turns.follow(identifier))
    assert chosen(real_service.sessions.get(identifier)) == (0.5, "compaction", "offline-mini")
    assert slider_of(tabs[1].run()).value == 0.5


def test_chat_deleted_elsewhere_while_it_answers_leads_to_the_empty_page(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 1)
    service.status = "running"
    say(open_page(page, identifier), "길게 설명해 줘")
    service.deleted_when_asked_for = "live"
    page.run()
    assert not page.exception
    assert page.title[0].value == "오래 이야기해도 흐름을 잃지 않는 대화"
    assert "대화를 찾을 수 없습니다" in page.error[0].value
    say(page, "새로 시작")
    assert not page.error


@pytest.mark.parametrize(
    "name", ["records", *(pytest.param(name, marks=pytest.mark.slow) for name in ("statistics", "gauge"))]
)
def test_chat_deleted_between_two_questions_of_the_page_leaves_a_page_to_use(
    page: AppTest, service: ScriptedService, name: str
) -> None:
    identifier = store_session(service, 1)
    service.deleted_when_asked_for = name
    open_page(page, identifier)
    assert not page.exception
    assert "대화를 찾을 수 없습니다" in page.error[0].value
    assert page.chat_input(key="ask")
    page.run()
    assert page.title[0].value == "오래 이야기해도 흐름을 잃지 않는 대화"
    say(page, "새로 시작")
    assert not page.error


@pytest.mark.parametrize("turn_count", [0, 1])
def test_the_settings_tell_the_sliders_rate(page: AppTest, service: ScriptedService, turn_count: int) -> None:
    open_page(page, store_session(service, 1)) if turn_count else page.run()
    for rate, share in ((0.35, "원문의 35% 길이"), (0.3, "원문의 30% 길이")):
        slider_of(page).set_value(rate).run()
        assert f"현재 압축률: {rate}" in page_text(page)
        assert f"<span>요약 압축률</span><b>{share}</b><button" in raw_html(page)
    page.session_state["panel_tabs"] = "통계"
    assert not page.run().slider
    page.session_state["panel_tabs"] = "요약"
    assert slider_of(page.run()).value == 0.3
    slider_of(page).set_value(0.2).run()
    say(page, "안녕")
    assert next(iter(service.stored.values())).compression_rate == 0.2


def test_only_what_was_chosen_goes_with_the_first_message_and_not_with_the_next_chats(
    page: AppTest, service: ScriptedService
) -> None:
    service.models = (*service.models, BIG)
    page.run().selectbox(key="model_ko").set_value("big-model").run()
    slider_of(page).set_value(0.45).run()
    say(page, "안녕")
    assert page.selectbox(key="model_ko").value == "big-model"
    assert slider_of(page).value == 0.45
    page.button(key="new_chat").click().run()
    say(page, "둘째 대화")
    sent = [(options.compression_rate, options.strategy, options.model) for options in service.sent]
    assert sent == [(0.45, None, "big-model"), (None, None, None)]
    assert slider_of(page).value == 0.3
