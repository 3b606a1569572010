"""A turn that waits for the tools of its program."""

from __future__ import annotations

import pytest

from graph.value.client import ClientMessage
from graph.value.error import InputError
from graph.value.event import ActionRequired, Event
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import ScriptedCall, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by, tool

LOOK = asked_by(tools=(tool("look", path={"type": "string"}),))
FIRST = ScriptedCall("look", '{"path": "a.py", "lines": {"to": 9, "from": 1}}', "call-1")
SECOND = ScriptedCall("look", '{"path": "나.py"}', "call-2")


def answer(call_id: str, said: str = "print('hello')") -> ClientMessage:
    return ClientMessage("tool", said, call_id=call_id)


def waiting(chat: Chat, server: FakeOpenAI, *calls: ScriptedCall) -> ActionRequired:
    server.script(tools(*(calls or (FIRST,)), answer="보겠습니다."))
    return required(chat.say(question(1), options=LOOK))


def required(events: list[Event]) -> ActionRequired:
    assert isinstance(events[-1], ActionRequired), events
    return events[-1]


def resume(chat: Chat, *answers: ClientMessage) -> list[Event]:
    assert chat.service.turns.resume(chat.session_id, answers, options=LOOK) == chat.view.turn_count
    return chat.events()


def refusal(chat: Chat, *answers: ClientMessage) -> tuple[str, str]:
    with pytest.raises(InputError) as refused:
        chat.service.turns.resume(chat.session_id, answers, options=LOOK)
    return refused.value.reason, refused.value.detail
