from __future__ import annotations

from pathlib import Path

from graph.event import TurnFinished, TurnStopped
from graph.model_error import ProviderError
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import failure, hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted, wait_for_notes


def test_each_message_is_noted_once_without_its_secrets(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open()
    token = "ghp_" + "a1B2" * 9
    server.script(failure(401), text("첫 답"), text("둘째 답"))
    chat.say(f"토큰은 {token} 입니다", options=rooted.options())
    chat.retry()
    chat.regenerate()
    wait_for_notes(chat)
    assert rooted.noted() == [
        ("user", "토큰은 [secret: GitHub token] 입니다"),
        ("assistant", "첫 답"),
        ("assistant", "둘째 답"),
    ]
    assert token not in "".join(
        path.read_text() for path in _files(chat.service.settings.turnfold_data_dir / "context")
    )


def test_messages_of_one_id_in_two_sessions_are_both_noted(rooted: Rooted) -> None:
    service = rooted.open().service
    for session_id in ("one", "two"):
        service.turns.send(session_id, f"{session_id}의 말", message_id="same", options=rooted.options())
        list(service.turns.follow(session_id))
    wait_for_notes(Chat(service))
    assert [said for role, said in rooted.noted() if role == "user"] == ["one의 말", "two의 말"]


def test_what_is_too_much_of_the_dialog_is_summarised_behind_the_answer(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open()
    server.script(text("서버를 옮기기로 했습니다."), kind="summary")
    server.script(text("짧은 답"), text("긴 답입니다. " * 500))
    chat.say(question(1), options=rooted.options())
    wait_for_notes(chat)
    assert server.bodies("summary") == []
    chat.say(question(2))
    wait_for_notes(chat)
    talk = rooted.project.context().data.conversation
    assert talk.running_summary == "서버를 옮기기로 했습니다."
    assert [message.role for message in talk.recent_window] == ["assistant"]


def test_a_summary_that_hangs_or_fails_holds_up_no_turn(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open(context_strategy="window")
    server.script(hang(), kind="summary", may_stay=True)
    for number in range(1, 5):
        server.script(text(f"긴 답 {number}입니다. " * 250))
        assert isinstance(chat.say(question(number), options=rooted.options())[-1], TurnFinished)
    chat.close()
    assert [role for role, _ in rooted.noted()][-2:] == ["user", "assistant"]


def test_a_summary_that_fails_is_told_and_made_after_the_next_answer(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open(context_strategy="window")
    server.script(failure(500), text("서버를 옮기기로 했습니다."), kind="summary")
    server.script(text("긴 답입니다. " * 500), text("짧은 답"))
    chat.say(question(1), options=rooted.options())
    wait_for_notes(chat)
    assert isinstance(chat.view.project_problem, ProviderError)
    chat.say(question(2))
    wait_for_notes(chat)
    assert chat.view.project_problem is None
    assert rooted.project.context().data.conversation.running_summary == "서버를 옮기기로 했습니다."
    assert [role for role, _ in rooted.noted()] == ["user", "assistant"]


def test_of_a_stopped_turn_the_users_message_and_the_line_are_noted(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open()
    server.script(hang())
    chat.start("멈출 말", options=rooted.options())
    chat.wait_until(lambda: server.hanging_count == 1)
    chat.service.turns.stop(chat.session_id)
    assert isinstance(chat.events()[-1], TurnStopped)
    wait_for_notes(chat)
    assert rooted.noted() == [("user", "멈출 말")]
    assert "멈출 말 → " in _lines(chat.service.settings.turnfold_data_dir / "context")


def test_the_lines_of_a_deleted_session_go_and_those_of_others_stay(rooted: Rooted) -> None:
    chat = rooted.enter()
    other = Chat(chat.service)
    other.say("다른 이야기", options=rooted.options())
    wait_for_notes(chat)
    folder = chat.service.settings.turnfold_data_dir / "context"
    assert "안녕하세요" in _lines(folder)
    chat.service.sessions.delete(chat.session_id)
    wait_for_notes(other)
    assert "안녕하세요" not in _lines(folder)
    assert "다른 이야기" in _lines(folder)


def _lines(folder: Path) -> str:
    return "".join(path.read_text() for path in _files(folder) if path.name == "execution-summary-cache.json")


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
