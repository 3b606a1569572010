"""Seed 001's sections 5 and 5.1, what it is used for at once, by a real chat in a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from prompt.system.context_layer import PERSISTENT_HEADING, VOLATILE_HEADING
from tests.fake.body import content_of
from tests.fake.chat import question
from tests.fake.context_reader import read_blocks
from tests.fake.front import front_of, fronts, said_last
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted

ALWAYS = "---\nalwaysApply: true\n---\n두 칸으로 들여 씁니다."


@pytest.fixture
def rooted(tmp_path: Path, open_chat: OpenChat) -> Rooted:
    return Rooted(tmp_path, open_chat)


def volatile_of(body: Body) -> dict[str, str]:
    block, _, _ = said_last(body).partition("\n\n[CURRENT MESSAGE]")
    return dict(read_blocks(block)[VOLATILE_HEADING])


def test_section_5_the_working_directory_is_there_from_the_first_turn(rooted: Rooted, server: FakeOpenAI) -> None:
    rooted.enter()
    assert volatile_of(server.bodies("chat")[0])["workingDirectory"] == str(Path.cwd())


def test_section_5_each_request_says_its_file_and_selection(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open(context_volatile="request")
    for name in ("a", "b"):
        chat.say(question(1), options=rooted.options(currentFile=f"/srv/{name}.py", selection=f"{name} = 1"))
    told = [volatile_of(body) for body in server.bodies("chat")]
    assert [(each["currentFile"], each["selection"]) for each in told] == [
        ("/srv/a.py", "a = 1"),
        ("/srv/b.py", "b = 1"),
    ]
    assert "a = 1" not in "".join(content_of(message) for message in server.bodies("chat")[-1]["messages"])


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


def test_section_5_1_a_relative_file_is_the_server_s_and_an_absolute_one_stays(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    chat = rooted.open()
    for path in ("src/App.kt", f"{rooted.root}/App.kt"):
        chat.say(question(1), options=rooted.options(currentFile=path))
    told = [volatile_of(body)["currentFile"] for body in server.bodies("chat")]
    assert told == [str(Path.cwd() / "src/App.kt"), f"{rooted.root}/App.kt"]
