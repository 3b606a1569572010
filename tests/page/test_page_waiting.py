from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from graph.view import ToolStep
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import keys, open_page, say, store_session, told

DONE = ToolStep("call-1", "look", "{}", "found", "done", 0.1)
PENDING = ToolStep("call-2", "edit", '{"path": "a.py"}', "", "running", None)


@pytest.fixture
def waiting(page: AppTest, service: ScriptedService) -> AppTest:
    """The page of a chat whose last turn waits for a program."""
    identifier = store_session(service, 2)
    turns = service.stored[identifier].turns
    turns[1] = replace(turns[1], status="requires_action", client="*editor*", steps=(DONE, PENDING))
    return open_page(page, identifier)


@pytest.mark.parametrize(
    ("locale", "sentence"),
    [
        ("ko-KR", "\\*editor\\*에서 이 도구들을 실행할 차례입니다"),
        ("en-US", "\\*editor\\* is to run these tools"),
    ],
)
def test_a_turn_that_waits_for_a_program_says_for_which_and_for_what(
    page: AppTest, service: ScriptedService, locale: str, sentence: str
) -> None:
    identifier = store_session(service, 1)
    turns = service.stored[identifier].turns
    turns[0] = replace(turns[0], status="requires_action", client="*editor*", steps=(DONE, PENDING))
    page.context["locale"] = locale
    open_page(page, identifier)
    assert told(page).count(sentence) == 1
    boxes = [box.label for box in page.main.expander]
    assert [label for label in boxes if "edit" in label] == ["`edit` a.py"]
    assert not any("look" in label for label in boxes)  # in the box of the calls that have ended


def test_a_chat_that_waits_for_a_program_takes_a_message(waiting: AppTest) -> None:
    assert keys(waiting).isdisjoint({"retry", "regenerate", "stop"})
    say(waiting, "다음 질문")
    assert "들었습니다: 다음 질문" in told(waiting)
