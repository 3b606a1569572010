"""The embedded model in a real project: what is noted today is what tomorrow's session answers."""

from __future__ import annotations

from tests.fake.chat import Chat
from tests.fake.offline import KEYLESS, models_without_pauses
from tests.fake.rooted import Rooted, wait_for_notes

DAY = {
    "작업 시작: 릴리스 노트 쓰기": ("지금 무슨 작업 중이었지?", "진행 중인 할 일: 릴리스 노트 쓰기"),
    "결정: 포트는 9090으로 하자.": ("마지막 결정이 뭐였지?", "마지막 결정: 포트는 9090으로 하자"),
    "열린 파일: docs/cli.md": ("마지막으로 연 파일은?", "마지막으로 연 파일: docs/cli.md"),
}


def begin(rooted: Rooted, *said: str, has_memory: bool | None = None) -> Chat:
    """Opens a new chat in the project, and says this there."""
    chat = rooted.open(models=models_without_pauses, **KEYLESS)
    for text in said:
        chat.say(text, options=rooted.options(has_memory=has_memory))
        assert chat.last_turn.status == "finished"
    wait_for_notes(chat)
    return chat


def test_a_new_session_answers_from_what_it_is_primed_with(rooted: Rooted) -> None:
    rooted.write("docs/cli.md", "# CLI")
    with begin(rooted, *DAY) as chat:
        used = [step.name for turn in chat.turns for step in turn.steps]
        assert used == ["open_task", "record_decision", "note_open_files"]
    window = rooted.project.context().data.conversation.recent_window
    assert [message.is_repetition for message in window] == [False, True] * 3
    asked = [question for question, _ in DAY.values()]
    with begin(rooted, *asked) as chat:
        assert [turn.steps for turn in chat.turns] == [()] * 3
        for turn, (_, answer) in zip(chat.turns, DAY.values(), strict=True):
            assert f"- {answer} (" in turn.answer_text
    chat = begin(rooted, *asked, has_memory=False)
    assert not any(answer in turn.answer_text for turn in chat.turns for _, answer in DAY.values())
