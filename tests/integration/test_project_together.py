from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AnyMessage

from graph.model_error import UnreachableError
from graph.project.roll_up import window_tokens
from tests.fake.project import Project

ROOT = Path(__file__).resolve().parents[2]
EACH = 1_000


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def fill(project: Project, count: int = 40) -> None:
    context = project.context(lambda *_: "")
    for number in range(count):
        context.register_message("assistant", f"{number}번 서버를 도쿄 리전으로 옮기기로 결정했습니다.")


def test_two_processes_registering_1000_messages_each_lose_and_tear_nothing(project: Project) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fake.registering", str(project.root), speaker, str(EACH)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for speaker in ("one", "two")
    ]
    said = [process.communicate()[0].splitlines() for process in started]
    assert [process.returncode for process in started] == [0, 0]
    ids = {line.split()[0]: line.split(" ", 1)[1] for lines in said for line in lines}
    assert sorted(ids) == sorted(f"msg_{number:03}" for number in range(1, 2 * EACH + 1))
    data = project.context().data
    assert (data.conversation.message_count, data.stats.dialog_turns) == (2 * EACH, EACH)
    window = data.conversation.recent_window
    assert [message.id for message in window] == [
        f"msg_{n:03}" for n in range(2 * EACH - len(window) + 1, 2 * EACH + 1)
    ]
    assert [ids[message.id] for message in window] == [message.content for message in window]
    assert project.left_over() == []


def test_threads_of_one_process_take_turns(project: Project) -> None:
    context = project.context()
    threads = [
        threading.Thread(target=lambda: [context.record_decision(f"{threading.get_ident()} {n}") for n in range(10)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(context.data.memory.last_decisions) == 40


def test_a_summary_that_arrives_after_50_other_writes_loses_none_of_them(project: Project) -> None:
    other = project.context(lambda *_: "")
    said: list[str] = []

    def summarise(_: Sequence[AnyMessage], __: int) -> str:
        for number in range(25):
            said.append(other.register_message("user", f"그 사이 {number}"))
            other.record_decision(f"그 사이 결정 {number}")
        return "옮길 서버를 정했다."

    fill(project)
    context = project.context(summarise)
    before = context.data.conversation
    assert context.roll_up()
    data = context.data
    assert data.conversation.running_summary == "옮길 서버를 정했다."
    assert len(data.memory.last_decisions) == 25
    ids = [message.id for message in data.conversation.recent_window]
    assert ids[-25:] == said
    staying = [message.id for message in before.recent_window if message.id in ids]
    assert ids == [*staying, *said]
    assert staying == [message.id for message in before.recent_window][-len(staying) :]


def test_a_summary_whose_base_is_gone_is_dropped_and_made_anew(project: Project) -> None:
    calls: list[str] = []

    def summarise(messages: Sequence[AnyMessage], _: int) -> str:
        calls.append(messages[0].text)
        if len(calls) == 1:
            project.workflow().open_plan("새 계획", "새 계획의 설명")
        return f"요약 {len(calls)}"

    fill(project)
    project.context().edit_summary("옛 요약")
    context = project.context(summarise)
    assert context.roll_up()
    assert calls[0] == "옛 요약"
    assert calls[1] == "새 계획의 설명"
    assert context.data.conversation.running_summary == "요약 2"


def test_a_base_that_always_changes_is_given_up_and_nothing_is_lost(project: Project) -> None:
    def summarise(_: Sequence[AnyMessage], __: int) -> str:
        context.edit_summary(f"고침 {context.data.updated_at}")
        return "늦은 요약"

    fill(project)
    context = project.context(summarise)
    window = context.data.conversation.recent_window
    assert not context.roll_up()
    assert context.data.conversation.recent_window == window


def test_no_lock_is_held_over_a_model_call(project: Project) -> None:
    def summarise(_: Sequence[AnyMessage], __: int) -> str:
        project.memory(wait_seconds=0).read()
        return "요약"

    fill(project)
    assert project.context(summarise).roll_up()


def test_a_model_that_fails_changes_nothing(project: Project) -> None:
    def summarise(_: Sequence[AnyMessage], __: int) -> str:
        raise UnreachableError

    fill(project)
    context = project.context(summarise)
    before = project.stored()
    with pytest.raises(UnreachableError):
        context.roll_up()
    assert project.stored() == before


def test_a_secret_in_a_summary_is_masked(project: Project) -> None:
    fill(project)
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    assert project.context(lambda *_: f"토큰은 {token} 이다.").roll_up()
    assert project.context().data.conversation.running_summary == "토큰은 [secret: GitHub token] 이다."


def test_what_waits_for_a_summary_has_at_most_4096_tokens(project: Project) -> None:
    context = project.context(lambda *_: "")
    tokens = []
    for number in range(90):
        context.register_message("assistant", f"{number}번 서버를 옮기기로 결정했습니다. " * 10)
        tokens.append(window_tokens(context.data.conversation.recent_window))
    assert 4_096 >= max(tokens) > 3_000
    assert "결정했습니다" in context.data.conversation.running_summary


def test_a_window_that_is_not_full_is_not_rolled_up(project: Project) -> None:
    context = project.context(lambda *_: "요약")
    context.register_message("user", "안녕")
    assert not context.roll_up()
    assert context.data.conversation.running_summary == ""


def test_without_a_model_a_window_that_waited_for_one_is_picked_from(project: Project) -> None:
    fill(project)
    assert project.context().roll_up()
    conversation = project.context().data.conversation
    assert window_tokens(conversation.recent_window) <= 800
    assert "결정했습니다" in conversation.running_summary
