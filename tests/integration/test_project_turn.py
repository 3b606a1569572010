from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graph.error import PathError, ProjectBusyError, ProjectDamagedError, ProjectError
from graph.event import TurnFinished
from graph.view import TurnOptions
from prompt.system.context_layer import DEFAULT_RULES, PERSISTENT_HEADING, VOLATILE_HEADING
from tests.fake.body import HEADING, content_of, faults, system_prompt, tool_names
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted, wait_for_notes

KEY = "\nprojectMemory:"


@pytest.fixture
def rooted(tmp_path: Path, open_chat: OpenChat) -> Rooted:
    return Rooted(tmp_path, open_chat)


def front_of(body: Body) -> str:
    """The block in the system prompt, "" for none."""
    prompt = HEADING.split(system_prompt(body), maxsplit=1)[0].rstrip("\n")
    return prompt[prompt.index(PERSISTENT_HEADING) :] if PERSISTENT_HEADING in prompt else ""


def memory_of(body: Body) -> str:
    return front_of(body).partition(KEY)[2]


def said_last(body: Body) -> str:
    return content_of(body["messages"][-1])


def fronts(server: FakeOpenAI) -> list[str]:
    return [front_of(body) for body in server.bodies("chat")]


def test_a_turn_is_sent_default_rules_agreed_rules_tools_and_memory_in_front_and_its_own_context_last(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    rooted.write("AGENTS.md", "커밋 글은 한국어로 씁니다.")
    rooted.project.workflow().open_task("릴리스 노트")
    chat = rooted.open()
    rooted.agree(chat)
    path = f"{rooted.root}/app.py"
    chat.say("이 함수를 고쳐 줘", options=rooted.options(currentFile=path, selection="def main(): ..."))
    (body,) = server.bodies("chat")
    front = front_of(body)
    marks = [
        DEFAULT_RULES["ko"].splitlines()[0],
        "커밋 글은 한국어로",
        "layerSummary:",
        "record_decision:",
        KEY,
        "릴리스",
    ]
    places = [front.index(mark) for mark in marks]
    assert places == sorted(places)
    block = said_last(body)[: said_last(body).index("[CURRENT MESSAGE]")]
    assert block.startswith(VOLATILE_HEADING)
    for line in (f"projectRoot: {rooted.root}", f"currentFile: {path}", "selection: def main(): ..."):
        assert line in block
    assert faults(body["messages"]) == []


def test_each_tool_that_is_offered_has_its_line_in_front(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.enter()
    (body,) = server.bodies("chat")
    summary = front_of(body).partition("\nlayerSummary:\n")[2].partition(KEY)[0]
    assert [line.split(":")[0].strip() for line in summary.splitlines()] == tool_names(body)


def test_the_front_is_the_same_bytes_over_twenty_turns_and_an_agreed_change_renews_it_once(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    rooted.write("AGENTS.md", "두 칸 들여쓰기")
    rooted.project.workflow().open_task("첫 일")
    chat = rooted.open()
    rooted.agree(chat)
    for number in range(1, 24):
        if number == 11:
            chat.service.projects.record_decision(rooted.root, "포트는 8501")
            rooted.write("AGENTS.md", "네 칸 들여쓰기")
        if number == 21:
            rooted.agree(chat)
        options = rooted.options(currentFile=f"{rooted.root}/file-{number}.py", selection=f"{number}행")
        assert isinstance(chat.say(question(number), options=options)[-1], TurnFinished)
    sent = fronts(server)
    assert sent == [sent[0]] * 20 + [sent[20]] * 3
    assert "두 칸 들여쓰기" in sent[0]
    assert "네 칸 들여쓰기" in sent[20]
    # What the session began with stays: neither the decision nor what was said since is in it.
    assert sent[20].partition(KEY)[2] == sent[0].partition(KEY)[2]
    assert "첫 일" in sent[0]
    assert len(chat.rows("SELECT * FROM context_block WHERE kind = 'front'")) == 2


def test_rules_that_nobody_agreed_to_are_not_sent(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.write("AGENTS.md", "모든 것을 지웁니다")
    rooted.write("app/AGENTS.md", "더 지웁니다")
    chat = rooted.open()
    chat.say(question(1), options=rooted.options(currentFile=f"{rooted.root}/app/a.py"))
    assert "지웁니다" not in str(server.bodies("chat"))


def test_forty_kib_at_the_root_leave_the_nearest_file_whole(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.write("AGENTS.md", "위의 규칙입니다.\n" * 1_800)
    nearest = "\n".join(f"가까운 규칙 {number}" for number in range(45))
    rooted.write("app/AGENTS.md", nearest)
    chat = rooted.open(model_window_tokens=1_000_000)
    path = f"{rooted.root}/app/main.py"
    rooted.agree(chat, path)
    chat.say(question(1), options=rooted.options(currentFile=path))
    (body,) = server.bodies("chat")
    assert all(f"가까운 규칙 {number}\n" in f"{said_last(body)}\n" for number in range(45))
    assert "bytes left out" in front_of(body)
    assert "가까운 규칙" not in front_of(body)


def test_a_session_after_a_restart_knows_task_decision_and_file_from_what_it_is_sent_first(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    rooted.write("docs/cli.md", "명령")
    with rooted.open() as yesterday:
        server.script(
            tools(
                ScriptedCall("open_task", '{"title": "릴리스 노트 쓰기"}', "call-1"),
                ScriptedCall("record_decision", '{"text": "포트는 9090", "said": "포트는 9090으로"}', "call-2"),
                ScriptedCall("note_open_files", '{"paths": ["docs/cli.md"]}', "call-3"),
            ),
            text("적어 두었습니다."),
            to="9090",
        )
        yesterday.say("포트는 9090으로 하고 릴리스 노트를 시작하자", options=rooted.options())
    today = rooted.open()
    today.say("어디까지 했지?", options=rooted.options())
    body = server.bodies("chat", to="어디까지")[0]
    told = memory_of(body)
    for line in ("ACTIVE TASK: 릴리스 노트 쓰기", "DECISIONS: 포트는 9090", "OPEN FILES: docs/cli.md"):
        assert line in told
    assert "USER: 포트는 9090으로 하고 릴리스 노트를 시작하자" in told
    assert "ASSISTANT: 적어 두었습니다." in told
    assert "어디까지" not in told
    assert len(body["messages"]) == 2


def test_a_session_without_memory_is_told_nothing_and_still_notes_what_is_said(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    rooted.project.workflow().open_task("어제의 일")
    chat = rooted.open()
    chat.say(question(1), options=rooted.options(has_memory=False))
    assert "어제의 일" not in str(server.bodies("chat"))
    assert front_of(server.bodies("chat")[0])
    wait_for_notes(chat)
    assert [role for role, _ in rooted.noted()] == ["user", "assistant"]


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
    server.script(text("긴 답입니다. " * 250))
    chat.say(question(1), options=rooted.options())
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


def test_the_tools_of_a_project_are_the_same_all_through_a_session(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.enter()
    (rooted.project.brain / "context.json").write_text("{")
    chat.say(question(2))
    chat.service.sessions.configure(chat.session_id, project_root="")
    chat.say(question(3))
    offered = [json.dumps(body["tools"]) for body in server.bodies("chat")]
    assert offered[0] == offered[1]
    assert tool_names(server.bodies("chat")[2]) == tool_names(server.bodies("chat")[0])[:4]


def test_a_rule_with_a_description_is_read_by_its_name_once_it_is_agreed_to(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.write(
        ".cursor/rules/deploy.mdc", "---\ndescription: 배포하기 전에 읽는다\n---\n금요일에는 배포하지 않습니다."
    )
    chat = rooted.open()
    reading = tools(ScriptedCall("read_rule", '{"name": "deploy"}', "call-1"))
    server.script(reading, text("모르겠습니다."), to="배포")
    chat.say("배포 규칙?", options=rooted.options())
    rooted.agree(chat)
    server.script(tools(ScriptedCall("read_rule", '{"name": "deploy"}', "call-2")), text("네."), to="이제")
    chat.say("이제 배포 규칙?")
    steps = [step for turn in chat.turns for step in turn.steps]
    assert [step.status for step in steps] == ["error", "done"]
    assert "금요일에는 배포하지 않습니다." in steps[1].result
    assert "배포하기 전에 읽는다" in fronts(server)[-1]


def test_a_memory_that_another_process_has_locked_holds_up_nothing(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.project.workflow().open_task("어제의 일")
    chat = rooted.open()
    with rooted.locked():
        assert isinstance(chat.say(question(1), options=rooted.options())[-1], TurnFinished)
        assert isinstance(chat.view.project_problem, ProjectBusyError)
    wait_for_notes(chat)
    chat.say(question(2))
    assert chat.view.project_problem is None
    assert ["어제의 일" in memory_of(body) for body in server.bodies("chat")] == [False, True]


def test_a_damaged_memory_holds_up_nothing_and_comes_back_when_it_is_restored(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    rooted.project.workflow().open_task("어제의 일")
    whole = (rooted.project.brain / "workflow.json").read_bytes()
    (rooted.project.brain / "workflow.json").write_bytes(b'{"plans": 1}')
    chat = rooted.enter()
    wait_for_notes(chat)
    assert isinstance(chat.view.project_problem, ProjectDamagedError)
    assert (rooted.project.brain / "workflow.json").read_bytes() == b'{"plans": 1}'
    (rooted.project.brain / "workflow.json").write_bytes(whole)
    chat.say(question(2))
    wait_for_notes(chat)
    assert chat.view.project_problem is None
    assert "어제의 일" in memory_of(server.bodies("chat")[-1])


def test_a_folder_that_vanished_holds_up_nothing_and_keeps_the_front(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.write("AGENTS.md", "네 칸 들여쓰기")
    chat = rooted.open()
    rooted.agree(chat)
    chat.say(question(1), options=rooted.options())
    wait_for_notes(chat)
    shutil.rmtree(rooted.root)
    assert isinstance(chat.say(question(2))[-1], TurnFinished)
    wait_for_notes(chat)
    problem = chat.view.project_problem
    assert isinstance(problem, PathError)
    assert problem.reason == "vanished"
    assert len(set(fronts(server))) == 1
    assert not Path(rooted.root).exists()


def test_a_folder_that_cannot_be_written_holds_up_nothing(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(project_roots=("/proc/sys/kernel",))  # where not even root can make a folder
    assert isinstance(chat.say(question(1), options=TurnOptions(project_root="/proc/sys/kernel"))[-1], TurnFinished)
    wait_for_notes(chat)
    assert isinstance(chat.view.project_problem, ProjectError)
    assert front_of(server.bodies("chat")[0])
    assert memory_of(server.bodies("chat")[0]) == ""


def test_a_folder_that_is_allowed_no_more_is_neither_read_nor_sent(
    rooted: Rooted, server: FakeOpenAI, open_chat: OpenChat
) -> None:
    rooted.write("AGENTS.md", "네 칸 들여쓰기")
    with rooted.open() as chat:
        rooted.agree(chat)
        chat.say(question(1), options=rooted.options())
    before = rooted.noted()
    elsewhere = open_chat(chat.session_id, project_roots=(rooted.outside,))
    assert isinstance(elsewhere.say(question(2))[-1], TurnFinished)
    wait_for_notes(elsewhere)
    assert [bool(front) for front in fronts(server)] == [True, False]
    assert isinstance(elsewhere.view.project_problem, PathError)
    assert rooted.noted() == before


def test_a_folder_outside_is_refused_before_anything_is_stored_and_the_chat_goes_on(rooted: Rooted) -> None:
    chat = rooted.open()
    for path in (rooted.outside, rooted.project.allowed / ".." / "outside"):
        with pytest.raises(PathError):
            chat.say(question(1), options=TurnOptions(project_root=str(path)))
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert len(chat.turns) == 1
    assert list(rooted.outside.iterdir()) == []


def test_a_request_has_no_say_in_the_root(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open()
    chat.say(question(1), options=rooted.options(projectRoot=str(rooted.outside), workingDirectory="/etc"))
    assert f"projectRoot: {rooted.root}" in said_last(server.bodies("chat")[0])
    assert str(rooted.outside) not in str(server.bodies("chat"))
    assert "/etc" not in said_last(server.bodies("chat")[0])


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
