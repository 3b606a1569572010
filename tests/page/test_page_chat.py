from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from component.format import escape_label
from graph.error import BusyError, DatabaseBusyError, InputError
from graph.view import LiveTurn, ToolStep
from tests.fake.scripted_service import ScriptedService
from tests.fake.scripted_session import make_record
from tests.page.reading import folds, keys, open_page, raw_html, say, store_session, told


@pytest.mark.parametrize(
    ("strategy", "lead"),
    [
        ("interval", "세 번 주고받을 때마다 그 부분을 짧게 요약해 기억합니다."),
        ("window", "최근 10턴만 보냅니다."),
    ],
)
def test_the_empty_page_says_what_its_strategy_does(page: AppTest, strategy: str, lead: str) -> None:
    page.run().selectbox(key="strategy").set_value(strategy).run()
    assert any(lead in element.value for element in page.main.markdown)


def test_empty_page_offers_suggestions_and_says_what_answers(page: AppTest) -> None:
    page.run()
    assert not page.exception
    assert page.title[0].value == "오래 이야기해도 흐름을 잃지 않는 대화"
    assert {"open_example", "suggestion_0", "suggestion_1", "suggestion_2"} <= keys(page)
    assert "지금은 체험용 내장 모델입니다." in told(page)
    assert "`OPENAI_API_KEY`" in told(page)


def test_suggestion_is_sent_as_it_reads(page: AppTest, service: ScriptedService) -> None:
    page.run()
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


def test_message_is_answered_and_the_address_names_the_session(page: AppTest, service: ScriptedService) -> None:
    page.context["timezone"] = "Asia/Seoul"
    say(page.run(), "안녕하세요")
    assert not page.exception
    assert "안녕하세요" in [text.value for text in page.text]
    assert "들었습니다: 안녕하세요" in told(page)
    assert page.query_params["session"] == "session-1"
    assert service.sent[0].time_zone == "Asia/Seoul"


def test_answer_asks_for_no_image(page: AppTest, service: ScriptedService) -> None:
    service.answer = lambda _: "보세요 ![그림](https://example.com/a.png) 값은 $5와 $6"
    say(page.run(), "그림")
    assert "![" not in told(page)
    assert "[그림](https://example.com/a.png) 값은 \\$5와 \\$6" in told(page)


def test_folds_are_marked_between_the_turns(page: AppTest) -> None:
    say(page.run(), *[f"질문 {number}" for number in range(1, 8)])
    labels = [label for label in folds(page) if "요약으로" in label]
    assert labels == [f"위 {turns}턴은 요약으로 기억합니다 · 45자 → 13자" for turns in ("1–3", "4–6")]


def test_verbatim_fold_says_that_it_is_the_original(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    service.stored[identifier].records[0] = replace(make_record((1, 2, 3), original_chars=41), kind="verbatim")
    open_page(page, identifier)
    assert "1–3턴 원문 그대로 · 41자" in folds(page)
    assert "원문 그대로 두었습니다" in told(page)


def test_failed_turn_says_why_and_is_tried_again(page: AppTest, service: ScriptedService) -> None:
    service.status = "failed"
    say(page.run(), "질문")
    assert "답변을 받지 못했습니다" in page.error[0].value
    assert "모델 서버에 연결할 수 없습니다." in page.error[0].value
    service.status = "finished"
    page.button(key="retry").click().run()
    assert not page.error
    turn = service.stored["session-1"].turns[-1]
    assert (turn.number, turn.attempt, turn.status) == (1, 2, "finished")


@pytest.mark.parametrize(
    ("locale", "sentence"),
    [
        ("ko-KR", "서버가 중단되어 답변이 끝나지 못했습니다. 그때까지 받은 내용은 남겨 두었습니다."),
        ("en-US", "The server stopped while it was answering. What had arrived by then is kept."),
    ],
)
def test_turn_of_a_killed_server_says_that_the_server_stopped(
    page: AppTest, service: ScriptedService, locale: str, sentence: str
) -> None:
    page.context["locale"] = locale
    service.status, service.error_code = "failed", "interrupted"
    identifier = store_session(service, 1)
    turns = service.stored[identifier].turns
    turns[0] = replace(turns[0], answer_text="여기까지 받은 답")
    open_page(page, identifier)
    assert page.error[0].value.startswith(sentence)
    assert "여기까지 받은 답" in told(page)
    assert "retry" in keys(page)


def test_stopped_turn_keeps_its_part_and_offers_another_try(page: AppTest, service: ScriptedService) -> None:
    service.status = "stopped"
    say(page.run(), "질문")
    assert "들었습니다: 질문" in told(page)
    assert "여기까지 받은 답을 남겨 두었습니다" in told(page)
    assert "retry" in keys(page)


def test_only_the_last_finished_answer_can_be_made_anew(page: AppTest, service: ScriptedService) -> None:
    say(page.run(), "하나", "둘")
    assert [button.key for button in page.button].count("regenerate") == 1
    page.button(key="regenerate").click().run()
    assert [turn.attempt for turn in service.stored["session-1"].turns] == [1, 2]


def test_running_turn_shows_its_text_and_can_be_stopped(page: AppTest, service: ScriptedService) -> None:
    service.status = "running"
    say(page.run(), "길게 설명해 줘")
    assert "답변을 기다리는 중…" in raw_html(page)
    service.stored["session-1"].live = LiveTurn(1, 1, "answering", (), "첫 문장입니다.", (), stop_requested=False)
    page.run()
    assert "첫 문장입니다." in told(page)
    page.button(key="stop").click().run()
    assert service.stopped == ["session-1"]


def test_no_stop_without_a_running_turn(page: AppTest) -> None:
    say(page.run(), "안녕")
    assert "stop" not in keys(page)


def test_folding_names_the_turns_that_wait(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 3)
    service.status = "running"
    open_page(page, identifier)
    say(page, "넷째")
    live = service.stored[identifier].live
    assert live is not None
    service.stored[identifier].live = replace(live, phase="folding", phase_turns=(1, 2, 3))
    page.run()
    assert "1-3턴을 요약하는 중…" in raw_html(page)


def test_the_input_of_a_tool_is_told_as_it_was_sent(page: AppTest, service: ScriptedService) -> None:
    sent = '{"path": "a.py", "lines": {"from": 1, "all": true}, "말": ["하나", null]}'
    service.steps = (ToolStep("call-1", "look", sent, "found", "done", 0.1),)
    say(page.run(), "a.py를 봐 줘")
    page.session_state["steps_1_1"] = True
    told_input = escape_label('a.py, {"from": 1, "all": true}, ["하나", null]')
    assert f"`look` {told_input} · 0.1초" in [box.label for box in page.run().expander]


def test_tool_calls_are_counted_and_sent_only_when_opened(page: AppTest, service: ScriptedService) -> None:
    service.steps = (ToolStep("call-1", "get_current_time", '{"timezone": "Asia/Seoul"}', "14:32", "done", 0.1),)
    say(page.run(), "지금 몇 시야?")
    assert "도구 1번 사용" in [box.label for box in page.expander]
    assert "14:32" not in [code.value for code in page.code]
    page.session_state["steps_1_1"] = True
    page.run()
    assert "14:32" in [code.value for code in page.code]


def test_tool_calls_that_failed_are_counted_on_the_closed_line_and_marked(
    page: AppTest, service: ScriptedService
) -> None:
    done = ToolStep("call-1", "get_current_time", "{}", "14:32", "done", 0.1)
    failed = replace(done, call_id="call-2", name="web_search", result="The web search failed", status="error")
    service.steps = (done, failed, done, replace(failed, call_id="call-3"))
    say(page.run(), "찾아 줘")
    assert "도구 4번 사용 · 2번 실패" in [box.label for box in page.expander]
    page.session_state["steps_1_1"] = True
    page.run()
    assert [(box.label.split()[0], box.state) for box in page.status] == [("`web_search`", "error")] * 2
    assert [box.label.split()[0] for box in page.expander if "get_current" in box.label] == ["`get_current_time`"] * 2
    assert [code.value for code in page.code].count("The web search failed") == 2


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("too_long", "7 > 5"), "너무 깁니다. 나누어 보내세요. (7 > 5)"),
        (DatabaseBusyError(), "다른 작업이 데이터베이스를 오래 쓰고 있습니다"),
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


