from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from component.words.text import LANGUAGES, Language
from component.words.wording import words_of
from graph.value.error import BusyError, DatabaseBusyError, DiskFullError, InputError
from tests.fake.scripted_service import ScriptedService
from tests.fake.scripted_session import make_record
from tests.page.reading import NEW, as_tab, folds, keys, open_page, page_text, raw_html, say, setting, store_session

TITLE = "오래 이야기해도 흐름을 잃지 않는 대화"


def test_empty_page_offers_suggestions_and_says_what_answers(page: AppTest, service: ScriptedService) -> None:
    page.run()
    assert not page.exception
    assert page.title[0].value == TITLE
    assert {"open_example", "suggestion_0", "suggestion_1", "suggestion_2"} <= keys(page)
    assert "지금은 체험용 내장 모델입니다." in page_text(page)
    assert "`OPENAI_API_KEY`" in page_text(page)
    assert "세 턴(질문과 답변 세 쌍)마다 하나로 요약해 기억합니다." in page_text(page)
    setting(page, "strategy").set_value("window").run()
    assert "최근 10턴만 보냅니다." in page_text(page)
    label = page.button(key="suggestion_1").label
    page.button(key="suggestion_1").click().run()
    assert [turn.user_text for turn in service.stored["session-1"].turns] == [label]
    assert page.query_params["session"] == "session-1"


def test_the_example_opens_in_the_pages_language(page: AppTest, service: ScriptedService) -> None:
    page.context["locale"] = "en-US"
    assert page.run().button(key="open_example").label == "Open an example chat"
    page.button(key="open_example").click().run()
    assert page.query_params["session"] == "example-en"
    service.refusal = BusyError()
    page.button(key="new_chat").click().run()
    page.button(key="open_example").click().run()
    assert "session" not in page.query_params
    assert not page.error


def test_message_is_answered_and_the_last_answer_made_anew(page: AppTest, service: ScriptedService) -> None:
    page.context["timezone"] = "Asia/Seoul"
    say(page.run(), "안녕하세요", "둘")
    assert not page.exception
    assert "안녕하세요" in [text.value for text in page.text]
    assert "들었습니다: 안녕하세요" in page_text(page)
    assert page.query_params["session"] == "session-1"
    assert service.sent[0].time_zone == "Asia/Seoul"
    assert "stop" not in keys(page)
    assert [button.key for button in page.button].count("regenerate") == 1
    page.button(key="regenerate").click().run()
    assert [turn.attempt for turn in service.stored["session-1"].turns] == [1, 2]


def test_folds_are_marked_between_the_turns_and_say_what_was_kept_word_for_word(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 7)
    open_page(page, identifier)
    assert folds(page) == [
        f"위 {turns}턴은 요약으로 대체되었습니다(원문은 그대로) · 45자 → 13자" for turns in ("1-3", "4-6")
    ]
    service.stored[identifier].records[0] = replace(make_record((1, 2, 3), original_chars=41), kind="verbatim")
    page.run()
    assert "1-3턴 원문 그대로 · 41자" in folds(page)
    assert "원문 그대로 보냅니다" in page_text(page)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("too_long", "7 > 5"), "너무 깁니다. 나누어 보내 주세요. (7 > 5)"),
        (DatabaseBusyError(), "다른 프로세스가 데이터베이스를 잠그고 있습니다"),
    ],
)
def test_refused_message_says_why_and_goes_back_into_its_field(
    page: AppTest, service: ScriptedService, error: InputError | DatabaseBusyError, sentence: str
) -> None:
    page.run()
    service.refusal = error
    say(page, "잃으면 안 되는 글")
    assert sentence in page.error[0].value
    assert page.chat_input(key="ask").proto.value == "잃으면 안 되는 글"
    assert not service.stored
    say(page, "다시")
    assert not page.error


def test_a_refusal_that_is_no_fault_is_told_in_passing(page: AppTest, service: ScriptedService) -> None:
    page.run()
    service.refusal = BusyError()
    say(page, "잃으면 안 되는 글")
    assert "아직 답변하는 중입니다" in page.toast[0].value
    assert page.chat_input(key="ask").proto.value == "잃으면 안 되는 글"
    assert not page.error
    assert not page.run().toast


