from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from graph.value.error import StoreError
from graph.value.event import TurnFinished
from tests.fake.body import roles
from tests.fake.chat import Chat, question
from tests.fake.open_chat import MakeSettings, OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, hang, tools
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
def test_what_a_server_died_of_answering_is_answered_in_its_turn(
    tmp_path: Path, make_settings: MakeSettings, open_chat: OpenChat, server: FakeOpenAI, fields: dict[str, bool]
) -> None:
    """A question, and the results of a program's tools in another chat."""
    service = open_chat().service
    died, with_tool = Program(service), Program(service, options={"tools": (LOOK,)})
    first = died.ask(question(1))
    server.script(hang("Half"), tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look."), hang("Gre"))
    died.messages.append(user(question(2)))
    died.begin().wait_for_text()
    asked = with_tool.ask(question(3))
    with_tool.messages.append(result("call-1", "green"))
    with_tool.begin().wait_for_text()
    with server_after(died, make_settings, tmp_path / "dead", server.url) as program:
        reading = program.begin(**fields)
        assert isinstance(reading.last, TurnFinished)
        assert (reading.session_id, reading.turn) == (first.session_id, 2)
        program.messages, program.options = with_tool.messages, with_tool.options
        reading = program.begin(**fields)
        assert isinstance(reading.last, TurnFinished)
        assert (reading.session_id, reading.turn) == (asked.session_id, 1)
        assert roles(server.bodies("chat")[-1]) == ["system", "user", "assistant", "tool"]
        assert Chat(program.service, asked.session_id).last_turn.attempt == 1
        assert counts(Chat(program.service))[:2] == [2, 3]


def test_a_program_goes_on_behind_the_part_that_it_got_of_a_server_that_died(
    tmp_path: Path, make_settings: MakeSettings, open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    died = begin(chat, user="ann")
    server.script(hang("The migration ", "is on the 10th"))
    died.messages.append(user(question(1)))
    reading = died.begin()
    chat.wait_until(lambda: chat.rows("SELECT partial_text FROM turn") == [("The migration is on the 10th",)])
    died.messages.append(assistant("The migration is"))
    with server_after(died, make_settings, tmp_path / "dead", server.url) as program:
        after = program.ask(question(2), user="ann")
        assert (after.session_id, after.turn) == (reading.session_id, 2)


def test_whichever_write_fails_no_history_stands_without_its_question(open_chat: OpenChat) -> None:
    fault = Nth()
    chat = open_chat(stores=failing_stores(fault))
    before = counts(chat)[:3]
    program = begin(chat)
    program.messages += [user(question(2)), assistant("다른 모델의 답입니다."), user(question(3))]
    failures = 0
    for nth in count(1):
        fault.fail_at(nth)
        try:
            reading = program.begin()
        except StoreError:
            failures += 1
            assert counts(chat)[:3] == before
        else:
            assert reading.last
            break
    assert failures > 2
    assert Chat(chat.service, reading.session_id).view.turn_count == 2