def test_only_the_last_turn_says_that_it_can_be_tried_again(page: AppTest, service: ScriptedService) -> None:
    service.status = "failed"
    open_page(page, store_session(service, 2))
    older, last = (error.value for error in page.error)
    assert "모델 서버에 연결할 수 없습니다." in older
    assert "다시 시도할 수 있습니다" not in older
    assert "다시 시도할 수 있습니다" in last


def test_unknown_session_in_the_address_leads_to_the_empty_page(page: AppTest) -> None:
    open_page(page, "session-404")
    assert not page.exception
    assert "대화를 찾을 수 없습니다" in page.error[0].value
    assert page.title[0].value == "오래 이야기해도 흐름을 잃지 않는 대화"
    assert "session" not in page.query_params


def test_fold_failures_are_told_from_the_third_on(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    service.stored[identifier].fold_failures = 2
    assert not open_page(page, identifier).warning
    service.stored[identifier].fold_failures = 3
    service.stored[identifier].fold_error_code = "deadline"
    page.run()
    assert "요약을 3번 연속 만들지 못했습니다" in page.warning[0].value
    assert "정해진 시간 안에 답이 오지 않았습니다" in page.warning[0].value
    service.stored[identifier].fold_error_code = "summary_language"
    page.run()
    assert "요약이 사용자의 말과 다른 언어로 쓰였습니다" in page.warning[0].value


def test_thousand_turns_show_the_last_thirty_and_thirty_more(page: AppTest, service: ScriptedService) -> None:
    open_page(page, store_session(service, 1_000))
    questions = [text.value for text in page.text if str(text.value).startswith("질문")]
    assert questions == [f"질문 {number}" for number in range(971, 1_001)]
    assert page.button(key="earlier").label == "이전 대화 더 보기 (970턴)"
    page.button(key="earlier").click().run()
    questions = [text.value for text in page.text if str(text.value).startswith("질문")]
    assert questions == [f"질문 {number}" for number in range(941, 1_001)]


def test_sending_at_a_thousand_turns_asks_and_draws_no_more_than_at_forty(
    page: AppTest, service: ScriptedService
) -> None:
    costs = []
    for turn_count in (40, 1_000):
        open_page(page, store_session(service, turn_count))
        service.calls.clear()
        say(page, "하나 더")
        costs.append((list(service.calls), len(list(page.main))))
    assert costs[0][0] == costs[1][0]
    assert costs[0][1] == costs[1][1]
    assert len(costs[1][0]) <= 20


def test_tool_name_that_the_model_made_up_cannot_leave_its_code_span(page: AppTest, service: ScriptedService) -> None:
    service.steps = (ToolStep("call-1", "a` ~b~ `c", "{}", "", "error", 0.1),)
    say(page.run(), "지금 몇 시야?")
    page.session_state["steps_1_1"] = True
    page.run()
    assert any(box.label.startswith("`a' ~b~ 'c`") for box in page.status)
