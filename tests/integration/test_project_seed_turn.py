"""Seed 000's promises of a conversation, by a real chat in a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.event import TurnFailed
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted, wait_for_notes


@pytest.fixture
def rooted(tmp_path: Path, open_chat: OpenChat) -> Rooted:
    return Rooted(tmp_path, open_chat)


def test_section_3_b_the_question_is_registered_though_the_call_fails_and_the_answer_behind_it(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    chat = rooted.open()
    server.script(failure(401), to="포트를")
    assert isinstance(chat.say("포트를 바꿔 줘", options=rooted.options())[-1], TurnFailed)
    wait_for_notes(chat)
    assert rooted.noted() == [("user", "포트를 바꿔 줘")]
    server.script(text("바꿨습니다."))
    chat.retry()
    wait_for_notes(chat)
    assert rooted.noted() == [("user", "포트를 바꿔 줘"), ("assistant", "바꿨습니다.")]


def test_section_4_1_in_ordinary_talk_each_side_is_registered_and_saved_in_order(
    rooted: Rooted, server: FakeOpenAI
) -> None:
    server.script(text("하나"), text("둘"))
    chat = rooted.open()
    for said in ("첫 말", "다음 말"):
        chat.say(said, options=rooted.options())
    wait_for_notes(chat)
    assert rooted.noted() == [("user", "첫 말"), ("assistant", "하나"), ("user", "다음 말"), ("assistant", "둘")]
    assert rooted.project.stored()["stats"]["dialog_turns"] == 2
