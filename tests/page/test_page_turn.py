"""How one turn is shown: its question, its tool calls, its answer, and how it ended."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from component.chat.transcript import CLOSED_CHARS
from component.format import escape_label
from component.words.wording import words_of
from graph.value.event import CallRetried
from graph.value.view import LiveTurn, ToolStep
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import (
    OPTIONS,
    keys,
    open_page,
    page_text,
    page_with_presses,
    raw_html,
    say,
    stale_parts,
    store_session,
)

CLOCK = ToolStep("call-1", "get_current_time", '{"timezone": "Asia/Seoul"}', "14:32", "done", 0.1)
SEARCH = ToolStep("call-2", "web_search", "{}", "The web search failed", "error", 0.1)
FOUND = ToolStep("call-1", "recall", '{"query": "예산"}', "찾은 것", "done", 0.1, (2, 5))
STEPS = "steps_1_1"


def labels(page: AppTest) -> list[str]:
    return [box.label for box in page.expander]


def recalled(page: AppTest) -> list[str]:
    """What the lines of turns that were looked up read, and where their buttons lead, as "(first-last)"."""
    found = re.findall(r'<p class="recalled">(.*?)</p>', raw_html(page))
    with_targets = (
        re.sub(r'<button [^>]*data-first="(\d+)" data-last="(\d+)"[^>]*>', r"(\1-\2)", line) for line in found
    )
    return [line.replace("</button>", "") for line in with_targets]


def test_what_was_typed_is_shown_letter_by_letter_and_code_as_code(page: AppTest) -> None:
    say(page.run(), "**굵게** $5 :red[빨강] <b>b</b>\n```python\nx = 1\n\ny = 2\n```\n끝")
    assert [text.value for text in page.text] == ["**굵게** $5 :red[빨강] <b>b</b>", "끝"]
    assert [(code.value, code.language) for code in page.code] == [("x = 1\n\ny = 2", "python")]


def test_very_long_message_is_shown_in_part(page: AppTest) -> None:
    say(page.run(), "가" * 50_000)
    for shown in (CLOSED_CHARS, 50_000, CLOSED_CHARS):
        assert max(len(str(text.value)) for text in page.text) == shown
        page.button(key="more_question_session-1_1").click().run()


def test_answer_asks_for_no_image(page: AppTest, service: ScriptedService) -> None:
    service.answer = lambda _: "보세요 ![그림](https://example.com/a.png) 값은 $5와 $6"
    say(page.run(), "그림")
    assert "![" not in page_text(page)
    assert "[그림](https://example.com/a.png) 값은 \\$5와 \\$6" in page_text(page)


def test_tool_calls_are_counted_and_sent_only_when_opened(page: AppTest, service: ScriptedService) -> None:
    sent = '{"path": "a.py", "lines": {"from": 1, "all": true}, "말": ["하나", null]}'
    made_up = ToolStep("call-5", "a` ~b~ `c", "{}", "", "error", 0.1)
    look = replace(CLOCK, call_id="call-4", name="look", arguments=sent)
    declined = ToolStep("call-6", "a__b", "{}", "", "declined", 0.0, server="a", title="b")
    service.steps = (CLOCK, SEARCH, replace(SEARCH, call_id="call-3"), look, made_up, declined)
    say(page.run(), "찾아 줘")
    assert "도구 6회 사용 · 3회 실패 · 1회 거부" in labels(page)
    assert "14:32" not in [code.value for code in page.code]
    page.session_state[STEPS] = True
    page.run()
    assert [code.value for code in page.code].count("14:32") == 2
    assert [code.value for code in page.code].count("The web search failed") == 2
    failed = [(box.label.split()[0], box.state) for box in page.status]
    assert failed[:2] == [("`web_search`", "error")] * 2
    assert "a · **b** · 거부" in [" ".join(label.split()) for label in labels(page)]
    assert page.status[2].label.startswith("`a' ~b~ 'c`")  # cannot leave its code span
    shown_input = escape_label('a.py, {"from": 1, "all": true}, ["하나", null]')
    assert f"`look` {shown_input} · 0.1초" in labels(page)


def test_all_of_a_long_result_is_read_when_it_is_asked_for(page: AppTest, service: ScriptedService) -> None:
    service.steps = (replace(CLOCK, result="가" * 10_000), replace(SEARCH, call_id="call-3"))
    service.whole_results[1, 1, CLOCK.call_id] = "가" * 300_000
    page.session_state[STEPS] = True
    say(page.run(), "찾아 줘")
    for chars in (2_001, 200_001, 2_001):
        assert max(len(code.value) for code in page.code) == chars
        page.button(key="more_result_1_1_0").click().run()
    assert service.calls.count("whole_result") == 2
    assert "more_result_1_1_1" not in keys(page)


@pytest.mark.parametrize(
    ("locale", "turns", "line", "label", "used"),
    [
        ("ko-KR", (2, 5), "이전 대화 참조: (2-2)2턴, (5-5)5턴", "이전 대화 참조: 2턴, 5턴 · 0.1초", "도구 2회 사용"),
        ("en-US", (3,), "Looked up turn (3-3)3", "Looked up turn 3 · 0.1 s", "2 tool calls"),
    ],
)
def test_the_turns_that_were_looked_up_are_named_and_led_to(  # what is parametrised
    page: AppTest, service: ScriptedService, locale: str, turns: tuple[int, ...], line: str, label: str, used: str
) -> None:
    page.context["locale"] = locale
    service.steps = (replace(FOUND, turns=turns), CLOCK)
    say(page.run(), "예산이 얼마였지?")
    assert recalled(page) == [line]
    page.session_state[STEPS] = True
    page.run()
    assert {label, used} <= set(labels(page))
    service.steps = (replace(FOUND, turns=turns),)
    say(page, "마감은 언제였지?")
    assert recalled(page) == [line, line]
    assert not [label for label in labels(page) if label in {"도구 1회 사용", "1 tool call"}]  # the line says it


def test_look_ups_are_one_line_as_soon_as_they_found_something(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    service.status = "running"
    say(open_page(page, identifier), "예산이 얼마였지?")
    session = service.stored[identifier]
    assert session.live is not None
    again = replace(FOUND, call_id="call-2", turns=(5, 3))
    for steps, lines in (
        ((replace(FOUND, status="running", turns=None, seconds=None),), []),
        ((FOUND, again), ["이전 대화 참조: (2-2)2턴, (3-3)3턴, (5-5)5턴"]),
    ):
        session.live = replace(session.live, steps=steps)
        page.run()
        assert recalled(page) == lines


def test_a_look_up_that_found_nothing_or_failed_leads_nowhere(page: AppTest, service: ScriptedService) -> None:
    failed = replace(FOUND, call_id="call-2", status="error", turns=())
    service.steps = (replace(FOUND, turns=()), failed)
    say(page.run(), "예산이 얼마였지?")
    page.session_state[STEPS] = True
    page.run()
    assert recalled(page) == []
    assert "이전 대화 참조: 검색 결과 없음 · 0.1초" in labels(page)
    assert page.status[0].label == "`recall` 예산 · 0.1초"


def test_running_turn_says_what_it_does_and_can_be_stopped(page: AppTest, service: ScriptedService) -> None:
    service.status = "running"
    say(page.run(), "길게 설명해 줘")
    assert f"{words_of('ko').phase_waiting}</span>" in raw_html(page)  # in another process: nobody knows for how long
    began = time.monotonic() - 33
    live = LiveTurn(1, 1, "folding", (1, 2, 3), "", (), stop_requested=False, phase_since=began)
    retry = CallRetried("rate_limit", 2, 3, 900.0)
    for seen, line in (
        (live, "1-3턴을 요약하는 중 · N초"),
        (replace(live, phase="reading", phase_percent=44), "대화를 읽는 중 · 44% · N초"),
        (replace(live, phase="tool"), "도구 사용 중 · N초"),
        (replace(live, phase="waiting"), "기다리는 중 · N초"),
        (replace(live, phase="waiting", retry=replace(retry, wait_seconds=0.0)), "기다리는 중 · N초 (3회 중 2번째)"),
        (
            replace(live, phase="waiting", retry=retry, phase_since=time.monotonic()),
            "모델 서버의 요청 한도 초과 · N초 뒤에 다시 시도합니다 (3회 중 2번째)",
        ),
    ):
        service.stored["session-1"].live = seen
        shown = re.sub(r'<i class="seconds [^>]*>\d+</i>', "N", raw_html(page.run()))
        # Until it is two seconds, the style sheet hides how long.
        assert f">{line}<" in re.sub(r'<span class="since" style="--since: -33s">(.*?)</span>', r"\1", shown)
    service.stored["session-1"].live = replace(live, phase="answering", phase_turns=(), text="첫 문장입니다.")
    assert "첫 문장입니다." in page_text(page.run())
    page.button(key="stop").click().run()
    assert service.stopped == ["session-1"]


def test_failed_turn_says_why_and_the_last_one_is_tried_again(page: AppTest, service: ScriptedService) -> None:
    service.status = "failed"
    say(page.run(), "질문", "다음 질문")
    older, last = (error.value for error in page.error)
    assert "답변을 받지 못했습니다" in last
    assert "모델 서버에 연결할 수 없습니다." in older
    assert "다시 시도할 수 있습니다" not in older
    assert "다시 시도할 수 있습니다" in last
    service.status = "finished"
    page.button(key="retry").click().run()
    assert len(page.error) == 1
    turn = service.stored["session-1"].turns[-1]
    assert (turn.number, turn.attempt, turn.status) == (2, 2, "finished")


@pytest.mark.parametrize(
    ("locale", "interrupted", "cut", "repeats", "waits"),
    [
        (
            "ko-KR",
            "서버가 중단되어 답변이 끝나지 못했습니다. 그때까지 받은 내용은 남겨 두었습니다.",
            "길이 한도에서 답변이 끊겼습니다",
            "되풀이하기 시작해 답변을 중지했습니다",
            "\\*editor\\*에서 이 도구들을 실행할 차례입니다",
        ),
        (
            "en-US",
            "The server stopped while it was answering. What had arrived by then is kept.",
            "length limit",
            "The model began to repeat itself; the answer was stopped.",
            "\\*editor\\* to run these tools",
        ),
    ],
)
def test_a_turn_says_how_it_ended(  # what is parametrised
    page: AppTest, service: ScriptedService, locale: str, interrupted: str, cut: str, repeats: str, waits: str
) -> None:
    page.context["locale"] = locale
    identifier = store_session(service, 1)
    turns = service.stored[identifier].turns
    (finished,) = turns
    assert cut not in page_text(open_page(page, identifier))
    turns[0] = replace(finished, is_cut=True)
    assert page_text(page.run()).count(cut) == 1
    assert "regenerate" in keys(page)
    turns[0] = replace(finished, is_cut=True, is_endless=True)
    assert (page_text(page.run()).count(repeats), page_text(page).count(cut)) == (1, 0)

    turns[0] = replace(finished, status="failed", error_code="interrupted", answer_text="여기까지 받은 답")
    page.run()
    assert page.error[0].value.startswith(interrupted)
    assert "여기까지 받은 답" in page_text(page)
    assert "retry" in keys(page)

    pending = ToolStep("call-2", "edit", '{"path": "a.py"}', "", "running", None)
    turns[0] = replace(finished, status="requires_action", client="*editor*", steps=(CLOCK, pending))
    page.run()
    assert page_text(page).count(waits) == 1
    assert [label for label in labels(page) if "edit" in label] == ["`edit` a.py"]
    assert not any("get_current_time" in label for label in labels(page))  # in the box of the calls that have ended
    assert keys(page).isdisjoint({"retry", "regenerate", "stop"})
    say(page, "다음 질문")
    assert "들었습니다: 다음 질문" in page_text(page)


def test_stopped_turn_keeps_its_part_and_offers_another_try(page: AppTest, service: ScriptedService) -> None:
    service.status = "stopped"
    say(page.run(), "질문")
    assert "들었습니다: 질문" in page_text(page)
    assert "여기까지의 답변을 저장했습니다" in page_text(page)
    assert "retry" in keys(page)


@pytest.mark.parametrize(
    ("end", "is_offered"),
    [
        ({"status": "stopped"}, True),
        ({"status": "failed", "error_code": "cut_stream"}, True),
        ({"is_cut": True}, True),
        ({"is_cut": True, "is_endless": True}, False),
        ({"status": "stopped", "answer_text": ""}, False),
        ({"status": "failed", "error_code": "unreachable", "answer_text": ""}, False),
        ({}, False),
    ],
)
def test_what_there_is_of_an_answer_is_continued_by_a_press(
    page: AppTest, service: ScriptedService, end: dict[str, Any], *, is_offered: bool
) -> None:
    identifier = store_session(service, 2)
    turns = service.stored[identifier].turns
    turns[0], turns[1] = replace(turns[0], **end), replace(turns[1], **end)
    open_page(page, identifier)
    assert [key for key in keys(page) if key.startswith("go_on")] == ["go_on"] * is_offered  # of the last turn alone
    if is_offered:
        page.button(key="go_on").click().run()
        assert [turn.user_text for turn in turns[2:]] == [words_of("ko").go_on]
        assert "go_on" not in keys(page)


@pytest.mark.parametrize(
    ("locale", "began", "asked"),
    [
        ("ko-KR", r"“my \*editor\*” 프로그램이 시작한 대화입니다.", r"프로그램: my \*editor\*"),
        ("en-US", r"The program “my \*editor\*” began this chat.", r"Program: my \*editor\*"),
    ],
)
def test_what_a_program_began_or_asked_has_its_name(
    page: AppTest, service: ScriptedService, locale: str, began: str, asked: str
) -> None:
    page.context["locale"] = locale
    own, other = (store_session(service, 2) for _ in range(2))
    service.stored[other].client = "my *editor*"
    turns = service.stored[own].turns
    turns[1] = replace(turns[1], client="my *editor*")
    mark = f":material/terminal: :small[:gray[{asked}]]"
    for identifier, marked, begins in ((own, [mark], False), (other, [], True)):
        open_page(page, identifier)
        assert [line.value for line in page.main.markdown if asked in line.value] == marked
        assert (began in page_text(page)) == begins
    row = page.button(key=f"session_{other}")
    assert (row.icon, row.help) == (":material/terminal:", asked)


def test_days_are_divided_by_a_line_in_the_readers_zone(page: AppTest, service: ScriptedService) -> None:
    page.context["timezone"] = "Pacific/Kiritimati"  # 14 hours ahead of UTC
    now = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    hours = (0, 0.4, 1, 25)
    identifier = store_session(service, len(hours))
    turns = service.stored[identifier].turns
    turns[:] = [
        replace(turn, started_at=now + timedelta(hours=after)) for turn, after in zip(turns, hours, strict=True)
    ]
    lines = re.findall(r'<p class="day"><time datetime="(\S+)">(.*?)</time>', raw_html(open_page(page, identifier)))
    assert lines == [
        ("2026-01-05", "2026년 1월 5일 월요일"),
        ("2026-01-06", "2026년 1월 6일 화요일"),
        ("2026-01-07", "2026년 1월 7일 수요일"),
    ]
    turns[:] = [replace(turn, started_at=datetime.now(UTC)) for turn in turns]
    assert 'class="day"' not in raw_html(page.run())


def test_an_answer_tells_its_model_time_and_tokens(page: AppTest, service: ScriptedService) -> None:
    page.context["timezone"] = "Asia/Seoul"
    open_page(page, store_session(service, 2))
    told = re.findall(r'<details class="about" name="about">.*?<p>(.*?)</p>', raw_html(page))
    time = '<time datetime="2026-11-20T12:00:00+09:00">2026년 11월 20일 금요일 12:00</time>'
    assert told == [f"offline-mini<br>{time}<br>2.3초<br>입력 ≈1,238 · 출력 ≈45 토큰"] * 2


def test_an_answers_menu_has_its_pin_until_it_is_pinned_and_none_stands_below_a_question_to_the_user(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 2)
    menus = r'<details class="about" name="about"><summary data-icon="more_horiz" title="답변 메뉴".*?</details>'
    open_page(page, identifier)
    shown = re.findall(menus, raw_html(page))
    assert ['data-message="answer-' in menu for menu in shown] == [True, True]
    service.folds.pin(identifier, "answer-1")
    shown = re.findall(menus, raw_html(page.run()))
    assert ['data-message="answer-' in menu for menu in shown] == [False, True]
    assert 'data-message="answer-1"' in raw_html(page)
    turns = service.stored[identifier].turns
    turns[1] = replace(turns[1], status="asking", answer_text="")
    assert len(re.findall(menus, raw_html(page.run()))) == 1


def test_the_next_message_draws_the_tail_of_a_turn_and_its_words_only_if_they_change(service: ScriptedService) -> None:
    page = page_with_presses()
    identifier = store_session(service, 4)
    open_page(page, identifier)
    service.send(identifier, "질문 5", message_id="user-5", options=OPTIONS)
    parts = stale_parts(page) or []
    assert [part for part in parts if part.startswith(("slot_", "tail_"))] == ["tail_4", "slot_5"]
    turns = service.stored[identifier].turns
    turns[-1] = replace(turns[-1], status="failed", error_code="model", is_last=True)
    stale_parts(page)
    service.send(identifier, "질문 6", message_id="user-6", options=OPTIONS)  # the failed one can't be retried any more
    parts = stale_parts(page) or []
    assert [part for part in parts if part.startswith(("slot_", "tail_"))] == ["slot_5", "slot_6"]
