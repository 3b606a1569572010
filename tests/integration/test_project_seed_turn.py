"""Seed 000's promises of a conversation, by a real chat in a project."""

from __future__ import annotations

import time

import pytest

from graph.value.event import TurnFailed, TurnFinished
from tests.fake.chat import question
from tests.fake.front import memory_of
from tests.fake.offline import KEYLESS, models_without_pauses
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, text, tools
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted, wait_for_notes


@pytest.fixture
def rooted(project_folder: Rooted) -> Rooted:
    return project_folder


def test_section_3_b_a_question_is_registered_though_the_call_fails(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open()
    server.script(failure(401), to="포트를")
    assert isinstance(chat.say("포트를 바꿔 줘", options=rooted.options())[-1], TurnFailed)
    wait_for_notes(chat)
    assert rooted.noted() == [("user", "포트를 바꿔 줘")]
    server.script(text("바꿨습니다."))
    chat.retry()
    wait_for_notes(chat)
    assert rooted.noted() == [("user", "포트를 바꿔 줘"), ("assistant", "바꿨습니다.")]


def test_section_4_1_in_ordinary_talk_each_side_is_registered_in_order(rooted: Rooted, server: FakeOpenAI) -> None:
    server.script(text("하나"), text("둘"))
    chat = rooted.open()
    for said in ("첫 말", "다음 말"):
        chat.say(said, options=rooted.options())
    wait_for_notes(chat)
    assert rooted.noted() == [("user", "첫 말"), ("assistant", "하나"), ("user", "다음 말"), ("assistant", "둘")]
    assert rooted.project.stored()["stats"]["dialog_turns"] == 2


def test_section_3_b_the_users_message_is_noted_before_the_answer(rooted: Rooted, server: FakeOpenAI) -> None:
    seen: list[tuple[str, str]] = []

    def wait_until_noted(body: Body) -> Reply:
        ends_at = time.monotonic() + 20
        while not seen and time.monotonic() < ends_at:
            time.sleep(0.01)  # or the lock would hardly ever be free
            seen.extend(rooted.noted())
        return answer_body(body)

    server.respond_with(wait_until_noted)
    chat = rooted.open()
    chat.say("포트를 바꿔 줘", options=rooted.options())
    assert seen == [("user", "포트를 바꿔 줘")]
    wait_for_notes(chat)
    assert rooted.noted() == [*seen, ("assistant", chat.last_turn.answer_text)]


def test_section_3_b_a_new_session_starts_with_hydrate_prompt(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.project.workflow().open_task("릴리스 노트")
    rooted.project.context().record_decision("포트는 8501")
    lines = rooted.project.context().hydrate_prompt("ko")
    rooted.enter(clock=rooted.project.clock)
    told = [line.strip() for line in memory_of(server.bodies("chat")[0]).splitlines()]
    assert told[1:] == lines


def test_section_4_2_after_a_break_the_model_is_told_what_was_before(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.write("docs/cli.md", "명령")
    several = [ScriptedCall("open_task", f'{{"title": "일 {each}"}}', f"call-{each}") for each in range(4, 8)]
    notes = [
        ScriptedCall("open_task", '{"title": "릴리스 노트 쓰기"}', "call-1"),
        ScriptedCall("record_decision", '{"text": "포트는 9090", "said": "포트는 9090으로"}', "call-2"),
        ScriptedCall("note_open_files", '{"paths": ["docs/cli.md"]}', "call-3"),
    ]
    server.script(tools(*several), tools(*notes), text("적어 두었습니다."), to="9090")
    with rooted.start() as before:
        before.say("포트는 9090으로 하고 릴리스 노트를 시작하자", options=rooted.options())
        assert {step.status for step in before.last_turn.steps} == {"done"}
    tasks = [task.title for _, task in rooted.project.workflow().data.tasks()]
    assert sorted(tasks) == ["릴리스 노트 쓰기", *(f"일 {number}" for number in range(4, 8))]
    rooted.start().say("어디까지 했지?", options=rooted.options())
    body = server.bodies("chat")[-1]
    told = memory_of(body)
    lines = ("ACTIVE TASK: 릴리스 노트 쓰기", "DECISIONS: 포트는 9090", "OPEN FILES: docs/cli.md")
    said = ("USER: 포트는 9090으로 하고 릴리스 노트를 시작하자", "ASSISTANT: 적어 두었습니다.")
    indexes = [told.index(line) for line in (*lines, *said)]
    assert indexes == sorted(indexes)
    assert "어디까지" not in told
    assert len(body["messages"]) == 2


def test_section_4_3_a_switch_of_plans_begins_the_summary_anew(rooted: Rooted, server: FakeOpenAI) -> None:
    workflow = rooted.project.workflow()
    workflow.open_plan("배포", "다음 주까지 0.2를 낸다")
    workflow.open_plan("정리", "코드를 줄인다")
    with rooted.start() as chat:
        server.script(tools(ScriptedCall("switch_plan", '{"plan_id": "plan_001"}', "call-1")), text("옮겼습니다."))
        chat.say("배포 계획으로 가자", options=rooted.options())
    rooted.start().say("무슨 계획이지?", options=rooted.options())
    told = memory_of(server.bodies("chat")[-1])
    assert "ACTIVE PLAN: 배포" in told
    assert "SUMMARY: 다음 주까지 0.2를 낸다" in told


def test_section_5_over_the_limit_the_oldest_become_a_summary(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open(models=models_without_pauses, **KEYLESS)  # sentences are picked
    for number in range(1, 8):
        assert isinstance(chat.say(question(number), options=rooted.options())[-1], TurnFinished)
    wait_for_notes(chat)
    talk = rooted.project.context().data.conversation
    assert 0 < len(talk.running_summary) <= 400
    assert talk.recent_window[-1].content == chat.last_turn.answer_text
    assert len(talk.recent_window) < 14
    # The embedded model's answers repeat what was said.
    assert all(each.is_repetition == (each.role == "assistant") for each in talk.recent_window)
    assert server.bodies() == []
