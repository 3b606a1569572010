"""What seeds 000 and 001 promise of a chat as a whole: by the requests that an endpoint receives."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from graph.event import TurnFinished
from prompt.system.context_layer import DEFAULT_RULES
from tests.fake.chat import question
from tests.fake.front import front_of, memory_of, said_last
from tests.fake.offline import KEYLESS, models_without_pauses
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, text, tools
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted, wait_for_notes


@pytest.fixture
def rooted(tmp_path: Path, open_chat: OpenChat) -> Rooted:
    return Rooted(tmp_path, open_chat)


def persistent(data_dir: Path) -> dict[str, str]:
    (path,) = (data_dir / "context").rglob("persistent-context.json")
    kept: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def test_000_section_3b_the_users_message_is_noted_before_the_answer_and_the_answer_behind_it(
    rooted: Rooted, server: FakeOpenAI
) -> None:
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


def test_000_section_3b_a_new_session_starts_with_hydrate_prompt(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.project.workflow().open_task("릴리스 노트")
    rooted.project.context().record_decision("포트는 8501")
    lines = rooted.project.context().hydrate_prompt("ko")
    rooted.enter(clock=rooted.project.clock)
    told = [line.strip() for line in memory_of(server.bodies("chat")[0]).splitlines()]
    assert told[1:] == lines


def test_000_section_4_2_after_a_break_the_model_is_told_what_was_said_before(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    with rooted.open() as before:
        server.script(text("8501로 바꿨어요."))
        before.say("포트를 바꿔 줘", options=rooted.options())
    rooted.open().say("어디까지 했지?", options=rooted.options())
    told = memory_of(server.bodies("chat")[-1])
    assert told.index("USER: 포트를 바꿔 줘") < told.index("ASSISTANT: 8501로 바꿨어요.")


def test_000_section_4_3_a_switch_of_plans_begins_the_summary_anew(rooted: Rooted, server: FakeOpenAI) -> None:
    workflow = rooted.project.workflow()
    workflow.open_plan("배포", "다음 주까지 0.2를 낸다")
    workflow.open_plan("정리", "코드를 줄인다")
    with rooted.open() as chat:
        server.script(tools(ScriptedCall("switch_plan", '{"plan_id": "plan_001"}', "call-1")), text("옮겼습니다."))
        chat.say("배포 계획으로 가자", options=rooted.options())
    rooted.open().say("무슨 계획이지?", options=rooted.options())
    told = memory_of(server.bodies("chat")[-1])
    assert "ACTIVE PLAN: 배포" in told
    assert "SUMMARY: 다음 주까지 0.2를 낸다" in told


def test_000_section_5_over_the_limit_the_oldest_become_a_summary(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open(models=models_without_pauses, **KEYLESS)  # sentences are picked
    for number in range(1, 13):
        assert isinstance(chat.say(question(number), options=rooted.options())[-1], TurnFinished)
    wait_for_notes(chat)
    talk = rooted.project.context().data.conversation
    assert 0 < len(talk.running_summary) <= 400
    assert talk.recent_window[-1].content == chat.last_turn.answer_text
    assert len(talk.recent_window) < 24
    assert server.bodies() == []


def test_001_section_1_a_prompt_is_persistent_then_body_with_volatile_just_before_the_users_words(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    chat = rooted.enter()
    chat.say("고쳐 줘", options=rooted.options(selection="x = 1"))
    first, *_, last = (str(message["content"]) for message in server.bodies("chat")[-1]["messages"])
    assert "## 영구 컨텍스트\n" in first
    assert last.startswith("## 휘발성 컨텍스트\n")
    assert last.endswith("\n\n[CURRENT MESSAGE]\n고쳐 줘")


def test_001_section_3_3_the_condition_renews_persistent_and_each_request_volatile(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    chat = rooted.enter()
    data_dir = chat.service.settings.turnfold_data_dir
    assert DEFAULT_RULES["ko"].splitlines()[0] in front_of(server.bodies("chat")[0])
    assert persistent(data_dir)["projectRules"] == ""
    rooted.write("AGENTS.md", "네 칸 들여쓰기")
    rooted.agree(chat)
    for number in (1, 2):
        chat.say("고쳐 줘", options=rooted.options(currentFile=f"/srv/{number}.py"))
        assert f"currentFile: /srv/{number}.py" in said_last(server.bodies("chat")[-1])
    assert "네 칸 들여쓰기" in persistent(data_dir)["projectRules"]
    assert "네 칸 들여쓰기" in front_of(server.bodies("chat")[1])


def test_001_section_5_1_the_server_says_its_directory_and_only_a_caller_a_file(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    chat = rooted.enter()
    block = said_last(server.bodies("chat")[0]).partition("\n\n[CURRENT MESSAGE]")[0]
    keys = [line.split(":")[0] for line in block.splitlines()[1:]]
    assert keys == ["workingDirectory", "projectRoot"]
    assert f"workingDirectory: {Path.cwd()}" in block
    chat.say("고쳐 줘", options=rooted.options(currentFile="src/app.py"))
    assert f"currentFile: {Path.cwd()}/src/app.py" in said_last(server.bodies("chat")[-1])


@pytest.mark.parametrize(("policy", "is_kept"), [("merge", True), ("request", False)])
def test_001_section_3_2_a_request_is_merged_or_stands_alone(
    rooted: Rooted, server: FakeOpenAI, policy: str, *, is_kept: bool
) -> None:
    chat = rooted.open(context_volatile=policy)
    chat.say("이 파일을 봐 줘", options=rooted.options(currentFile="/srv/a.py"))
    chat.say("그래서?")
    assert ("currentFile: /srv/a.py" in said_last(server.bodies("chat")[-1])) == is_kept
