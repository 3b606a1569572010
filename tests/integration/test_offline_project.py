"""The embedded model in a real project: what is noted today is what tomorrow's session answers."""

from __future__ import annotations

from typing import Final

import pytest

from graph.offline.phrase import KOREAN
from tests.fake.chat import Chat
from tests.fake.offline import KEYLESS, models_without_pauses
from tests.fake.rooted import Rooted, wait_for_notes

TODAY: Final = ("작업 시작: 릴리스 노트 쓰기", "결정: 포트는 9090으로 하자.", "열린 파일: docs/cli.md")
ASKED: Final = ("지금 무슨 작업 중이었지?", "마지막 결정이 뭐였지?", "마지막으로 연 파일은?")
ANSWERS: Final = (
    "진행 중인 할 일: 릴리스 노트 쓰기",
    "마지막 결정: 포트는 9090으로 하자",
    "마지막으로 연 파일: docs/cli.md",
)
TODAY_IN_ENGLISH: Final = (
    "Start a task: write the release notes",
    "Record the decision that the port is 9090",
    "Open file: docs/cli.md",
)
ASKED_IN_ENGLISH: Final = ("What's the active task?", "What was the last decision?", "Which file did I open last?")
ANSWERS_IN_ENGLISH: Final = (
    "Active task: write the release notes",
    "Last decision: the port is 9090",
    "Last open file: docs/cli.md",
)


@pytest.fixture(autouse=True)
def _has_a_file(rooted: Rooted) -> None:
    rooted.write("docs/cli.md", "# CLI")


def begin(rooted: Rooted, *said: str, has_memory: bool | None = None, strategy: str = "interval") -> Chat:
    """Opens a new chat in the project, and says this there."""
    chat = rooted.open(models=models_without_pauses, context_strategy=strategy, **KEYLESS)
    for text in said:
        chat.say(text, options=rooted.options(has_memory=has_memory))
        assert chat.last_turn.status == "finished"
    wait_for_notes(chat)
    return chat


@pytest.mark.parametrize(
    ("strategy", "today", "asked", "answers"),
    [
        *((strategy, TODAY, ASKED, ANSWERS) for strategy in ("interval", "rolling", "compaction", "window")),
        ("interval", TODAY_IN_ENGLISH, ASKED_IN_ENGLISH, ANSWERS_IN_ENGLISH),
    ],
    ids=["interval", "rolling", "compaction", "window", "english"],
)
def test_after_a_restart_a_new_session_answers_from_what_it_is_primed_with_alone(
    rooted: Rooted, strategy: str, today: tuple[str, ...], asked: tuple[str, ...], answers: tuple[str, ...]
) -> None:
    with begin(rooted, *today, strategy=strategy) as chat:
        used = [step.name for turn in chat.turns for step in turn.steps]
        assert used == ["open_task", "record_decision", "note_open_files"]
    with begin(rooted, *asked, strategy=strategy) as chat:
        assert [turn.steps for turn in chat.turns] == [()] * 3
        for turn, answer in zip(chat.turns, answers, strict=True):
            assert f"- {answer} (" in turn.answer_text


def test_after_folds_the_session_still_knows_what_it_was_primed_with(rooted: Rooted) -> None:
    rooted.project.workflow().open_task("릴리스 노트 쓰기")
    chat = begin(rooted, "안녕하세요")
    chat.ask(2, 8)
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]
    chat.say(ASKED[0])
    assert f"- {ANSWERS[0]} (" in chat.last_turn.answer_text


def test_a_task_is_completed_by_the_id_that_the_tool_lists(rooted: Rooted) -> None:
    chat = begin(rooted, TODAY[0], "작업 완료", ASKED[0])
    assert [step.name for step in chat.turns[1].steps] == ["complete_task", "complete_task"]
    assert rooted.project.workflow().active_task is None
    assert KOREAN["unwritten"] in chat.last_turn.answer_text


def test_a_session_without_memory_knows_nothing_and_still_notes(rooted: Rooted) -> None:
    begin(rooted, TODAY[0]).close()
    chat = begin(rooted, ASKED[0], TODAY[1], has_memory=False)
    assert KOREAN["project_told"] not in chat.turns[0].answer_text
    assert "릴리스" not in chat.turns[0].answer_text
    assert rooted.project.context().data.memory.last_decisions == ("포트는 9090으로 하자",)


def test_what_was_noted_in_folded_turns_is_told_as_what_the_user_asked_for(rooted: Rooted) -> None:
    rooted.project.context().record_decision("포트는 8501")
    chat = begin(rooted, *TODAY)
    chat.ask(4, 9)
    (first, *_) = chat.service.folds.records(chat.session_id)
    assert first.turns == (1, 2, 3)
    assert "decision_002" not in first.summary
    chat.say("마지막 결정이 뭐였지?")
    told = chat.last_turn.answer_text
    assert "- 마지막 결정: 포트는 8501 (프로젝트 메모리에서" in told
    assert KOREAN["project_begun"] in told
    assert "- 결정: 포트는 9090으로 하자. (1-3턴 요약에서)" in told


def test_the_summary_is_of_what_the_user_said_alone(rooted: Rooted) -> None:
    chat = begin(rooted, *TODAY)
    chat.ask(4, 9)
    wait_for_notes(chat)
    summary = rooted.project.context().data.conversation.running_summary
    assert "담당자는 김민수입니다" in summary
    for own in ("OPENAI_API_KEY", "기억해 두겠습니다", KOREAN["project_noted"].split(".")[0], "task_001"):
        assert own not in summary
