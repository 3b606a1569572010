"""Seed 001's promises of a prompt, and what it is used for at once (§5, §5.1), by a real chat in a project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prompt.system.framing import DEFAULT_RULES, PERSISTENT_HEADING, VOLATILE_HEADING
from tests.fake.body import content_of
from tests.fake.chat import question
from tests.fake.context_reader import read_blocks
from tests.fake.front import front_of, fronts, last_messages
from tests.fake.openai_reply import Body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted

ALWAYS = "---\nalwaysApply: true\n---\n두 칸으로 들여 씁니다."


@pytest.fixture
def rooted(project_folder: Rooted) -> Rooted:
    return project_folder


def volatile_of(body: Body) -> dict[str, str]:
    block, _, _ = last_messages(body).partition("\n\n[CURRENT MESSAGE]")
    return dict(read_blocks(block)[VOLATILE_HEADING])


def persistent(data_dir: Path) -> dict[str, str]:
    (path,) = (data_dir / "context").rglob("persistent-context.json")
    retained: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return retained


def test_section_5_the_rules_in_the_root_are_kept_as_project_rules(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.write(".cursor/rules/style.mdc", ALWAYS)
    rooted.write("AGENTS.md", "커밋 글은 한국어로 씁니다.")
    chat = rooted.open()
    rooted.agree(chat)
    chat.say(question(1), options=rooted.options())
    rules = read_blocks(front_of(server.bodies("chat")[0]))[PERSISTENT_HEADING]["projectRules"]
    assert "두 칸으로 들여 씁니다." in rules
    assert "커밋 글은 한국어로 씁니다." in rules


def test_section_5_the_rules_are_loaded_anew_when_the_root_is_another_one(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.write("AGENTS.md", "첫 폴더의 규칙")
    rooted.write("app/AGENTS.md", "다른 폴더의 규칙")
    chat = rooted.open()
    other = f"{rooted.root}/app"
    for root in (rooted.root, other):
        chat.service.projects.agree(root, chat.service.projects.rules(root).digest)
    chat.say(question(1), options=rooted.options())
    chat.say(question(2))
    chat.service.sessions.configure(chat.session_id, project_root=other)
    chat.say(question(3))
    found = [read_blocks(front)[PERSISTENT_HEADING]["projectRules"] for front in fronts(server)]
    assert found[0] == found[1]
    assert ["첫 폴더의 규칙" in rules for rules in found] == [True, True, False]
    assert ["다른 폴더의 규칙" in rules for rules in found] == [False, False, True]


def test_section_5_1_a_relative_file_is_the_servers_an_absolute_one_stays(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open()
    for path in ("src/App.kt", f"{rooted.root}/App.kt"):
        chat.say(question(1), options=rooted.options(currentFile=path))
    told = [volatile_of(body)["currentFile"] for body in server.bodies("chat")]
    assert told == [str(Path.cwd() / "src/App.kt"), f"{rooted.root}/App.kt"]


def test_section_1_persistent_stands_first_volatile_before_the_users_words(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.enter()
    chat.say("고쳐 줘", options=rooted.options(selection="x = 1"))
    first, *_, last = (str(message["content"]) for message in server.bodies("chat")[-1]["messages"])
    assert "## 영구 컨텍스트\n" in first
    assert last.startswith("## 휘발성 컨텍스트\n")
    assert last.endswith("\n\n[CURRENT MESSAGE]\n고쳐 줘")


def test_section_3_3_the_condition_renews_persistent_each_request_volatile(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.start()
    chat.say("안녕하세요", options=rooted.options())
    data_dir = chat.service.settings.turnfold_data_dir
    assert DEFAULT_RULES["ko"].splitlines()[0] in front_of(server.bodies("chat")[0])
    assert persistent(data_dir)["projectRules"] == ""
    rooted.write("AGENTS.md", "네 칸 들여쓰기")
    rooted.agree(chat)
    for number in (1, 2):
        chat.say("고쳐 줘", options=rooted.options(currentFile=f"/srv/{number}.py"))
        assert f"currentFile: /srv/{number}.py" in last_messages(server.bodies("chat")[-1])
    assert "네 칸 들여쓰기" in persistent(data_dir)["projectRules"]
    assert "네 칸 들여쓰기" in front_of(server.bodies("chat")[1])


def test_section_5_1_the_server_says_its_directory_only_a_caller_a_file(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.enter()
    block = last_messages(server.bodies("chat")[0]).partition("\n\n[CURRENT MESSAGE]")[0]
    keys = [line.split(":")[0] for line in block.splitlines()[1:]]
    assert keys == ["workingDirectory", "projectRoot"]
    assert f"workingDirectory: {Path.cwd()}" in block


def test_section_3_2_and_5_a_request_is_merged_or_stands_alone(rooted: Rooted, server: FakeOpenAI) -> None:
    for policy, retained in (("merge", ("/srv/b.py", "b = 1")), ("request", (None, None))):
        chat = rooted.start(context_volatile=policy)
        for name in ("a", "b"):
            chat.say(question(1), options=rooted.options(currentFile=f"/srv/{name}.py", selection=f"{name} = 1"))
            told = volatile_of(server.bodies("chat")[-1])
            assert (told["currentFile"], told["selection"]) == (f"/srv/{name}.py", f"{name} = 1")
        assert "a = 1" not in "".join(content_of(message) for message in server.bodies("chat")[-1]["messages"])
        chat.say("그래서?")
        told = volatile_of(server.bodies("chat")[-1])
        assert (told.get("currentFile"), told.get("selection")) == retained