def test_unknown_session_in_the_address_leads_to_the_empty_page(page: AppTest) -> None:
    open_page(page, "session-404")
    assert not page.exception
    assert "대화를 찾을 수 없습니다" in page.error[0].value
    assert page.title[0].value == TITLE
    assert "session" not in page.query_params


def test_fold_failures_are_told_from_the_third_on(page: AppTest, service: ScriptedService) -> None:
    session = service.stored[store_session(service, 4)]
    session.fold_failures = 2
    assert not open_page(page, "session-1").warning
    session.fold_failures, session.fold_error_code = 3, "deadline"
    page.run()
    assert "요약을 3번 연속 만들지 못했습니다" in page.warning[0].value
    assert "정해진 시간 안에 답변이 끝나지 않았습니다" in page.warning[0].value
    session.fold_error_code = "summary_language"
    assert "요약이 사용자의 말과 다른 언어로 쓰였습니다" in page.run().warning[0].value


def test_a_thousand_turns_show_the_last_thirty_and_cost_no_more_than_forty(
    page: AppTest, service: ScriptedService
) -> None:
    def shown() -> list[str]:
        return [str(text.value) for text in page.text if str(text.value).startswith("질문")]

    costs = []
    for turn_count in (40, 1_000):
        open_page(page, store_session(service, turn_count))
        assert shown() == [f"질문 {number}" for number in range(turn_count - 29, turn_count + 1)]
        service.calls.clear()
        say(page, "하나 더")
        costs.append((list(service.calls), len(list(page.main))))
    assert costs[0] == costs[1]
    assert len(costs[1][0]) <= 21
    assert page.button(key="earlier").label == "이전 대화 더 보기 (971턴)"
    assert "이 앞의 971턴은 인쇄되지 않았습니다." in raw_html(page)
    page.button(key="earlier").click().run()
    assert shown() == [f"질문 {number}" for number in range(942, 1_001)]


def _page_that_hears() -> None:
    import streamlit as st  # noqa: PLC0415  # it runs as a page of its own

    from component import page  # noqa: PLC0415  # see above
    from component.chat import composer  # noqa: PLC0415  # see above

    st.button("", key="hear", on_click=lambda: composer.take_sent(st.session_state["sent"]))
    page.main()


@pytest.fixture
def hearing(service: ScriptedService) -> AppTest:
    del service
    return as_tab(AppTest.from_function(_page_that_hears, default_timeout=60))


def hear(page: AppTest, identifier: str, message_id: str, text: str) -> AppTest:
    """Has the page hear of a message with files, as its script tells it once more after a reload."""
    message = {"id": message_id, "text": text, "session": identifier, "is_new": False, "files": 9, **NEW}
    page.session_state["sent"] = [message]
    return page.button(key="hear").click().run()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_message_whose_files_are_gone_goes_back_and_is_not_sent_without_them(
    hearing: AppTest, service: ScriptedService, language: Language
) -> None:
    identifier = store_session(service, 1)
    open_page(hearing, identifier).session_state["language"] = language
    hear(hearing, identifier, "0" * 24, "무엇이 적혀 있나요?")
    assert len(service.stored[identifier].turns) == 1
    assert words_of(language).attachment.reasons["lost"] in [error.value for error in hearing.error]
    assert f'data-refused="{"0" * 24}"' in raw_html(hearing)


def test_a_message_that_was_sent_with_its_files_is_taken_when_it_comes_again(
    hearing: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 1)
    session = service.stored[identifier]
    session.turns = [replace(session.turns[0], user_message_id=f"user-{'a' * 24}")]
    open_page(hearing, identifier)
    for text in ("무엇이 적혀 있나요?", ""):
        hear(hearing, identifier, "a" * 24, text)
        assert len(session.turns) == 1
        assert not hearing.error


def test_an_error_above_the_field_can_be_closed_and_goes_with_the_next_success(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 2)
    open_page(page, identifier)
    for key in ("icon_close_notice", "menu"):
        service.refusal = DiskFullError()
        page.menu_button(key=f"menu_{identifier}").click("이름 바꾸기").run()
        page.text_input(key="new_title").set_value("새 이름")
        page.button(key="dialog_confirm").click().run()
        assert len(page.error) == 1
        if key == "menu":
            page.menu_button(key=f"menu_{identifier}").click("고정").run()
        else:
            page.button(key=key).click().run()
        assert not page.error
