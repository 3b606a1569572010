from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from graph.client import ClientMessage
from graph.error import StoreError
from graph.event import ActionRequired, TurnFinished
from tests.fake.body import faults, roles
from tests.fake.chat import Chat, question
from tests.fake.open_chat import MakeSettings, OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.resending import Program, assistant, begin, counts, result, user
from tests.fake.store import leave_behind
from tests.fault.store import Nth, failing_stores

LOOK = tool("look")


@contextmanager
def server_after(died: Program, make_settings: MakeSettings, folder: Path, url: str) -> Iterator[Program]:
    """The same program, at a server that was started after one that died in the middle of a turn."""
    leave_behind(make_settings(), folder)
    with chat_opener(settings_maker(folder, url)) as open_after:
        yield Program(open_after().service, messages=list(died.messages), options=died.options)


@pytest.mark.parametrize("fields", [{}, {"is_retry": True}], ids=["anew", "retry"])
def test_a_question_whose_server_died_is_answered_in_its_turn(
    tmp_path: Path, make_settings: MakeSettings, open_chat: OpenChat, server: FakeOpenAI, fields: dict[str, bool]
) -> None:
    died = begin(open_chat())
    first = died.ask(question(1))
    server.script(hang("Half"))
    died.messages.append(user(question(2)))
    died.begin().wait_for_text()
    with server_after(died, make_settings, tmp_path / "dead", server.url) as program:
        reading = program.begin(**fields)
        assert isinstance(reading.last, TurnFinished)
        assert (reading.session_id, reading.turn) == (first.session_id, 2)
        assert counts(Chat(program.service))[:2] == [1, 2]


@pytest.mark.parametrize("fields", [{}, {"is_retry": True}], ids=["anew", "retry"])
def test_answers_to_calls_whose_server_died_go_on_with_their_turn(
    tmp_path: Path, make_settings: MakeSettings, open_chat: OpenChat, server: FakeOpenAI, fields: dict[str, bool]
) -> None:
    died = Program(open_chat().service, options={"tools": (LOOK,)})
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look."), hang("Gre"))
    first = died.ask(question(1))
    died.messages.append(result("call-1", "green"))
    died.begin().wait_for_text()
    with server_after(died, make_settings, tmp_path / "dead", server.url) as program:
        reading = program.begin(**fields)
        assert isinstance(reading.last, TurnFinished)
        assert (reading.session_id, reading.turn) == (first.session_id, 1)
        assert roles(server.bodies("chat")[-1]) == ["system", "user", "assistant", "tool"]
        assert Chat(program.service, first.session_id).last_turn.attempt == 1


def test_what_another_model_said_stands_behind_the_turn_that_waited_for_the_program(
    chat: Chat, server: FakeOpenAI
) -> None:
    program = Program(chat.service, options={"tools": (LOOK,)})
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look."))
    first = program.ask(question(1))
    assert isinstance(first.last, ActionRequired)
    elsewhere: list[ClientMessage] = [result("call-1", "green"), assistant("Another model says that it is green.")]
    program.messages += elsewhere
    after = program.ask(question(2))
    assert after.session_id == first.session_id
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    assert [turn.status for turn in Chat(chat.service, first.session_id).turns] == ["stopped", "finished", "finished"]
    assert program.ask(question(3)).session_id == first.session_id
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_whichever_write_fails_no_history_stands_without_its_question(open_chat: OpenChat) -> None:
    fault = Nth()
    chat = open_chat(stores=failing_stores(fault))
    program = begin(chat)
    session = program.ask(question(1)).session_id
    program.messages += [user(question(2)), assistant("다른 모델의 답입니다."), user(question(3))]
    failures = 0
    for nth in count(1):
        fault.fail_at(nth)
        try:
            reading = program.begin(session=session)
        except StoreError:
            failures += 1
            assert counts(chat)[:3] == [1, 1, 2]
        else:
            assert reading.last
            break
    assert failures > 2
    assert reading.session_id == session
    assert Chat(chat.service, session).view.turn_count == 3


def test_a_retry_of_what_failed_before_the_chat_went_on_is_told_no_sentence_of_ours(
    chat: Chat, server: FakeOpenAI
) -> None:
    program = begin(chat)
    first = program.ask(question(1))
    server.script(hang("Half"))
    program.messages.append(user(question(2)))
    stopped = program.begin(idempotency_key="once")
    stopped.wait_for_text()
    stopped.completion.stop()
    assert stopped.last
    Chat(chat.service, first.session_id).say(question(3))
    server.script(text("A whole answer."))
    again = program.begin(idempotency_key="once")
    assert isinstance(again.last, TurnFinished)
    assert again.text == "A whole answer."
    assert Chat(chat.service, first.session_id).view.turn_count == 3
