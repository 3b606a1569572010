from __future__ import annotations

import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from graph.view import ToolStep
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import open_page, raw_html, say, store_session

FOUND = ToolStep("call-1", "recall", '{"query": "예산"}', "찾은 것", "done", 0.1, (2, 5))


def lines(page: AppTest) -> list[str]:
    """What the lines of turns that were looked up read, and where their buttons lead, as "(first-last)"."""
    found = re.findall(r'<p class="recalled">(.*?)</p>', raw_html(page))
    with_targets = (
        re.sub(r'<button [^>]*data-first="(\d+)" data-last="(\d+)"[^>]*>', r"(\1-\2)", line) for line in found
    )
    return [line.replace("</button>", "") for line in with_targets]


@pytest.mark.parametrize(
    ("locale", "turns", "line", "label"),
    [
        ("ko-KR", (2, 5), "기억 찾기: (2-2)2턴, (5-5)5턴", "기억 찾기: 2턴, 5턴 · 0.1초"),
        ("ko-KR", (3,), "기억 찾기: (3-3)3턴", "기억 찾기: 3턴 · 0.1초"),
        ("en-US", (2, 5), "Recall: turns (2-2)2, (5-5)5", "Recall: turns 2, 5 · 0.1 s"),
        ("en-US", (3,), "Recall: turn (3-3)3", "Recall: turn 3 · 0.1 s"),
    ],
)
def test_the_turns_that_were_looked_up_are_named_and_led_to(
    page: AppTest, service: ScriptedService, locale: str, turns: tuple[int, ...], line: str, label: str
) -> None:
    page.context["locale"] = locale
    service.steps = (replace(FOUND, turns=turns),)
    say(page.run(), "예산이 얼마였지?")
    assert lines(page) == [line]
    page.session_state["steps_1_1"] = True
    page.run()
    assert label in [box.label for box in page.expander]
    assert lines(page) == [line]


def test_turns_of_several_look_ups_are_one_line(page: AppTest, service: ScriptedService) -> None:
    service.steps = (FOUND, replace(FOUND, call_id="call-2", turns=(5, 3)))
    say(page.run(), "예산이 얼마였지?")
    assert lines(page) == ["기억 찾기: (2-2)2턴, (3-3)3턴, (5-5)5턴"]


def test_a_look_up_that_found_nothing_or_failed_leads_nowhere(page: AppTest, service: ScriptedService) -> None:
    failed = replace(FOUND, call_id="call-2", status="error", turns=())
    service.steps = (replace(FOUND, turns=()), failed)
    say(page.run(), "예산이 얼마였지?")
    page.session_state["steps_1_1"] = True
    page.run()
    assert lines(page) == []
    assert "기억 찾기: 나오지 않음 · 0.1초" in [box.label for box in page.expander]
    assert page.status[0].label == "`recall` 예산 · 0.1초"


def test_while_the_answer_streams_the_turns_are_led_to(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 3)
    service.status = "running"
    open_page(page, identifier)
    say(page, "예산이 얼마였지?")
    live = service.stored[identifier].live
    assert live is not None
    service.stored[identifier].live = replace(live, steps=(replace(FOUND, status="running", turns=None, seconds=None),))
    page.run()
    assert lines(page) == []
    service.stored[identifier].live = replace(live, steps=(FOUND,))
    page.run()
    assert lines(page) == ["기억 찾기: (2-2)2턴, (5-5)5턴"]
